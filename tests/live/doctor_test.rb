# SPDX-License-Identifier: GPL-2.0-only
# frozen_string_literal: true

# Finding Ruby processes, and saying whether they can be recorded.

require_relative 'support'

class DoctorTest < LiveTest
  def setup
    super
    @target = start('heartbeat.rb')
    @target.wait_for('waiting')
  end

  def test_ps_lists_the_target
    row = Rbpf.json('ps', '--json').find { |r| r['pid'] == @target.pid }
    assert row, 'the target is listed'
    assert_equal ruby.version, row['ruby']
    assert_equal ruby.version[/\A\d+\.\d+/], row['layout'].to_s[/\A\d+\.\d+/]
    assert_includes row['command'], 'heartbeat.rb'
    assert_includes File.read("/proc/#{@target.pid}/maps"), row['path']
    assert_equal [Process.pid, Etc.getpwuid.name], row.values_at('ppid', 'user') unless ruby.chroot?
    own = Live.cpu_time(@target.pid) * 1e9
    assert_includes 0..own, row['cpu_ns']
    line = /^\s*#{@target.pid}  root +[\d.]+ +\d+s  #{Regexp.escape(ruby.version)} .*heartbeat\.rb$/
    assert_match(line, Rbpf.read('ps'))
  end

  def test_ps_in_a_container
    result = Rbpf.run('--pid', '--fork', '--mount-proc', Live::RBPF, 'ps', binary: 'unshare')
    assert_equal 0, result.code, result.err
    assert_match(/^rbpf: warning: rbpf sees only the processes of this container; .*--pid=host/, result.err)
    refute_match(/of this container/, Rbpf.run('ps').err)
  end

  # As that of a Puma's worker, which changes it after the fork.
  def test_ps_shows_the_title_of_a_process
    title = 'puma: cluster worker 0: 123 [shop]'
    code = 'Process.setproctitle(ARGV[0]); puts %({"waiting":1}); $stdout.flush; sleep 60'
    titled = start_command(ruby.command('-e', code, title))
    titled.wait_for('waiting')
    row = Rbpf.json('ps', '--json').find { |r| r['pid'] == titled.pid }
    assert_equal title, row['command']
    assert_match(/^\s*#{titled.pid}  .* #{Regexp.escape(title)}$/, Rbpf.read('ps'))
    assert_match(/^pid #{titled.pid}  #{Regexp.escape(title)}   ruby /, Rbpf.read('dump', '-p', titled.pid))
  end

  def test_doctor_says_that_recording_will_work
    result = Rbpf.run('doctor', '-p', @target.pid)
    assert_equal 0, result.code, result.out + result.err
    assert_match(/#{Regexp.escape(ruby.version)}/, result.out)
    refute_match(/FAIL/, result.out)
    rows = Rbpf.json('doctor', '-p', @target.pid, '--json')
    assert_empty(rows.select { |row| row['needed'] && !row['ok'] })
    details = rows.to_h { |row| [row['name'].strip, row['detail']] }
    assert_match(/read a sample/, details['bpf'])
    assert(details.values.any? { |detail| detail.include?(ruby.version) }, details.inspect)
    assert_match(/\A\d+, by /, details['ec.thread_ptr'])
    assert_match(/ms once the binary is known\z/, details['attach'])
  end

  # The hard limit is asked for before anything is opened; what rbpf runs has the limit that it was given.
  def test_a_low_limit_of_open_files_is_raised
    hard = Process.getrlimit(:NOFILE).last
    result = Rbpf.run('record', '-o', path('few.data'), '--', 'sh', '-c', 'ulimit -n; sleep 0.1', rlimit_nofile: [24, hard])
    assert_equal "24\n", result.out, result.err
    assert_equal 0, Rbpf.run('dump', '-p', @target.pid, rlimit_nofile: [24, hard]).code
  end

  def test_too_few_open_files
    result = Rbpf.run_with_files(48, 'record', '-p', @target.pid, '-o', path('few.data'))
    assert_equal 4, result.code, result.err
    assert_match(/\Arbpf: error: rbpf may have 48 files open at a time, .*\n  hint: .*ulimit -n.*\n\z/, result.err)
    result = Rbpf.run_with_files(48, 'doctor')
    assert_equal 4, result.code
    assert_match(/^open files .* FAIL$/, result.out)
    assert_match(/^bpf +[a-z].* FAIL$/, result.out, 'it says why')
  end

  OPTIONAL = { 'memory sharing' => 'CAP_DAC_READ_SEARCH', 'mapped files' => 'CAP_CHECKPOINT_RESTORE',
               'priority' => 'CAP_SYS_NICE', 'kernel symbols' => 'CAP_SYSLOG' }.freeze

  def test_capabilities_that_recording_can_do_without
    sets = %w[--bounding-set --inh-caps].map do |set|
      "#{set}=#{OPTIONAL.values.map { |cap| "-#{cap.delete_prefix('CAP_').downcase}" }.join(',')}"
    end
    without = ->(*args) { Rbpf.run(*sets, Live::RBPF, *args, binary: 'setpriv') }
    said = without.call('doctor')
    all = Rbpf.read('doctor')
    assert_equal 0, said.code, said.out
    OPTIONAL.each do |row, capability|
      assert_match(/^#{row} +#{capability} is missing: .* no$/, said.out)
      assert_match(/^#{row} +#{capability} +ok$/, all)
    end
    result = without.call('record', '-p', @target.pid, '-d', '300ms', '-o', path('few.data'))
    assert_equal 0, result.code, result.err
    assert_match(/^rbpf: warning: without CAP_DAC_READ_SEARCH, /, result.err)
    refute_match(/CAP_/, Rbpf.run('record', '-p', @target.pid, '-d', '300ms', '-o', path('few.data')).err)
  end

  # The kernel measures BPF programs for nobody else, unless it does so for everybody.
  def test_without_the_kernels_statistics
    always = File.read('/proc/sys/kernel/bpf_stats_enabled').to_i == 1
    without = ->(*args) { Rbpf.run('--bounding-set=-sys_admin', '--inh-caps=-sys_admin', Live::RBPF, *args, binary: 'setpriv') }
    said = without.call('doctor')
    # Older kernels of Debian ask for it to attach to a clock.
    return missing('CAP_PERFMON is not enough for this kernel') if said.code == 4 && File.read('/proc/sys/kernel/perf_event_paranoid').to_i > 2

    assert_equal 0, said.code, said.out
    assert_match(always ? /^cost in the kernel .* ok$/ : /^cost in the kernel +CAP_SYS_ADMIN is missing: .* no$/, said.out)
    burning = start_command(ruby.command('-e', 'puts %({"waiting":1}); $stdout.flush; loop { 1 + 1 }'))
    # Another rbpf has the kernel measure them meanwhile, but who knows for how long?
    other = attach([burning])
    said = without.call('record', '-p', burning.pid, '-d', '500ms', '-o', path('few.data'))
    assert_equal 0, other.stop.code
    assert_equal 0, said.code, said.err
    assert_match(/^  kernel    .* a sample/, said.err)
    assert_equal !always, said.err.include?('what else it takes is not known'), said.err
  end

  # Its root has all capabilities, but not over the kernel. A machine may allow no such namespace: then /proc tells of
  # one.
  def test_a_user_namespace
    command = [Live::RBPF, 'record', '-p', @target.pid.to_s]
    result = Rbpf.run('--user', '--map-root-user', *command, binary: 'unshare')
    if result.err.start_with?('unshare:')
      proc = 'mount -t tmpfs tmpfs /proc && mkdir -p /proc/self/ns && ln -s "user:[1]" /proc/self/ns/user && exec "$@"'
      result = Rbpf.run('--mount', 'sh', '-c', proc, 'sh', *command, binary: 'unshare')
    end
    assert_equal 4, result.code, result.err
    assert_match(/\Arbpf: error: rbpf runs in a user namespace.*\n  hint: .*\n\z/, result.err)
  end

  def test_doctor_counts_collections
    target = start_command(ruby.command('-e', <<~RUBY))
      5.times { GC.start }
      3.times { GC.start(full_mark: false) }
      count, major = GC.stat.values_at(:count, :major_gc_count)
      puts %({"count": \#{count}, "major": \#{major}})
      $stdout.flush
      sleep
    RUBY
    said = target.wait_for('count')
    rows = Rbpf.json('doctor', '-p', target.pid, '--json')
    assert_equal "#{said['count']} collections so far, #{said['major']} of them major",
                 rows.find { |row| row['name'].strip == 'garbage collector' }['detail']
  end

  # Its counts change while they are read.
  def test_doctor_knows_a_collector_that_runs_all_the_time
    target = start_command(ruby.command('--disable-gems', '-e', <<~RUBY))
      puts %({"ready": true})
      $stdout.flush
      loop { GC.start(full_mark: false, immediate_sweep: false) }
    RUBY
    target.wait_for('ready')
    4.times do
      row = Rbpf.json('doctor', '-p', target.pid, '--json').find { |r| r['name'].strip == 'garbage collector' }
      assert row['ok'], row['detail']
      assert_match(/\A\d+ collections so far/, row['detail'])
    end
  end

  # The thread has another fiber, and its ractor another running EC, from one read to the next.
  def test_doctor_knows_a_thread_that_changes_fibers_all_the_time
    target = start_command(ruby.command('--disable-gems', '-e', <<~RUBY))
      numbers = Enumerator.new { |y| loop { y << 1 } }
      puts %({"ready": true})
      $stdout.flush
      loop { numbers.next }
    RUBY
    target.wait_for('ready')
    8.times do
      result = Rbpf.run('doctor', '-p', target.pid)
      assert_equal 0, result.code, result.out
      refute_match(/^collecting thread .* no$/, result.out)
    end
  end

  def test_doctor_says_that_a_process_is_no_ruby
    sleeper = start_command(%w[sleep 60])
    result = Rbpf.run('doctor', '-p', sleeper.pid)
    assert_equal 3, result.code, result.out + result.err
    assert_match(/not a Ruby process.*FAIL/, result.out)
    assert_match(/^result: recording works here, but not for pid #{sleeper.pid}$/, result.out)
    assert_equal 3, Rbpf.run('doctor', '-p', sleeper.pid, '--json').code
    gone = Process.spawn('true').tap { |pid| Process.wait(pid) }
    result = Rbpf.run('doctor', '-p', gone)
    assert_equal 3, result.code
    assert_match(/^target +no process with pid #{gone} .* FAIL\nresult: /, result.out)
  end

  def test_dump_for_people
    text = Rbpf.read('dump', '-p', @target.pid)
    assert_match(/pid #{@target.pid}\b.*#{Regexp.escape(ruby.version)}/, text)
    assert_match(/<main>\s+.*heartbeat\.rb:\d+/, text)
  end

  def test_dump_has_every_thread
    dump = Rbpf.dump(@target.pid)
    assert_equal [@target.pid, ruby.version], dump.values_at('pid', 'ruby')
    ruby_threads = dump['threads'].reject { |thread| thread['frames'].empty? }
    assert_equal [@target.pid], ruby_threads.map { |thread| thread['tid'] }
    assert_includes %w[running sleeping], ruby_threads[0]['state']
  end
end
