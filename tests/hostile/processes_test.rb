# SPDX-License-Identifier: GPL-2.0-only
# frozen_string_literal: true

# Processes and threads that come, go, hide and hold.

require_relative 'elf'
require_relative 'support'

class HostileProcessesTest < HostileTest
  def library
    @library ||= HostileElf.new.ruby!.write(lair('library'))
  end

  def test_processes_that_end_at_once
    attacker('puppet.c', 'forks', 2_000, library)
    besiege
  end

  def test_a_program_that_executes_itself
    4.times { attacker('puppet.c', 'execs', library) }
    besiege
  end

  def test_threads_that_end_at_once
    attacker('puppet.c', 'threads', 2_000, library)
    besiege
  end

  def test_threads_that_give_themselves_other_names
    attacker('puppet.c', 'named', 3_000, library)
    besiege
    assert_views_clean
    assert_clean run_rbpf('ps').out, 'ps'
  end

  def test_parent_that_is_held_by_vfork
    attacker('puppet.c', 'vfork', library)
    besiege
  end

  def test_first_thread_that_has_ended
    target = attacker('puppet.c', 'leader', library)
    besiege
    run_rbpf('dump', '-p', target.pid, statuses: [0, 3])
  end

  def test_process_that_may_not_be_read
    target = attacker('puppet.c', 'hidden', library)
    besiege
    run_rbpf('dump', '-p', target.pid, statuses: [0, 3])
  end

  def test_stopped_processes
    3.times { attacker('puppet.c', 'storm', 10, library).kill(:STOP) }
    besiege
    @targets.each { |target| target.kill(:CONT) }
  end

  # Its /proc is empty, and it is pid 1 there.
  def test_process_in_namespaces_of_its_own
    spawned(['unshare', '--pid', '--mount', '--ipc', '--uts', '--fork', '--kill-child', 'sh', '-c',
             'mount -t tmpfs none /proc; exec "$@"', 'sh',
             *Hostile.as(ATTACKER, Hostile.compiled('puppet.c'), 'leader', library)], uid: nil)
    besiege
  end

  # Whose ids come again while rbpf still has the last ones in mind.
  def test_pids_that_are_used_again
    spawned(['unshare', '--pid', '--fork', '--kill-child',
             *Hostile.as(ATTACKER, Hostile.compiled('puppet.c'), 'forks', 5_000, library)], uid: nil)
    4.times { run_rbpf('ps') }
    besiege
  end

  # Ruby processes that last as long as it takes to find them.
  def test_rubies_that_end_while_they_are_attached_to
    spawned(['sh', '-c', 'echo "{\\"ready\\":true}"; while :; do timeout -s KILL 0.08 ruby -e "loop {}"; done'])
    besiege
    3.times { run_rbpf('ps') }
  end

  def test_signals_and_limits_that_rbpf_inherits
    honest
    { 'closed standard streams' => { in: :close, out: :close },
      'few descriptors' => { rlimit_nofile: [64, 64] },
      'little stack' => { rlimit_stack: [1 << 20, 1 << 20] },
      'no core' => { rlimit_core: [0, 0] } }.each do |what, spawn|
      rbpf = watched('record', '--all-ruby', '-d', '500ms', '-F', '499', '-o', path('rbpf.data'), **spawn)
      result = rbpf.wait(30)
      refute result.status.signaled?, "#{what}: #{result.status}"
      assert_includes [0, 1, 4], result.code, "#{what}: #{result.err}"
      assert_clean result.err, what
      FileUtils.rm_f(path('rbpf.data'))
    end
  end

  # What nohup has set to be ignored stays so.
  def test_hangup_that_is_ignored
    honest
    rbpf = watched_with_hangup_ignored('record', '--all-ruby', '-d', '2s', '-o', path('rbpf.data'))
    rbpf.wait_attached
    rbpf.signal(:HUP)
    sleep 0.5
    refute rbpf.ended?, "ended by a SIGHUP that was to be ignored: #{rbpf.err}"
    assert_equal 0, rbpf.wait(30).code, rbpf.err
  end

  def test_interrupt_while_it_starts
    honest
    [0.02, 0.05, 0.1, 0.2, 0.4].each do |after|
      rbpf = watched('record', '--all-ruby', '-o', path('rbpf.data'))
      sleep after
      rbpf.signal(:INT)
      result = rbpf.wait(30)
      # Before it has set up what takes signals, it ends as any program does.
      assert_includes [0, 1, 3, 128 + 2], result.code, result.err
      assert_clean result.err, 'standard error'
    end
  end

  private

  def watched_with_hangup_ignored(*arguments)
    before = trap('HUP', 'IGNORE')
    watched(*arguments)
  ensure
    trap('HUP', before || 'DEFAULT')
  end
end
