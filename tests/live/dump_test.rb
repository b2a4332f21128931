# SPDX-License-Identifier: GPL-2.0-only
# frozen_string_literal: true

# The current stacks of processes: of which, and what is said of each thread.

require_relative 'support'

# What the tests of dump share.
module Dumps
  private

  def dump(*arguments)
    Rbpf.read('dump', '--json', *arguments).lines.map { |line| JSON.parse(line) }
  end
end

# A server that forked two workers, each with a helper of its own.
class DumpFamilyTest < LiveTest
  include Dumps

  def setup
    super
    @target = start('prefork.rb', 0.01)
    said = @target.wait_for('waiting')
    @children = said.values_at('workers', 'helpers').flatten
  end

  def test_a_pid_means_the_process_and_its_descendants
    processes = dump('-p', @target.pid)
    assert_equal [@target.pid, *@children].sort, pids(processes).sort
    assert_equal @target.pid, processes[0]['pid'], 'parents come first'
    processes[1..].each do |process|
      assert_includes processes.map { |p| p['pid'] }, process['ppid']
      assert_includes process['command'], 'prefork.rb'
      assert_equal ruby.version, process['ruby']
      labels = process['threads'].flat_map { |thread| thread['frames'] }.map { |f| f['label'] }
      assert_includes labels, process['pid'] == @target.pid ? '<main>' : 'Object#forked'
    end
  end

  # Garbage is collected many times while a deep stack is read.
  COLLECTING = <<~RUBY
    def down(depth)
      return down(depth - 1) if depth.positive?

      $stdout.syswrite(%({"waiting": true}\n))
      loop { 1.to_s }
    end
    down(1000)
  RUBY

  def test_frames_have_names_while_garbage_is_collected
    target = start_command(ruby.command('-e', COLLECTING))
    target.wait_for('waiting')
    named = Array.new(10) do
      labels = dump('-p', target.pid)[0]['threads'][0]['frames'].map { |f| f['label'] }
      labels.count('Object#down') == 1001 && !labels.include?('[unknown]')
    end
    # On a busy machine some are read in vain, as often as they are read again.
    assert_operator named.count(true), :>=, 5
  end

  def test_without_children_it_is_the_process_alone
    assert_equal [@target.pid], pids(dump('-p', @target.pid, '--no-children'))
  end

  def test_several_pids_are_printed_once_each
    other = start('heartbeat.rb')
    other.wait_for('waiting')
    worker = @children[0]
    processes = dump('-p', "#{other.pid},#{worker}", '-p', @target.pid)
    assert_equal [other.pid, @target.pid, *@children].sort, pids(processes).sort
    assert_equal other.pid, processes[0]['pid']
    assert_equal [worker, other.pid],
                 pids(dump('-p', worker, '-p', other.pid, '--no-children'))
  end

  def test_each_is_headed_by_its_pid_title_and_version
    text = Rbpf.read('dump', '-p', @target.pid)
    heads = text.scan(/^pid (\d+)  (.*?)   ruby (.*)$/)
    assert_equal [@target.pid, *@children].sort, heads.map { |pid,| Integer(pid) }.sort
    heads.each do |_, title, version|
      assert_includes title, 'prefork.rb'
      assert_equal ruby.version, version
    end
    assert_equal heads.size, text.split(/\n\n(?=pid )/).size
  end

  def test_a_shell_whose_child_is_a_ruby_is_accepted
    shell = start_shell(ruby.command(ruby.program('heartbeat.rb')))
    child = shell.wait_for('waiting')['pid']
    assert_equal [child], pids(dump('-p', shell.pid))
    result = Rbpf.run('dump', '-p', shell.pid, '--no-children')
    assert_equal 3, result.code
    assert_match(/pid #{shell.pid} .* is not a Ruby process/, result.err)
  end

  def test_nothing_is_printed_if_one_is_no_ruby
    sleeper = start_command(%w[sleep 60])
    result = Rbpf.run('dump', '-p', "#{@target.pid},#{sleeper.pid}", '--json')
    assert_equal 3, result.code
    assert_match(/pid #{sleeper.pid} .* is not a Ruby process/, result.err)
    assert_empty result.out
  end

  private

  # A shell that waits for a command.
  def start_shell(command)
    start_command(['sh', '-c', '"$@"; true', 'sh', *command])
  end

  def pids(processes)
    processes.map { |process| process['pid'] }
  end
end

# What threads wait in, and for whom.
class DumpWaitsTest < LiveTest
  include Dumps

  WAITS = {
    'mutex holder' => 'sleeps in Kernel#sleep',
    'lock' => 'waits in Thread::Mutex#lock',
    'synchronize' => 'waits in Thread::Mutex#synchronize',
    'monitor' => 'waits in Monitor#synchronize',
    'condition' => 'waits in Thread::ConditionVariable#wait',
    'sleep' => 'sleeps in Kernel#sleep',
    'worn' => 'sleeps in Kernel#sleep',
    'join' => 'waits in Thread#join',
    'read' => 'waits in IO#read',
    'select' => 'waits in IO.select',
    'select socket' => 'waits in IO.select',
    'accept' => 'waits in TCPServer#accept',
    'pool 001' => 'waits in Thread::Queue#pop'
  }.freeze
  # The scheduler's clock may be a tick behind.
  TICK = 10_000_000 # ns
  TIMES = ', [\d.]+ m?s'
  # What they wait for is of the kernel.
  ON = { 'read' => /\Apipe:/, 'select' => /\Apipe:/, 'select socket' => /\Asocket:/, 'accept' => /\Asocket:/ }.freeze
  NOT_IDLE = ['lock', 'synchronize', 'monitor', 'read', 'mutex holder'].freeze

  def test_what_each_thread_waits_in
    start_waits
    [[], %w[--native]].each do |options|
      found = threads(*options)
      WAITS.each do |name, doing|
        thread = found.fetch(@tids.fetch(name)[0])
        assert_equal doing, thread['doing'], "#{name} #{options}"
        assert_equal doing.split[-1], thread['waits_in']
        assert_equal ['sleeping', false], thread.values_at('state', 'changing'), name
        assert_equal !NOT_IDLE.include?(name), thread['idle'], name
      end
    end
  end

  def test_what_the_kernel_says
    start_waits
    found = threads
    assert_equal 'futex', found.fetch(@tids['lock'][0])['syscall']
    assert_match(/\Ap?(poll|select)/, found.fetch(@tids['select'][0])['syscall'])
  end

  def test_how_long_each_has_waited
    start_waits
    sleep 0.3
    before = now
    found = threads
    after = now
    least, most = @since.reverse.zip([before, after]).map { |since, at| at - since }
    worn = found.fetch(@tids.fetch('worn')[0]).fetch('for_ns')
    assert_operator worn, :<=, after - @worn + TICK + stolen_ns
    (WAITS.keys - ['mutex holder']).each do |name|
      ns = found.fetch(@tids.fetch(name)[0]).fetch('for_ns')
      assert_operator ns, :<=, most, name
      # Those that wait for a lock look around meanwhile.
      assert_operator ns, :>=, least - TICK - stolen_ns, name unless %w[lock synchronize monitor].include?(name)
    end
  end

  def test_what_each_thread_waits_for
    start_waits
    found = threads
    WAITS.each_key do |name|
      thread = found.fetch(@tids.fetch(name)[0])
      ON[name] ? assert_match(ON[name], thread['file']) : refute(thread['descriptor'], "#{name} #{thread}")
    end
  end

  # One of two that never sleep has the GVL. It may go over between the one and the other being read, and who has
  # just been given it is in no queue, but still asleep.
  def test_who_waits_for_the_gvl
    start_waits(2)
    holders = []
    waits = Array.new(20) do
      found = threads
      holders += holders_of_gvl(found)
      doing = @tids.fetch('spinning').map { |tid| found.fetch(tid)['doing'] }
      assert_empty doing - ['running', 'runnable, waits for a CPU', 'waits for the GVL', 'waits in futex', 'sleeping']
      doing.count('waits for the GVL')
    end
    assert_operator waits.count(1), :>=, 10, waits.inspect
    assert_operator holders.size, :>=, 5
    assert_equal 'sleeps in Kernel#sleep', threads.fetch(@tids['sleep'][0])['doing']
  end

  def test_a_stopped_process
    start_waits(1)
    Process.kill(:STOP, @target.pid)
    Live.wait_until('it to stop') { File.read("/proc/#{@target.pid}/stat").include?(') T ') }
    assert_equal [%w[stopped stopped]], threads.values.map { |t| t.values_at('state', 'doing') }.uniq
  end

  # As by `docker pause`. To the kernel they sleep.
  def test_a_frozen_process
    start_waits(1)
    found = {}
    in_control_group(@target) do |group|
      freeze(group)
      found = threads
      File.write("#{group}/cgroup.freeze", '0')
    end
    assert_equal %w[stopped], found.values.map { |thread| thread['state'] }.uniq
    found.each_value { |thread| assert_match(/\Afrozen\b/, thread['doing']) }
    WAITS.each { |name, doing| assert_equal "frozen in #{doing.split[-1]}", found.fetch(@tids.fetch(name)[0])['doing'], name }
  end

  def test_who_holds_what_others_wait_for
    start_waits
    found = threads
    waiters = { 'mutex holder' => %w[lock synchronize], 'monitor holder' => %w[monitor] }
    waiters.each do |holder, names|
      holding = found.fetch(@tids[holder][0])
      names.each { |name| assert_equal holding['tid'], found.fetch(@tids[name][0])['held_by'], name }
      assert_equal names.flat_map { |name| @tids[name] }.sort, holding['waiters']
      refute holding['idle']
    end
    assert_equal 3, found.values.count { |thread| thread.key?('held_by') }
    assert_equal 2, found.values.count { |thread| thread.key?('waiters') }
  end

  def test_who_holds_it_in_words
    start_waits
    tid = @tids['mutex holder'][0]
    text = Rbpf.read('dump', '-p', @target.pid)
    assert_match(/^thread #{tid} "mutex holder"  \(sleeps in Kernel#sleep#{TIMES}; holds what 2 threads wait for\)$/, text)
    line = /held by thread #{tid} "mutex holder" in block in Held#hold_mutex  \S*waits\.rb:\d+$/
    assert_match(/\(waits in Thread::Mutex#lock, at least#{TIMES[1..]}\)\n    #{line}/, text)
    assert_match(/"monitor holder"  \(sleeps in Kernel#sleep#{TIMES}; holds what 1 thread waits for\)$/, text)
  end

  def test_threads_with_the_same_stack_are_one
    start_waits
    pool = (1..5).map { |i| @tids.fetch(format('pool %03d', i))[0] }
    heads = Rbpf.read('dump', '-p', @target.pid).scan(/^(?:thread|\d+ threads) .*$/)
    folded = heads.grep(/Queue#pop/)
    assert_equal 1, folded.size, heads.inspect
    assert_match(/\A5 threads [-, \d]+ "pool 001 … 005"  \(waits in Thread::Queue#pop#{TIMES}( to [\d.]+ m?s)?\)\z/, folded[0])
    assert_equal pool.sort, ids(folded[0])
    known = threads
    alone = Rbpf.read('dump', '-p', @target.pid, '--no-fold').scan(/^(?:thread|\d+ threads) .*$/)
    assert_equal known.keys.sort, alone.flat_map { |head| ids(head) }.sort
    assert_equal known.size, alone.size
    assert_equal known.keys.sort, heads.flat_map { |head| ids(head) }.sort
    [heads, alone].each { |list| assert_idle_last(list, known) }
  end

  private

  # The tids of the head of one or several threads.
  def ids(head)
    head[/threads? ([-, \d]+) "/, 1].split(', ').flat_map do |range|
      first, last = range.split('-').map { |id| Integer(id) }
      (first..(last || first)).to_a
    end
  end

  def assert_idle_last(heads, known)
    idle = heads.map { |head| known.fetch(ids(head)[0])['idle'] }
    assert_equal idle.sort_by { |is| is ? 1 : 0 }, idle
    assert_equal [false, true], idle.uniq
  end

  # Who is said to make others wait: another one that spins, and that has it.
  def holders_of_gvl(found)
    found.values.select { |thread| thread.key?('gvl_held_by') }.map do |thread|
      holder = found.fetch(thread['gvl_held_by'])
      assert_equal [true, true, 'waits for the GVL'],
                   [@tids['spinning'].include?(holder['tid']), holder['holds_gvl'], thread['doing']]
      refute_equal thread['tid'], holder['tid']
      holder['tid']
    end
  end

  def now
    Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond)
  end

  def start_waits(spinning = 0)
    @target = start('waits.rb', spinning)
    @tids, @since, @worn = @target.wait_for('waiting').values_at('tids', 'since', 'worn')
  end

  def threads(*options)
    dump('-p', @target.pid, *options)[0]['threads'].to_h { |thread| [thread['tid'], thread] }
  end
end
