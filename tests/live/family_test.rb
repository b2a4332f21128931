# SPDX-License-Identifier: GPL-2.0-only
# frozen_string_literal: true

# Threads and children that begin while a process is recorded.

require_relative 'support'

class FamilyTest < LiveTest
  METHODS = %w[in_thread in_renamed_thread in_thread_of_thread in_child in_grandchild
               in_thread_of_child].freeze

  def setup
    super
    @target = start('family.rb', 0.15)
    @recording = record(@target, '-F', 999)
  end

  def test_new_threads_are_sampled_under_their_names
    # The kernel keeps 15 bytes of a name. 2.7 does not cut a longer one, and so does not set it.
    long, plain = threads_of('Family#in_thread').map { |name| name[0, 14] }.sort
    assert_match(ruby.at_least?('3.0') ? /\Aa name of more\z/ : /\Afamily\.rb:\d+\z/, long)
    assert_equal 'plain worker', plain
    assert_equal 2, threads_of('Family#in_thread').size
    assert_equal ['renamed'], threads_of('Family#in_renamed_thread')
    assert_equal ['inner'], threads_of('Family#in_thread_of_thread')
    assert_equal ['of child'], threads_of('Family#in_thread_of_child')
  end

  def test_children_are_sampled
    pids = %w[in_thread in_child in_grandchild].to_h { |name| [name, pids_of("Family##{name}")] }
    assert_equal [@target.pid], pids['in_thread']
    assert_equal 1, pids['in_child'].size
    assert_equal 1, pids['in_grandchild'].size
    assert_equal pids['in_child'], pids_of('Family#in_thread_of_child')
    assert_equal 3, pids.values.flatten.uniq.size
    assert_equal 3, @recording.summary['processes']
  end

  def test_each_gets_the_cpu_time_it_used
    (METHODS - %w[in_thread]).each { |name| assert_sampled(0.15e9, weights_of(name), 0.05) }
    assert_sampled(0.30e9, weights_of('in_thread'), 0.05)
  end

  def test_rows_by_thread_and_process
    threads = @recording.rows('--by', 'thread')
    assert_includes threads.map { |row| row['thread'] }, 'plain worker'
    assert_equal threads.sum { |row| row['self_ns'] }, @recording.summary['cpu_sampled_ns']
    processes = @recording.rows('--by', 'process')
    assert_equal 3, processes.size
    assert_equal processes.sum { |row| row['self_ns'] }, @recording.summary['cpu_sampled_ns']
  end

  private

  def weights_of(name)
    @recording.samples_with("Family##{name}").map(&:value)
  end

  def threads_of(label)
    @recording.samples_with(label).map(&:thread).uniq
  end

  def pids_of(label)
    @recording.samples_with(label).map(&:pid).uniq
  end
end

# Children and threads that use less CPU time than it takes until a clock of their own ticks.
class MomentsTest < LiveTest
  COUNT = 150
  SECONDS = 0.003 # at 199 Hz a clock ticks every 5 ms

  %w[children threads].each do |kind|
    define_method("test_#{kind}") do
      target = start('moments.rb', kind, COUNT, SECONDS)
      record(target, '-F', 199)
      assert_moments(target)
    end
  end

  # What begins wakes rbpf, which must not put off the next tick each time.
  def test_children_now_and_then
    target = start('moments.rb', 'children', COUNT, 2 * SECONDS, 0.06)
    record(target, '-F', 99)
    assert_moments(target)
  end

  def assert_moments(target)
    weights = recording.samples_with('Moments.in_moment').map(&:value)
    assert_sampled(target.wait_for('ready')['cpu'] * 1e9, weights, 0.05)
    assert_sampled(recording.totals['cpu_kernel_ns'], recording.samples.map(&:value), 0.05)
  end
end

# When nothing has begun for 10 s no CPU has a clock any more, and each thread has but its own.
class LateTest < LiveTest
  def test_threads_that_slept_for_long
    target = start('moments.rb', 'threads', 20, 0.03)
    rbpf = attach([target], '-F', 199)
    sleep 11.5
    target.go
    used = target.wait_for('ready')['cpu'] * 1e9
    assert_equal 0, rbpf.stop.code
    value = recording.samples_with('Moments.in_moment').sum(&:value)
    # How much each of them uses after its last tick is not known: half a period on average.
    assert_operator value, :>=, (used * 0.9) - stolen_ns
    assert_operator value, :<=, used * 1.1
  end
end

# It has the id of the main thread then, which had a clock; its own one had none.
class ExecByThreadTest < LiveTest
  def test_it_is_the_main_thread
    target = start('exec_by_thread.rb', 0.3)
    rbpf = attach([target], '-F', 999)
    target.go
    target.wait_for('ready')
    assert_equal 0, rbpf.stop.code
    %w[before_exec after_exec].each do |name|
      assert_sampled(0.3e9, recording.samples_with(/#{name}\z/).map(&:value), 0.05)
    end
    assert_sampled(recording.totals['cpu_kernel_ns'], recording.samples.map(&:value), 0.05)
  end

  # What it used before is that of the thread that it was.
  def test_its_states
    target = start('exec_by_thread.rb', 0.5)
    rbpf = attach([target], '--mode', 'states')
    target.go
    target.wait_for('ready')
    assert_equal 0, rbpf.stop.code
    cpu = recording.rows('--states').map { |row| row['states'].values_at('user', 'system', 'minor-fault').sum }.select { |ns| ns > 0.3e9 }
    assert_equal 2, cpu.size
    cpu.each { |ns| assert_in_delta 0.5e9, ns, 0.15e9 }
  end
end

if RubyInstall.under_test.default?
  # The kernel ends the clock of a thread that executes what it may not read, or what has privileges.
  class UnreadableExecTest < LiveTest
    LINGER = 11.5 # after so long without a birth no CPU has a clock any more
    EXEC_LATER = %(puts '{"waiting": true}'; $stdout.flush; $stdin.sysread(3); exec(*ARGV))

    def test_it_gets_another_clock
      copy = path('unreadable')
      FileUtils.cp(ruby.binary, copy)
      File.chmod(0o711, copy)
      File.chmod(0o755, @dir)
      target = start_command(['setpriv', '--reuid=65534', '--clear-groups', *ruby.command('-e', EXEC_LATER), copy,
                              ruby.program('heartbeat.rb')])
      rbpf = attach([target], '-F', 499)
      target.go
      sleep LINGER
      late_ns = Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond)
      sleep 1
      assert_equal 0, rbpf.stop.code
      refute_empty(recording.samples_with('Heartbeat#beat').select { |sample| sample.ts_ns > late_ns })
    end
  end
end

# Processes that ran before they are recorded.
class PreforkTest < LiveTest
  def test_running_descendants
    target = start('prefork.rb', 0.15)
    said = target.wait_for('waiting')
    record(target, '-F', 999)
    assert_family(target.pid, said)
    assert_match(/attached to pid #{target.pid} and 4 child processes \(ruby #{ruby.version[/\d+\.\d+/]}/, @recorded.err)
  end

  # Listed twice, once as itself.
  def test_a_child_and_its_parent
    target = start('prefork.rb', 0.15)
    said = target.wait_for('waiting')
    record(target, '-F', 999, '-p', said['helpers'].first)
    assert_family(target.pid, said)
  end

  def test_shell_that_waits_for_a_ruby
    shell = start_command(['sh', '-c', '"$@"; true', 'sh', *prefork])
    said = shell.wait_for('waiting')
    record(shell, '-F', 999)
    assert_family(said['pid'], said)
    assert_equal id_of(shell.pid), parent_of(said['pid'])
  end

  def test_shell_without_a_ruby
    shell = start_command(['sh', '-c', 'echo \'{"waiting": true}\'; read line; true'])
    shell.wait_for('waiting')
    rbpf = Rbpf.run('record', '-p', shell.pid.to_s, '-d', '1', '-o', path('rbpf.data'))
    assert_equal 3, rbpf.code, rbpf.err
    assert_match(/not a Ruby process/, rbpf.err)
  end

  # Its threads are, also those that begin later.
  def test_no_children
    target = start('family.rb', 0.15)
    recording = record(target, '-F', 999, '--no-children')
    seen = recording.samples.flat_map { |sample| sample.frames.map(&:label) }.uniq
    assert_equal %w[in_thread in_renamed_thread in_thread_of_thread].map { |name| "Family##{name}" }.sort,
                 seen.grep(/\AFamily#in_/).sort
    assert_equal [target.pid], recording.samples.map(&:pid).uniq
    assert_equal 1, recording.summary['processes']
    assert_sampled(recording.totals['cpu_kernel_ns'], recording.samples.map(&:value), 0.05)
  end

  def test_no_running_children
    target = start('prefork.rb', 0.15)
    target.wait_for('waiting')
    record(target, '-F', 999, '--no-children')
    assert_equal [target.pid], recording.samples.map(&:pid).uniq
    assert_equal 1, recording.summary['processes']
  end

  private

  def prefork
    ruby.command(ruby.program('prefork.rb'), '0.15')
  end

  def id_of(pid)
    recording.json['processes'].index { |process| process['pid'] == pid }
  end

  def parent_of(pid)
    recording.json['processes'][id_of(pid)]['parent']
  end

  def assert_family(master, said)
    assert_equal [master], pids_in('Prefork#in_master')
    assert_equal said['workers'].sort, pids_in('Prefork#in_worker')
    assert_equal said['helpers'].sort, pids_in('Prefork#in_helper')
    assert_cpu_ns 0.30e9, recording.row('Prefork#in_worker')['total_ns'], 0.1
    assert_cpu_ns 0.30e9, recording.row('Prefork#in_helper')['total_ns'], 0.1
    assert_equal [id_of(master)] * 2, said['workers'].map { |pid| parent_of(pid) }
    assert_equal said['workers'].map { |pid| id_of(pid) }.sort,
                 said['helpers'].map { |pid| parent_of(pid) }.sort
    assert_cpu_ns recording.totals['cpu_kernel_ns'], recording.totals['cpu_sampled_ns'], 0.1
  end

  def pids_in(label)
    recording.samples.select { |sample| sample.frames.any? { |f| f.label == label } }.map(&:pid).uniq.sort
  end
end

# What names itself after it was forked, as the workers of a server do.
class TitlesTest < LiveTest
  # The first worker has ended long before the recording does; the second names itself at its end.
  CODE = <<~'RUBY'
    $stdout.sync = true
    puts '{"waiting": true}'
    gets
    Process.wait(fork { Process.setproctitle('worker that ended'); sleep 2.5 })
    from, to = IO.pipe
    fork { Process.setproctitle('worker that lives'); to.puts; $stdin.read }
    from.gets
    Process.setproctitle('master of two')
    puts '{"ready": true}'
    gets
  RUBY

  def test_titles_that_processes_have_given_themselves
    target = start_command(ruby.command('-e', CODE))
    # The samples are few, and of 44 of a 3.4 six were in a collection within Kernel#fork, whose caller had only just been
    # made.
    titles = record(target, '-F', 999, short_lived_code: true).json['processes'].map { |process| process['command'] }
    assert_equal ['master of two', 'worker that ended', 'worker that lives'], titles
  end
end

# What publishes who it is for readers from outside, as OTEP 4719 says.
class AttributesTest < LiveTest
  SHOP = { 'service.name' => 'shop, "main"', 'service.version' => "2.1\u{fffd}[31m", 'team' => 'x=y' }.freeze

  def test_attributes_are_those_of_their_process
    target = start('otel/publish.rb')
    by_pid = record(target, '-F', 999).json['processes'].to_h { |process| process.values_at('pid', 'attributes') }
    pids = target.wait_for('ready')['pids']
    assert_equal [SHOP, {}, { 'service.name' => 'worker' }], by_pid.values_at(*pids)
  end

  def test_ps_and_a_process_that_ends_before_the_recording
    target = start('otel/publish.rb')
    rbpf = attach([target], '-F', 999)
    row = Rbpf.json('ps', '--json').find { |process| process['pid'] == target.pid }
    assert_equal SHOP, row['attributes']
    target.go
    target.wait_for('ready')
    sleep 1.5
    target.finish
    assert_equal 0, rbpf.wait.code
    assert_equal([SHOP, {}, { 'service.name' => 'worker' }],
                 recording.json['processes'].map { |process| process['attributes'] })
  end
end
