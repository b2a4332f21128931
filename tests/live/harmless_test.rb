# SPDX-License-Identifier: GPL-2.0-only
# frozen_string_literal: true

# A process does not notice that it is profiled, whatever becomes of rbpf.
#
#   KILL_CYCLES=1000  how often rbpf is started and killed; 50 if not set

require 'open3'
require_relative 'support'

class HarmlessTest < LiveTest
  HERTZ = 999
  # Of a second's samples; the period of a clock is up to a tenth longer than was asked for.
  PART = 0.85
  CYCLES = Integer(ENV.fetch('KILL_CYCLES', '50'))

  # Lines of /proc/PID/status that must not change at all.
  CONSTANT = %w[Name Umask Tgid Ngid Pid PPid TracerPid Uid Gid FDSize Groups Threads SigPnd ShdPnd
                SigBlk SigIgn SigCgt CapInh CapPrm CapEff CapBnd CapAmb NoNewPrivs Seccomp
                Cpus_allowed].freeze

  def setup
    super
    @target = start('heartbeat.rb', 60 + CYCLES)
    @target.wait_for('waiting')
    sleep 0.3 # let it settle
  end

  def test_the_target_is_not_touched
    before = observe
    rbpf = start_recording
    states = watch(1.5)
    during = observe
    said = rbpf.stop
    assert_equal 0, said.code, said.err
    after = observe
    assert_empty states.keys - %w[R S D], "states seen: #{states}"
    [during, after].each { |seen| assert_equal before.except(:rss_kb), seen.except(:rss_kb) }
    assert_operator after[:rss_kb] - before[:rss_kb], :<, 1_024, 'growth of its memory in kB'
    assert_beats_go_on
  end

  # rbpf runs ahead of others, what it runs does not: policy and niceness in /proc/PID/stat, and limits.
  def test_a_program_that_it_runs_does_not_inherit_its_priority
    shell = 'exec 2>/dev/null; cut -d" " -f19,41 /proc/self/stat; grep realtime /proc/self/limits; sleep 0.3; ' \
            'cut -d" " -f19,41 /proc/$PPID/stat'
    alone, = Open3.capture2('sh', '-c', shell)
    result = Rbpf.run('-v', 'record', '-o', path('run.data'), '--', 'sh', '-c', shell)
    assert_equal alone.lines[0..-2], result.out.lines[0..-2]
    assert_match(/^rbpf: priority: SCHED_RR/, result.err)
    assert_equal "-20 2\n", result.out.lines.last, 'niceness and policy of rbpf itself'
    shell += "; for child in $(cat /proc/$PPID/task/*/children); do [ $child = $$ ] || cut -d' ' -f19,41 /proc/$child/stat; done"
    result = Rbpf.run('-v', 'record', '--no-priority', '-o', path('run.data'), '--', 'sh', '-c', shell)
    assert_equal ["0 0\n"], result.out.lines[alone.lines.size - 1..].uniq, 'rbpf itself, and its helpers'
    refute_match(/priority/, result.err)
  end

  # As rbpf-record(1) has it; the ring apart.
  def test_memory_in_the_kernel
    said = File.read(File.expand_path('../../man/rbpf-record.1', __dir__))
    numbers = said[/about (\d+) MB \((\d+) MB with\n.Fl -no-native ;\n(\d+) MB more.*\n.*\nand (0\.\d) MB for each CPU/m]
    refute_nil numbers, 'the manual page says it in other words'
    all, less, more, cpu = Regexp.last_match.captures.map(&:to_f)
    cpus = Integer(File.read('/sys/devices/system/cpu/possible')[/\d+$/]) + 1
    { [] => all, %w[--no-native] => less, %w[--mode states] => all + more }.each do |options, megabytes|
      rbpf = attach([@target], *options)
      maps = kernel_memory(rbpf.pid)
      rbpf.stop
      assert_in_delta megabytes + cpus * cpu, maps / 1e6, 1 + cpus * 0.05, options.inspect
    end
  end

  RING = 27 # BPF_MAP_TYPE_RINGBUF

  # {} if it has been closed meanwhile.
  def facts_of_map(file)
    File.read(file).scan(/^(map_\w+|memlock):\s+(\d+)/).to_h
  rescue Errno::ENOENT
    {}
  end

  # Bytes of the BPF maps of @pid, each of which may be open more than once.
  def kernel_memory(pid)
    maps = Dir["/proc/#{pid}/fdinfo/*"].map { |file| facts_of_map(file) }.to_h { |facts| [facts['map_id'], facts] }
    maps.delete(nil)
    maps.values.reject { |map| map['map_type'].to_i == RING }.sum { |map| map['memlock'].to_i }
  end

  # Where memory runs out rbpf and its helpers are ended first, and what it runs when it would have been.
  def test_rbpf_goes_first_if_memory_runs_out
    shell = 'sleep 0.3; cat /proc/self/oom_score_adj /proc/$PPID/oom_score_adj; ' \
            'for child in $(cat /proc/$PPID/task/*/children); do [ $child = $$ ] || cat /proc/$child/oom_score_adj; done'
    result = Rbpf.run('record', '-o', path('run.data'), '--', 'sh', '-c', shell)
    own, *of_rbpf = result.out.lines.map(&:to_i)
    assert_equal File.read('/proc/self/oom_score_adj').to_i, own
    assert_operator of_rbpf.size, :>, 2, result.out
    assert_equal [1000], of_rbpf.uniq
  end

  def test_dump_does_not_touch_the_target
    before = observe
    10.times { Rbpf.dump(@target.pid) }
    assert_equal before.except(:rss_kb), observe.except(:rss_kb)
    assert_beats_go_on
  end

  # One in so many is killed only after the first second of samples was written.
  LATE = 10

  # It says nothing of a Ruby, and takes long.
  if RubyInstall.under_test.default?
    def test_rbpf_killed_again_and_again
      random = Random.new(1)
      before = observe
      CYCLES.times do |i|
        file = path("#{i}.data")
        rbpf = start_recording(file)
        late = (i % LATE).zero?
        # In the middle of a recording, or before anything is attached at all.
        rbpf.wait_attached if late || !random.rand(4).zero?
        used = late ? first_second : 0
        sleep random.rand * 0.4
        rbpf.signal(:KILL)
        assert_equal Signal.list['KILL'], rbpf.wait.status.termsig, 'it was still running'
        late ? assert_has_samples(file, used) : assert_readable(file)
        FileUtils.rm_f(file)
        assert_equal before[:status], observe[:status]
      end
      assert_equal before.except(:rss_kb), observe.except(:rss_kb)
      assert_beats_go_on
    end
  end

  # A recording that was killed has all but the last second or so, however little of a CPU the target gets.
  def test_a_killed_recording_is_kept
    rbpf = start_recording(path('rbpf.data'))
    rbpf.wait_attached
    used = first_second
    rbpf.signal(:KILL)
    rbpf.wait
    assert_operator used, :>, 0
    assert_has_samples(path('rbpf.data'), used)
  end

  # Each stack is another one, of the same few methods: rbpf need not read anything soon, and takes many together.
  DIFFERENT_STACKS = <<~'RUBY'
    STEPS = Array.new(8) do |i|
      define_method("step#{i}") { |n| n.zero? ? 200.times {} : 2.times { send(STEPS.sample, n - 1) } }
    end
    puts %({"ready": true})
    $stdout.flush
    loop { step0(12) }
  RUBY

  def test_rbpf_is_not_woken_for_each_sample
    @target = start_command(ruby.command('--disable-gems', '-e', DIFFERENT_STACKS))
    @target.wait_for('ready')
    rbpf = start_recording
    rbpf.wait_attached
    sleep 1
    samples = -cpu_ns
    woken = -switches(rbpf.pid)
    sleep 3
    samples = (samples + cpu_ns) * HERTZ / 1e9
    woken += switches(rbpf.pid)
    assert_equal 0, rbpf.stop.code
    assert_operator samples, :>, 200
    assert_operator woken, :<, samples / 2
  end

  private

  def switches(pid)
    Integer(File.read("/proc/#{pid}/status")[/^voluntary_ctxt_switches:\s*(\d+)/, 1])
  end

  # Of all threads of the target.
  def cpu_ns
    Dir["/proc/#{@target.pid}/task/*/schedstat"].sum { |file| Integer(File.read(file)[/\d+/]) }
  end

  def start_recording(file = path('rbpf.data'))
    Rbpf::Running.new('record', '-p', @target.pid, '-F', HERTZ, '-o', file)
  end

  # Readable, or readable and empty, or not begun: then it is said that there is none.
  def assert_readable(file)
    result = Rbpf.run('report', '-i', file)
    assert_includes File.size?(file) ? [0, 6] : [5], result.code, result.err
  end

  # CPU time of the target within a second. Its samples are in the file when this returns.
  def first_second
    before = cpu_ns
    sleep 1
    (cpu_ns - before).tap { sleep 1.5 }
  end

  def assert_has_samples(file, used)
    result = Rbpf.run('report', '-i', file, '--json')
    assert_equal 0, result.code, result.err
    assert_match(/warning: .*not closed properly/, result.err)
    assert_operator JSON.parse(result.out)['summary']['samples'], :>, (used * PART * HERTZ / 1e9) - 5
  end

  def assert_beats_go_on
    @target.go
    beats = @target.wait_for('beats')['beats']
    assert_operator beats, :>, 20
    assert @target.finish.success?
  end

  # What can be seen of the target from outside.
  def observe
    proc_dir = "/proc/#{@target.pid}"
    lines = File.readlines("#{proc_dir}/status").to_h { |line| line.chomp.split(":\t", 2) }
    {
      status: lines.slice(*CONSTANT),
      rss_kb: lines['VmRSS'].to_i,
      files: Dir.children("#{proc_dir}/fd").size,
      mapped: File.read("#{proc_dir}/maps").scan(%r{ (/.*)$}).flatten.uniq
    }
  end

  # {state => how often it was seen}, of all threads, looking as often as possible.
  def watch(seconds)
    stop = Live.now + seconds
    seen = Hash.new(0)
    while Live.now < stop
      Dir.glob("/proc/#{@target.pid}/task/*/status").each do |file|
        text = File.read(file)
        seen[text[/^State:\t(\w)/, 1]] += 1
        assert_equal '0', text[/^TracerPid:\t(\d+)/, 1]
      end
      sleep 0.001
    end
    seen
  end
end
