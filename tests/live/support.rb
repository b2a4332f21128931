# SPDX-License-Identifier: GPL-2.0-only
# frozen_string_literal: true

# What the live tests share: rbpf, and recordings read back. The programs are in programs.rb.
#
#   RBPF       the binary under test; ./rbpf of this repository if not set
#   CI=true    what a test needs and does not find is a failure, not a skip

# Gems that are installed, like Rails', have plugins for minitest, which print results in another form.
ENV['MT_NO_PLUGINS'] = 'true'

require 'etc'
require 'minitest/autorun'
require 'tmpdir'

require_relative 'labels'
require_relative 'programs'
require_relative 'stacks'

# rbpf as a process.
module Rbpf
  Result = Struct.new(:status, :out, :err) do
    def code
      status.exitstatus || 128 + status.termsig
    end
  end

  # It should have succeeded.
  class Failed < StandardError
    attr_reader :code

    def initialize(arguments, result)
      super("rbpf #{arguments.join(' ')}: status #{result.code}\n#{result.err}")
      @code = result.code
    end
  end

  module_function

  # Runs rbpf to its end.
  def run(*arguments, env: {}, seconds: Live::PATIENCE, **options)
    running = Running.new(*arguments, env: env, **options)
    running.wait(seconds)
  end

  # Runs rbpf, which may have so many files open at a time, and cannot raise that.
  def run_with_files(files, *arguments)
    run('--bounding-set=-sys_resource', '--inh-caps=-sys_resource', 'prlimit', "--nofile=#{files}", Live::RBPF,
        *arguments, binary: 'setpriv')
  end

  # Runs rbpf, which has to succeed, and returns what it printed.
  def read(*arguments, **options)
    result = run(*arguments, **options)
    raise Failed.new(arguments, result) unless result.code.zero?

    result.out
  end

  def json(*arguments, **options)
    JSON.parse(read(*arguments, **options))
  end

  def dump(pid)
    json('dump', '-p', pid.to_s, '--json')
  end

  # An rbpf that has been started.
  class Running
    attr_reader :pid

    def initialize(*arguments, binary: Live::RBPF, env: {}, **options)
      @out = Tempfile.new('rbpf-out')
      @err = Tempfile.new('rbpf-err')
      @arguments = arguments
      @pid = Process.spawn({ 'LC_ALL' => 'C.UTF-8' }.merge(env), binary, *arguments.map(&:to_s),
                           in: File::NULL, out: @out.path, err: @err.path, **options)
    end

    # Until it says that it records.
    def wait_attached(seconds = Live::PATIENCE)
      Live.wait_until("rbpf #{@arguments.join(' ')} to attach; it said: #{err}", seconds, pid: pid) do
        err.match?(/attached|recording/) || (ended? && raise("rbpf ended: #{err}"))
      end
      self
    end

    def out
      File.read(@out.path, encoding: 'UTF-8')
    end

    def err
      File.read(@err.path, encoding: 'UTF-8')
    end

    def ended?
      return true if @status

      _, @status = Process.wait2(pid, Process::WNOHANG)
      !@status.nil?
    end

    def signal(name)
      Process.kill(name, pid) unless ended?
    end

    def wait(seconds = Live::PATIENCE)
      begin
        Live.wait_until("end of rbpf #{@arguments.join(' ')}", seconds, pid: pid) { ended? }
      rescue RuntimeError
        signal(:KILL)
        Process.wait(pid)
        raise
      end
      Result.new(@status, out, err)
    end

    # What Ctrl-C does.
    def stop
      signal(:INT)
      wait
    end
  end
end

# A recording as `rbpf export -f json` tells it, with the VM's stacks: the only place that knows the
# shape of that (doc/json.md). Ids are places in arrays; stack 0 is the empty one, and a stack is its innermost
# frame and the stack of its callers:
#
#   {"totals":    {"samples": …, "lost": …, …},
#    "processes": [{"pid": …, …}, …],
#    "threads":   [{"process": id, "tid": …, "name": …, …}, …],
#    "frames":    [{"kind": …, "label": …, "path": …, "line": …, …}, …],
#    "stacks":    [{"parent": id, "frame": id}, …],
#    "samples":   [{"ts_ns": …, "thread": id, "stack": id, "value": …, …}, …], …}
class Recording
  NO_SAMPLES = 6 # the exit status

  Sample = Struct.new(:pid, :tid, :thread, :frames, :value, :ts_ns, :before_exit_ns, :request) do
    def unresolved?
      frames.any? { |frame| frame.kind == 'unknown' || frame.label.include?('[unknown]') }
    end
  end

  attr_reader :file

  def initialize(file)
    @file = file
  end

  def samples
    @samples ||= json['samples'].map do |s|
      thread = json['threads'][s['thread']]
      process = json['processes'][thread['process']]
      before_exit = process['exit_ns'] && (process['exit_ns'] - s['ts_ns'])
      Sample.new(process['pid'], thread['tid'], thread['name'], stack(s['stack']), s['value'],
                 s['ts_ns'], before_exit, s['request'] && json['requests'][s['request']]['name'])
    end
  end

  # Those that have a frame of that name, or of one that matches.
  def samples_with(label)
    samples.select { |sample| sample.frames.any? { |frame| label === frame.label } }
  end

  # Without those few that have a frame without a name: see LiveTest#assert_sane_recording.
  def resolved
    @resolved ||= samples.reject(&:unresolved?)
  end

  def threads
    json['threads']
  end

  def frames
    @frames ||= json['frames'].map { |frame| Frame.from(frame) }
  end

  def report(*options)
    Rbpf.json('report', '-i', file, '--json', *options)
  end

  def summary
    @summary ||= report['summary']
  end

  def totals
    json['totals']
  end

  def rows(*options)
    report(*options)['rows']
  end

  # The same, and none where no sample passes the filters.
  def rows_if_any(*options)
    rows(*options)
  rescue Rbpf::Failed => e
    raise unless e.code == NO_SAMPLES && e.message.include?('passes the filters')

    []
  end

  # The row of a method.
  def row(label)
    rows.find { |row| row['label'] == label }
  end

  # All frames of a stack, innermost first.
  def stack(id)
    @stacks ||= []
    @stacks[id] ||= [].tap do |list|
      while (frame = json['stacks'][id]['frame'])
        list << frames[frame]
        id = json['stacks'][id]['parent']
      end
    end
  end

  def json
    @json ||= Rbpf.json('export', '-f', 'json', '--stack', 'ruby', '-i', file)
  end
end

class LiveTest < Minitest::Test
  # What is sampled is a matter of chance, and a machine has other things to do. So that one case in some
  # thousands is no failure of them all, this many times in a run a test is tried once more, none more than twice. It is
  # said which, and why.
  MORE_TRIES = 6
  TRIES_OF_A_TEST = 2

  class << self
    attr_accessor :tries
  end
  self.tries = 0

  def run(again = 0)
    result = super()
    return result if result.passed? || result.skipped? || LiveTest.tries == MORE_TRIES || again == TRIES_OF_A_TEST

    LiveTest.tries += 1
    said = result.failures.map(&:message).join(' ').tr("\n", ' ')
    puts "\n#{self.class}##{name} failed, and is tried once more: #{said[0, 4_000]}"
    self.class.new(name).run(again + 1)
  end

  def setup
    @targets = []
    @stolen_before = Live.stolen_ns
    @pressure_before = [Live.now, Live.pressure_ns]
    @dir = Dir.mktmpdir('rbpf-live')
    return if File.executable?(Live::RBPF)

    missing "#{Live::RBPF} does not exist: make it first"
  end

  def teardown
    @targets.each(&:dispose)
    FileUtils.rm_rf(@dir)
  end

  # CPU time, of all CPUs and since the test began, that a hypervisor gave to others. The clock of a perf event
  # counts it and does not tick in it, a program's own clock does not count it.
  def stolen_ns
    Live.stolen_ns - @stolen_before
  end

  # Whether tasks waited for a CPU most of the time since the test began, which the two processes at a time of
  # a test alone do not bring about.
  def crowded?
    now, pressure = @pressure_before
    Live.pressure_ns - pressure > (Live.now - now) * 0.45e9
  end

  # That @sampled is @expected, of which @part may be missing, and what was stolen.
  def assert_cpu_ns(expected, sampled, part, message = nil)
    assert_in_delta expected, sampled, (expected * part) + stolen_ns, message
  end

  # A tick of a CPU meets what has just begun by chance: 3 standard deviations of that beside the error.
  def assert_sampled(cpu_ns, weights, error)
    chance = 3 * Math.sqrt(weights.sum { |weight| weight**2 })
    assert_in_delta cpu_ns, weights.sum, (cpu_ns * error) + chance + stolen_ns
  end

  def ruby
    RubyInstall.under_test
  end

  # s, for what runs beside busy loops, on a machine that may be busy with other things besides.
  BUSY_PATIENCE = 15 * Live::PATIENCE

  # Two programs that never sleep for each CPU, while the block runs.
  def beside_busy_loops
    loops = Array.new(2 * Etc.nprocessors) { Process.spawn('sh', '-c', 'while :; do :; done') }
    yield
  ensure
    loops&.each do |pid|
      Process.kill(:KILL, pid)
      Process.wait(pid)
    end
  end

  # Says that the test cannot be run here; where everything has to be there that is a failure.
  def missing(what)
    ENV['CI'] == 'true' ? flunk(what) : skip(what)
  end

  def path(name)
    File.join(@dir, name)
  end

  # A label of rbpf as the Ruby under test prints it.
  def as_printed(label)
    ruby.at_least?('3.4') ? label : Labels.bare(label)
  end

  # Starts a program of tests/programs on the Ruby under test.
  def start(program, *arguments, options: [], **spawn)
    start_command(ruby.command(*options, ruby.program(program), *arguments.map(&:to_s)), **spawn)
  end

  def start_command(argv, **spawn)
    Target.new(argv, **spawn).tap { |target| @targets << target }
  end

  # In a control group of its own, of version 2, wherever that is mounted; the block gets its directory.
  def in_control_group(target)
    groups = path('groups')
    before = "#{groups}#{File.readlines("/proc/#{target.pid}/cgroup").grep(/^0::/)[0].chomp.delete_prefix('0::')}"
    group = "#{groups}/rbpf-#{Process.pid}"
    FileUtils.mkdir(groups)
    assert system('mount', '-t', 'cgroup2', 'none', groups)
    FileUtils.mkdir(group)
    File.write("#{group}/cgroup.procs", target.pid.to_s)
    yield group
    File.write("#{before}/cgroup.procs", target.pid.to_s)
  ensure
    FileUtils.rmdir(group) if File.directory?(group)
    system('umount', groups)
  end

  # Returns when all in the control group is frozen.
  def freeze(group)
    File.write("#{group}/cgroup.freeze", '1')
    Live.wait_until('the control group to freeze') { File.read("#{group}/cgroup.events").include?('frozen 1') }
  end

  # An rbpf that records programs which wait for their "go".
  def attach(targets, *options)
    targets.each { |target| target.wait_for('waiting') }
    pids = targets.map(&:pid).join(',')
    Rbpf::Running.new('record', '-p', pids, '-o', path('rbpf.data'), *options).wait_attached
  end

  # The recording that a test makes.
  def recording
    @recording ||= Recording.new(path('rbpf.data'))
  end

  # Records one or several programs until all have said that they are ready.
  def record(targets, *options, short_lived_code: false)
    targets = Array(targets)
    rbpf = attach(targets, *options)
    targets.each(&:go)
    targets.each { |target| target.wait_for('ready') }
    assert targets.all?(&:ended?), "rbpf ended before them: #{rbpf.err}" if rbpf.ended?
    living = targets.reject(&:ended?).map(&:pid)
    @recorded = rbpf.stop
    assert_equal 0, @recorded.code, @recorded.err
    recording.tap do |made|
      short_lived_code ? assert_nothing_lost(made) : assert_sane_recording(made)
      assert_empty made.json['processes'].select { |p| living.include?(p['pid']) && p['exit_ns'] }
    end
  end

  # A method that is called for the first time in the last moment of a process is gone with the
  # process's memory before anyone can read its name.
  LAST_MOMENT = 5_000_000 # ns

  # What was made only now, and sampled just before a collection, may be gone before it is proven
  # what it was; on a busy machine, where rbpf comes later, that happens now and then.
  DOUBTFUL = 0.01

  # What holds for every recording of a healthy target, unless it drops code faster than it can be
  # named.
  def assert_sane_recording(recording)
    assert_nothing_lost(recording)
    unresolved = recording.samples.select(&:unresolved?)
    assert_equal recording.totals['unresolved'], unresolved.size
    living = unresolved.reject { |sample| (sample.before_exit_ns || LAST_MOMENT) < LAST_MOMENT }
    return if living.size <= 1 + (recording.samples.size * DOUBTFUL)

    assert_empty living.first(3).map { |sample| sample.frames.join(' < ') },
                 "#{living.size} of #{recording.samples.size} samples have a frame without a name"
  end

  # After each of the @forks the pages of the stacks are copied when they are written next.
  def assert_nothing_lost(recording, forks: 0)
    totals = recording.totals
    assert_operator totals['samples'], :>, 0
    assert_equal 0, totals['lost'], 'lost samples'
    # A tick now and then comes while a page of the stack is only being brought in, as in each process that begins.
    begun = [recording.json['processes'].size - forks, 1].max
    allowed = begun + (totals['samples'] / 1_000) + (forks / 2)
    assert_operator totals['failed'], :<=, allowed, 'walks that failed'
    assert_equal totals.slice(*recording.summary.keys), recording.summary.slice(*totals.keys)
    assert_equal totals['samples'], recording.samples.size
  end
end
