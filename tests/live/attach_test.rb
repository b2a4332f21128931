# SPDX-License-Identifier: GPL-2.0-only
# frozen_string_literal: true

# Which processes can be recorded, and what becomes of a recording when they end.

require 'digest'
require 'open3'

require_relative 'support'

class AttachTest < LiveTest
  UNPRIVILEGED = 65_534 # nobody
  SUDO = { 'SUDO_UID' => UNPRIVILEGED.to_s, 'SUDO_GID' => UNPRIVILEGED.to_s,
           'SUDO_USER' => 'nobody' }.freeze

  NO_PIDS = ['', ' ', 'foo', '42,foo', '42x', '-1', '0', '1,,2', ',1', '1,', '99999999999', '1 2',
             '0x10'].freeze

  def test_a_pid_that_does_not_exist
    gone = Process.spawn('true').tap { |pid| Process.wait(pid) }
    result = Rbpf.run('record', '-p', gone, '-o', path('out'))
    assert_equal 3, result.code, result.err
    assert_match(/\Arbpf: error: .*\b#{gone}\b/, result.err)
    refute_path_exists path('out')
    assert_equal 3, Rbpf.run('dump', '-p', gone).code
  end

  def test_a_process_that_is_no_ruby
    sleeper = start_command(%w[sleep 60])
    %w[record dump].each do |command|
      result = Rbpf.run(command, '-p', sleeper.pid, chdir: @dir)
      assert_equal 3, result.code, result.err
      assert_match(%r{/(sleep|coreutils)\b}, result.err, 'the executable is named')
      assert_match(/not a Ruby process/, result.err)
    end
  end

  # rbpf often looks at what was started just before it when that is still a shell, or when its libraries are not loaded.
  def test_a_ruby_that_has_only_just_been_started
    script = 'sleep 1; exec "$@"'
    spin = 'finish = Process.clock_gettime(1) + 2; nil while Process.clock_gettime(1) < finish'
    target = start_command(['sh', '-c', script, 'sh', *ruby.command('-e', spin)])
    result = Rbpf.run('record', '-p', target.pid, '-d', '1s', '-o', path('young.data'))
    assert_equal 0, result.code, result.err
    assert_operator Recording.new(path('young.data')).samples.size, :>, 10
  end

  def test_pid_lists_that_are_none
    NO_PIDS.each do |list|
      result = Rbpf.run('record', '-p', list, '-o', path('out'))
      assert_equal 2, result.code, "-p #{list.inspect}: #{result.err}"
      assert_match(/\Arbpf: error: /, result.err)
      refute_path_exists path('out')
    end
  end

  def test_a_target_that_ends_while_recorded
    target = start('short.rb', 0.4, 0, 'wait')
    rbpf = attach([target], '-F', 999)
    target.go
    result = rbpf.wait
    assert_equal 0, result.code, result.err
    assert_match(/pid #{target.pid} (exited|ended)/, result.err)
    assert_sane_recording(recording)
    assert_cpu_ns 0.4e9, recording.row('Oracle.spin')['total_ns'], 0.1
    assert_operator recording.row('Short#last')['total_ns'], :>, 0.15e9
  end

  def test_a_target_that_ends_without_a_sample
    target = start_command(ruby.command('-e', '$stdout.sync = true; puts %q({"waiting": true}); sleep'))
    rbpf = attach([target], '-F', 1)
    target.kill
    result = rbpf.wait
    assert_equal 3, result.code, result.err
    assert_match(/^rbpf: error: pid #{target.pid} exited before the first sample\n  hint: .*--mode states/, result.err)
  end

  def test_a_target_that_is_killed_while_recorded
    target = start('heartbeat.rb')
    rbpf = attach([target], '-F', 999)
    sleep 0.5
    target.kill
    result = rbpf.wait
    assert_equal 0, result.code, result.err
    assert_sane_recording(recording)
  end

  def test_a_target_that_ends_at_once
    command = ruby.command('-e', 'exit!')
    result = Rbpf.run('record', '-o', path('rbpf.data'), '--as-root', '--', *command)
    assert_includes [0, 3], result.code, result.err
    refute_match(/error: .*internal/, result.err)
  end

  def test_one_of_two_targets_ends
    targets = [start('short.rb', 0.2, 0, 'wait'), start('burn.rb', 0.6)]
    rbpf = attach(targets, '-F', 999)
    targets.each(&:go)
    targets[1].wait_for('ready')
    assert_equal 0, rbpf.stop.code
    assert_sane_recording(recording)
    assert_operator recording.row('Short#first')['total_ns'], :>, 0.05e9
    assert_operator recording.row('Burner#heavy')['total_ns'], :>, 0.2e9
  end

  def test_duration
    target = start('heartbeat.rb')
    target.wait_for('waiting')
    before = Live.now
    result = Rbpf.run('record', '-p', target.pid, '-d', '700ms', '-o', path('rbpf.data'))
    took = Live.now - before
    assert_equal 0, result.code, result.err
    assert_includes 0.69e9..(took * 1e9), recording.summary['duration_ns']
    assert_operator recording.summary['duration_ns'], :<, 1.3e9, 'no longer than was asked for'
    assert_operator took, :>=, 0.7
    refute target.ended?, 'the target goes on'
  end

  def test_sigterm_is_an_end_too
    target = start('heartbeat.rb')
    rbpf = attach([target], '-F', 999)
    sleep 0.3
    rbpf.signal(:TERM)
    assert_equal 0, rbpf.wait.code
    assert_sane_recording(recording)
  end

  def test_a_command_is_recorded_from_its_start
    result = record_command(['short.rb', 0.6])
    assert_equal 0, result.code, result.err
    assert_sane_recording(recording)
    %w[Short#first Short#last].each do |label|
      assert_cpu_ns 0.3e9, recording.row(label)['total_ns'], 0.1, label
    end
  end

  unless RubyInstall.under_test.chroot?
    def test_a_command_is_run_as_the_invoking_user
      FileUtils.chmod(0o755, @dir)
      result = record_command(['short.rb', 0.1], env: SUDO, as_root: false)
      assert_equal 0, result.code, result.err
      said = JSON.parse(result.out.lines.last)
      assert_equal [UNPRIVILEGED, UNPRIVILEGED], said.values_at('uid', 'gid')
      refute_includes said['groups'], 0
      assert_equal UNPRIVILEGED, File.stat(recording.file).uid, 'to be read without sudo'
      assert_operator recording.totals['samples'], :>, 0
    end
  end

  def test_as_root
    result = record_command(['short.rb', 0.1], env: SUDO)
    assert_equal 0, JSON.parse(result.out.lines.last)['uid'], result.err
  end

  def test_exit_with_child
    assert_equal 0, record_command(['short.rb', 0.05, 7]).code
    assert_equal 7, record_command(['short.rb', 0.05, 7], '--exit-with-child', '--force').code
    killed = Rbpf.run('record', '-o', path('rbpf.data'), '--as-root', '--exit-with-child', '--',
                      *ruby.command('-e', 'Process.kill(:KILL, Process.pid)'))
    assert_equal 128 + Signal.list['KILL'], killed.code, killed.err
  end

  # As wait(2) has it.
  def test_how_a_process_ended
    { 'exit!(7)' => 7 << 8, 'exit!(0)' => 0, 'Process.kill(:KILL, Process.pid)' => Signal.list['KILL'] }.each do |code, status|
      @recording = nil
      result = Rbpf.run('record', '-F', 999, '-o', path('rbpf.data'), '--as-root', '--',
                        *ruby.command('-e', "#{SPIN}; #{code}"))
      assert_equal 0, result.code, result.err
      process = recording.json['processes'].fetch(0)
      assert_equal status, process['exit_status'], code
      # Taking down its memory, after that, is CPU time of the process, too.
      in_ruby = recording.samples.select { |sample| sample.frames.any?(&:ruby?) }
      assert_operator process['exit_ns'], :>=, in_ruby.map(&:ts_ns).max, code
    end
  end

  SPIN = 'now = -> { Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID) }; nil while now.call < 0.2'

  # What is asked of root is given back once the targets are found.
  def test_privileges_are_given_up
    target = start('heartbeat.rb')
    rbpf = attach([target], '-F', 999)
    effective, permitted = %w[CapEff CapPrm].map { |key| status_of(rbpf.pid, key).hex }
    assert_equal effective, permitted, 'nothing can be had back'
    { CAP_SYS_ADMIN: 21, CAP_SYS_MODULE: 16, CAP_NET_ADMIN: 12, CAP_SETUID: 7, CAP_SYS_RAWIO: 17 }.each do |name, bit|
      assert_equal 0, effective[bit], name
    end
    assert_equal 1, effective[19], 'CAP_SYS_PTRACE is needed'
    assert_equal 0, rbpf.stop.code
  end

  # The buffer is full while rbpf stands still: what did not fit is counted, and what comes later is named.
  def test_samples_that_are_lost
    target = start('burn.rb', 3, 2)
    rbpf = attach([target], '-F', 4_999, '--ring', '64K')
    rbpf.signal(:STOP)
    target.go
    Live.wait_until('samples enough to lose some') { Live.cpu_time(target.pid) > 0.8 }
    goes_on = Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond)
    rbpf.signal(:CONT)
    target.wait_for('ready')
    result = rbpf.stop
    assert_equal 0, result.code, result.err
    assert_losses(recording, result.err)
    assert_named_again(recording.samples.select { |sample| sample.ts_ns > goes_on + 100_000_000 })
  end

  # Who takes the recording stands still for seconds, as a disk that is slow: nothing is lost meanwhile.
  def test_a_slow_disk
    File.mkfifo(path('slow'))
    target = start('burn.rb', 4, 2)
    reader = Thread.new { read_slowly(path('slow'), path('rbpf.data')) }
    rbpf = attach([target], '-F', 9_999, '--ring', '256K', '-o', path('slow'))
    target.go
    target.wait_for('ready')
    result = rbpf.stop
    assert_operator reader.value, :>, 128 << 10, 'more than the pipe holds'
    assert_equal 0, result.code, result.err
    assert_sane_recording(recording)
    assert_equal 0, recording.totals['lost'], result.err
  end

  # It ends as after -d: complete, with half of what was free.
  def test_a_disk_that_gets_full
    mount_small('96k')
    target = start('burn.rb', 30, 4)
    rbpf = attach([target], '-F', 9_999, '-o', path('small/rbpf.data'))
    target.go
    result = rbpf.wait
    assert_equal 0, result.code, result.err
    assert_match(/^rbpf: warning: ended after .* s: only .* kB is free on the file system of .*rbpf.data; saved/, result.err)
    assert_match(/^  hint: /, result.err)
    assert_sane_recording(Recording.new(path('small/rbpf.data')))
    assert_includes 40_000..90_000, File.size(path('small/rbpf.data'))
  ensure
    system('umount', '-l', path('small'), err: File::NULL)
  end

  def test_a_recording_that_is_as_large_as_it_may_become
    target = start('burn.rb', 60, 2)
    rbpf = attach([target], '-F', 9_999, '--max-size', '64K')
    target.go
    result = rbpf.wait
    assert_equal 0, result.code, result.err
    assert_match(/^rbpf: warning: ended after .* s: the recording has reached --max-size: [\d.]+ kB; saved/, result.err)
    assert_sane_recording(recording)
    assert_includes 65_536..400_000, File.size(path('rbpf.data'))
  end

  # The second does not take the file away from the first, which goes on writing to it.
  def test_two_recordings_into_one_file
    target = start('heartbeat.rb')
    first = attach([target], '-F', 999)
    second = Rbpf.run('record', '-p', target.pid, '-d', '0.2', '-o', path('rbpf.data'))
    assert_equal 1, second.code, second.err
    assert_match(/^rbpf: error: cannot replace .*rbpf.data: another rbpf is writing it\n  hint: -o FILE /, second.err)
    result = first.stop
    assert_equal 0, result.code, result.err
    refute_path_exists path('rbpf.data.old')
    assert_sane_recording(recording)
    assert_equal 0, Rbpf.run('record', '-p', target.pid, '-d', '0.2', '-o', path('rbpf.data')).code
    assert_path_exists path('rbpf.data.old')
  end

  def test_recordings_stay_if_nothing_is_recorded
    idle = start_command(ruby.command('-e', '$stdout.sync = true; puts %q({"waiting": true}); sleep'))
    idle.wait_for('waiting')
    target = start('heartbeat.rb')
    2.times { Rbpf.read('record', '-p', target.pid, '-F', 999, '-d', '0.5', '-o', path('rbpf.data')) }
    before = recordings
    assert_equal ['rbpf.data', 'rbpf.data.old'], before.keys
    { %w[--comm no-such-ruby -d 100ms] => 3, %w[-- ./no-such-command] => 3, %w[-- false] => 3,
      ['-p', idle.pid, '-d', '100ms'] => 0, ['-p', idle.pid, '-d', '100ms', '-f', 'flame'] => 6 }.each do |args, code|
      result = Rbpf.run('record', '-o', path('rbpf.data'), *args)
      assert_equal code, result.code, "#{args}: #{result.err}"
      assert_equal before, recordings, args.inspect
    end
  end

  # What is in them, by name.
  def recordings
    Dir.children(@dir).grep(/data/).sort.to_h { |name| [name, Digest::MD5.file(path(name)).hexdigest] }
  end

  def test_a_command_that_cannot_be_run
    result = Rbpf.run('record', '-o', path('rbpf.data'), '--', './no-such-command')
    refute_equal 0, result.code
    assert_match(/no-such-command/, result.err)
    refute_match(/hint/, result.err)
  end

  # Where a version manager has put Ruby is in the user's PATH, and not in sudo's.
  def test_a_command_that_only_the_user_would_find
    sudo = %w[SUDO_UID=65534 SUDO_GID=65534]
    result = Rbpf.run(*sudo, Live::RBPF, 'record', '-o', path('rbpf.data'), '--', 'no-such-ruby', 'job.rb', binary: 'env')
    assert_equal 3, result.code, result.err
    assert_match(/cannot run no-such-ruby: .*\n  hint: sudo has a PATH of its own: .* -- no-such-ruby/, result.err)
  end

  # -d ends the recording, and not the program.
  def test_a_command_that_goes_on
    command = ruby.command('-e', 'puts Process.pid; $stdout.flush; sleep 3; puts :ended')
    result = Rbpf.run('record', '-d', '500ms', '-o', path('rbpf.data'), '--as-root', '--', *command)
    assert_equal 0, result.code, result.err
    pid = result.out[/\A\d+/].to_i
    assert_match(/^rbpf: \S+ \(pid #{pid}\) goes on, and is not recorded any more$/, result.err)
    Process.kill(:KILL, pid)
  end

  # What stands on command lines may be secret: with --no-arguments only which program it is stays, of a process that is
  # forked and of one that is no Ruby, too; and of a title what has no arguments.
  ARGUMENTS = {
    ['fork', 'secret'] => ['%<ruby>s %<script>s'] * 2,
    ['awk', 'secret'] => ['%<ruby>s %<script>s', 'awk'],
    ['title', 'worker 1 of 2'] => ['worker 1 of 2'],
    ['title', '/usr/bin/job exec secret'] => ['/usr/bin/job'],
    ['title', 'job 1.2 [shop] --key secret'] => ['job 1.2 [shop]']
  }.freeze
  JOB = <<~'RUBY'
    def spin(seconds = 0.3)
      till = Process.clock_gettime(Process::CLOCK_MONOTONIC) + seconds
      nil while Process.clock_gettime(Process::CLOCK_MONOTONIC) < till
    end
    case ARGV[0]
    when 'fork' then Process.wait(fork { spin })
    when 'awk' then system('awk', 'BEGIN { while (i < 3000000) i++ } # secret')
    when 'title' then Process.setproctitle(ARGV[1]) && spin(2)
    end
    spin
  RUBY

  def test_arguments_are_left_out
    File.write(path('job.rb'), JOB)
    FileUtils.chmod(0o755, @dir)
    ARGUMENTS.each do |arguments, kept|
      command = ruby.command(path('job.rb'), *arguments)
      assert_equal 0, Rbpf.run('record', '--no-arguments', '-o', path('rbpf.data'), '--as-root', '--', *command).code
      said = Rbpf.json('export', '-f', 'json', '-i', path('rbpf.data'))
      expected = kept.map { |of| format(of, ruby: command[0], script: path('job.rb')) }
      assert_equal expected, said['processes'].map { |process| process['command'] }
      assert_includes JSON.generate(said), '"rbpf record"'
      refute_match(/secret|--no-arguments/, JSON.generate(said))
    end
  end

  def test_arguments_of_ruby_are_left_out
    assert_equal 0, Rbpf.run('record', '--no-arguments', '-o', path('rbpf.data'), '--as-root', '--', *ruby.command('-e', JOB)).code
    assert_equal ruby.command[0..0], recording.json['processes'].map { |process| process['command'] }
  end

  # As other profilers are asked for a picture.
  def test_a_recording_that_is_called_like_a_picture
    spin = 'finish = Process.clock_gettime(1) + 0.3; nil while Process.clock_gettime(1) < finish'
    Rbpf.read('record', '-o', path('out.svg'), '--as-root', '--', *ruby.command('-e', spin), chdir: @dir)
    assert_match(/<svg/, File.read(path('out.svg')))
    assert_sane_recording(recording)
  end

  def test_a_command_that_fails
    spin = 'finish = Process.clock_gettime(1) + 0.3; nil while Process.clock_gettime(1) < finish; '
    { 'exit! 3' => 'exited with status 3', 'Process.kill(:KILL, $$)' => 'was killed by signal 9 (Killed)' }
      .each do |ending, said|
      command = ['record', '-o', path('rbpf.data'), '--as-root']
      program = ['--', *ruby.command('-e', spin + ending)]
      result = Rbpf.run(*command, *program)
      assert_equal 0, result.code, result.err
      assert_match(/^rbpf: warning: .* \(pid \d+\) #{Regexp.escape(said)}\n  hint: --exit-with-child /, result.err)
      refute_match(/hint: --exit/, Rbpf.run(*command, '--exit-with-child', *program).err)
    end
    refute_match(/warning: .*pid/, Rbpf.run('record', '-o', path('rbpf.data'), '--as-root', '--',
                                            *ruby.command('-e', spin)).err)
  end

  def test_a_command_that_is_no_ruby
    result = Rbpf.run('record', '-F', 999, '-o', path('rbpf.data'), '--as-root', '--', 'sh', '-c',
                      'i=0; while [ $i -lt 200000 ]; do i=$((i + 1)); done')
    assert_equal 3, result.code, result.err
    assert_match(/^rbpf: error: .*not a Ruby process/, result.err)
  end

  # The child ends with the recording that it was started for.
  def test_interrupt_reaches_the_command
    stdin, writer = IO.pipe
    rbpf = Rbpf::Running.new('record', '-o', path('rbpf.data'), '-F', 999, '--as-root', '--',
                             *ruby.command(ruby.program('heartbeat.rb'), '30'), in: stdin)
    rbpf.wait_attached
    Live.wait_until('the command to run') { rbpf.out.include?('waiting') }
    child = JSON.parse(rbpf.out.lines.first)['pid']
    sleep 0.3
    rbpf.signal(:TERM)
    assert_equal 0, rbpf.wait.code
    Live.wait_until('the command to end', 5) { !File.exist?("/proc/#{child}") }
  ensure
    [stdin, writer].each(&:close)
    Process.kill(:KILL, child) if child && File.exist?("/proc/#{child}")
  end

  # Its own start is no reason to say that the program was too short, or used more time than there was.
  def test_interrupt_as_it_begins
    [0.1, 0.2, 0.3, 0.4].each do |after|
      rbpf = Rbpf::Running.new('record', '-o', path('rbpf.data'), '--as-root', '--',
                               *ruby.command(ruby.program('burn.rb'), '30'))
      sleep after
      rbpf.signal(:INT)
      err = rbpf.wait.err
      refute_match(/ends within about/, err)
      refute_match(/used .* CPU time in/, err)
    end
  end

  # timeout(1) sends its signal to rbpf, and then to the process group of both.
  def test_timeout_is_one_interrupt
    target = start('burn.rb', '30')
    err, status = Open3.capture2e('timeout', '3', Live::RBPF, 'record', '-p', target.pid.to_s, '-o', path('rbpf.data'))
    assert_equal 124, status.exitstatus, err
    assert_match(/^recorded /, err)
    refute_match(/interrupted/, err)
  end

  private

  # Copy what comes from the pipe @from into the file @to, with a pause of seconds at the beginning. Returns its size.
  def read_slowly(from, to)
    File.open(from, 'rb') do |pipe|
      bytes = pipe.readpartial(4096)
      sleep 5
      File.binwrite(to, bytes << pipe.read)
    end
  end

  # A file system of that size, in a directory of its own.
  def mount_small(size)
    Dir.mkdir(path('small'))
    assert system('mount', '-t', 'tmpfs', '-o', "size=#{size}", 'none', path('small'))
  end

  def status_of(pid, key)
    File.read("/proc/#{pid}/status")[/^#{key}:\s*(\S+)/, 1]
  end

  def assert_losses(recording, said)
    totals = recording.totals
    assert_operator totals['lost'], :>, 100
    assert_equal totals['lost'], recording.json['lost'].sum { |lost| lost['count'] }
    assert_equal ['ring-full'], recording.json['lost'].map { |lost| lost['reason'] }.uniq
    assert_equal totals['counters']['ticks'], totals['samples'] + totals['lost'], 'each tick is the one or the other'
    assert_equal totals['samples'], recording.samples.size
    assert_match(/lost +[1-9]/, said)
  end

  # Definitions were lost, too, and are sent again with the next sample of such a stack: not only in the next epoch,
  # which begins a second later.
  def assert_named_again(samples)
    assert_operator samples.size, :>, 50
    soon = samples.sort_by(&:ts_ns).first(300)
    nameless = soon.count { |sample| sample.frames.any? { |frame| frame.label == '[stack lost]' } }
    assert_operator nameless, :<=, soon.size * 0.02
  end

  def record_command(program, *options, env: {}, as_root: true)
    options += ['--as-root'] if as_root
    name, *arguments = program
    Rbpf.run('record', '-F', 999, '-o', path('rbpf.data'), *options, '--',
             *ruby.command(ruby.program(name), *arguments.map(&:to_s)), env: env)
  end
end
