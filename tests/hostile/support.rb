# SPDX-License-Identifier: GPL-2.0-only
# frozen_string_literal: true

# What the hostile tests share. Each starts one or several processes of an unprivileged user that mean
# harm, and beside them an honest Ruby of another user; then rbpf has to do what it is there for:
#
#   it ends by itself, with the status that its manual page says, and in time
#   its memory stays below --memlimit and MARGIN
#   what it prints and writes can be read, and holds no control characters
#   the honest Ruby is sampled and named as if it were alone
#
# Time is taken without what rbpf waited for a CPU (/proc/PID/schedstat), and by how much of the CPU the honest
# process got meanwhile, which never sleeps, so that a busy machine does not decide.
#
#   RBPF_ASAN   an rbpf under ASan, for those tests that look for memory errors

require 'etc'
require 'fiddle'
require 'rbconfig'

require_relative '../live/support'

module Hostile
  HERE = __dir__
  ASAN = ENV.fetch('RBPF_ASAN', '')

  # Users that are nobody's.
  ATTACKER = 54_321
  HONEST = 54_322

  # The least that --memlimit takes, so that little suffices to go beyond.
  LIMIT = 32 << 20

  # What rbpf needs that it cannot give back: itself, its libraries, both mappings of the ring (8 MB) and
  # of the recording, and what it may take between two looks at how much it has; and its two workers, which
  # may take 48 MB each.
  MARGIN = (96 + (2 * 48)) << 20

  # What `record` may take beyond --duration, s: until it is attached, and from then to its end.
  ATTACH = 2.0
  END_IN = 1.0

  # Under ASan all takes longer, by about this.
  ASAN_SLOWER = 5

  # How much slower than alone all may be, and names are still complete.
  BUSY = 2.5

  # Characters that change what a terminal or a reader sees of the others: C0 but TAB and newline, DEL, C1,
  # the controls of bidirectional text, line and paragraph separators.
  CONTROLS = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200e\u200f\u202a-\u202e\u2066-\u2069\u2028\u2029]/.freeze

  module_function

  def as(uid, *argv)
    # With the test, also if that is killed.
    ['setpriv', "--reuid=#{uid}", "--regid=#{uid}", '--clear-groups', '--pdeathsig=KILL', *argv.map(&:to_s)]
  end

  # A C program or library of this directory, compiled once for all tests.
  def compiled(name, *flags)
    @compiled ||= {}
    @compiled[[name, flags]] ||= begin
      to = File.join(directory, "#{File.basename(name, '.c')}-#{@compiled.size}")
      ok = system('gcc', '-O1', '-w', *flags, '-o', to, File.join(HERE, name), '-lpthread', '-ldl')
      raise "cannot compile #{name}" unless ok

      to
    end
  end

  # Where others can read, as they may not where this repository is.
  def directory
    @directory ||= Dir.mktmpdir('rbpf-hostile').tap do |dir|
      File.chmod(0o755, dir)
      owner = Process.pid
      at_exit { FileUtils.rm_rf(dir) if Process.pid == owner }
    end
  end

  # A program of this directory where others can read it.
  def program(name)
    File.join(directory, name).tap do |to|
      FileUtils.cp(File.join(HERE, name), to) unless File.exist?(to)
    end
  end

  def read_proc(pid, name)
    File.read("/proc/#{pid}/#{name}")
  rescue SystemCallError
    ''
  end
end

# An rbpf whose memory and waiting are watched while it runs, and those of its children.
class Watched < Rbpf::Running
  attr_reader :hwm, :attached_at, :started_at, :ended_at

  # A process whose CPU time is noted, [[s, ns]…].
  attr_accessor :beside

  def initialize(*arguments, **options)
    @hwm = 0
    @waits = {}
    @started_at = Live.now
    super
  end

  # s that its threads could have run, but for other processes
  def waited
    @waits.values.sum / 1e9
  end

  def ended?
    return true if @status

    look
    super.tap { |ended| @ended_at ||= Live.now if ended }
  end

  def wait_attached(seconds = Live::PATIENCE)
    super
    @attached_at = Live.now
    @waited_attached = waited
    self
  end

  # s that it took to be attached, and from then on, without what it waited for a CPU
  def attaching
    attached_at - started_at - @waited_attached
  end

  def recording
    ended_at - attached_at - (waited - @waited_attached)
  end

  # Its own processes: itself and those it has forked.
  def family(of = pid)
    children = Dir["/proc/#{of}/task/*/children"].flat_map do |file|
      File.read(file).split.map(&:to_i)
    rescue SystemCallError
      []
    end
    [of, *children.flat_map { |child| family(child) }]
  end

  # Whether it had a controlling terminal at any time.
  def terminal?
    @terminal
  end

  # CPU time of the other process up to a moment, ns.
  def used_beside(seconds)
    (@noted.reverse_each.find { |at, _| at <= seconds } || @noted.first).last
  end

  private

  def look
    (@noted ||= []) << [Live.now, Hostile.read_proc(beside, 'schedstat').to_i] if beside
    @terminal ||= Hostile.read_proc(pid, 'stat')[/.*\) (.*)/m, 1].to_s.split[4].to_i != 0
    total = family.sum do |id|
      Dir["/proc/#{id}/task/*/schedstat"].each do |file|
        @waits[file] = File.read(file).split[1].to_i
      rescue SystemCallError, NoMethodError
        next
      end
      memory_of(id)
    end
    @hwm = total if total > @hwm
  end

  # Of a copy of rbpf, what it does not share with it.
  def memory_of(id)
    if Hostile.read_proc(id, 'comm').start_with?('rbpf-proxy', 'rbpf-open')
      return Hostile.read_proc(id, 'smaps_rollup').scan(/^Private_\w+:\s*(\d+)/).sum { |(kb)| kb.to_i } << 10
    end

    Hostile.read_proc(id, 'status')[/^VmHWM:\s*(\d+)/, 1].to_i << 10
  end
end

class HostileTest < LiveTest
  include Hostile

  def setup
    super
    File.chmod(0o755, @dir)
    @undo = []
  end

  def teardown
    @undo.reverse_each(&:call)
    super
  end

  # Something to be done at the end of the test, however it ends.
  def at_end(&block)
    @undo << block
  end

  # A file of a directory that the attacker may write to.
  def lair(name = nil)
    @lair ||= path('lair').tap do |dir|
      Dir.mkdir(dir)
      File.chown(ATTACKER, ATTACKER, dir)
    end
    name ? File.join(@lair, name) : @lair
  end

  # Starts an attacker and waits until it says that it is ready. Those in Ruby run on the Ruby of PATH.
  def attacker(name, *arguments, uid: ATTACKER, ready: true, flags: [], seconds: Live::PATIENCE, **spawn)
    argv = if name.end_with?('.rb')
             ['ruby', Hostile.program(name), *arguments]
           else
             [Hostile.compiled(name, *flags), *arguments]
           end
    spawned(argv, uid: uid, ready: ready, seconds: seconds, **spawn)
  end

  def spawned(argv, uid: ATTACKER, ready: true, seconds: Live::PATIENCE, **spawn)
    argv = uid ? Hostile.as(uid, *argv) : ['setpriv', '--pdeathsig=KILL', *argv]
    start_command(argv.map(&:to_s), pgroup: true, **spawn).tap do |target|
      at_end { end_group(target) }
      target.wait_for('ready', seconds) if ready
    end
  end

  # An honest Ruby, which burns Honest.work in Honest.known until it is killed.
  def honest
    @honest ||= spawned(['ruby', Hostile.program('honest.rb')], uid: HONEST)
  end

  # Records with rbpf, as all Rubies if nothing else is said, and asserts what has to hold always.
  def besiege(*options, duration: 2, limit: LIMIT, asan: false, env: {}, statuses: [0], **spawn)
    options = ['--all-ruby'] if options.empty?
    honest
    rbpf = record_beside(*options, '-d', "#{(duration * 1000).to_i}ms", limit: limit, asan: asan, env: env, **spawn)
    yield rbpf if block_given?
    finish_siege(rbpf, duration, limit: limit, asan: asan, statuses: statuses)
  end

  # The same, but it is stopped as by Ctrl-C while it records.
  def besiege_and_stop(*options, after: 0.5, limit: LIMIT, asan: false, **spawn)
    options = ['--all-ruby'] if options.empty?
    honest
    rbpf = record_beside(*options, limit: limit, asan: asan, **spawn)
    sleep after
    # From here on: what happened before is not measured.
    rbpf.instance_variable_set(:@attached_at, Live.now)
    rbpf.ended?
    rbpf.instance_variable_set(:@waited_attached, rbpf.waited)
    rbpf.signal(:INT)
    finish_siege(rbpf, 0, limit: limit, asan: asan, statuses: [0])
  end

  # An rbpf that has begun to record.
  def record_beside(*options, limit: LIMIT, asan: false, env: {}, **spawn)
    missing 'no rbpf under ASan: RBPF_ASAN' if asan && ASAN.empty?
    arguments = ['record', *options, '-F', '499', '--memlimit', limit.to_s, '-o', path('rbpf.data')]
    rbpf = watched(*arguments, asan: asan, env: env, **spawn)
    rbpf.beside = honest.pid
    rbpf.wait_attached
    @honest_before = cpu_of(honest.pid)
    rbpf
  end

  # Any rbpf.
  def watched(*arguments, asan: false, in_session: false, env: {}, **spawn)
    env = { 'ASAN_OPTIONS' => 'detect_leaks=0:allocator_may_return_null=1' }.merge(env) if asan
    binary = asan ? ASAN : Live::RBPF
    if in_session
      arguments.unshift(binary)
      binary = 'setsid'
    end
    rbpf = Watched.new(*arguments, binary: binary, env: env, **spawn)
    at_end { kill_rbpf(rbpf) }
    rbpf
  end

  def kill_rbpf(rbpf)
    rbpf.wait if rbpf.signal(:KILL)
  rescue Errno::ECHILD
    nil # it was waited for already
  end

  # Runs an rbpf that records nothing, to its end.
  def run_rbpf(*arguments, statuses: [0], asan: false, limit: nil, seconds: 30, **options)
    rbpf = watched(*arguments, asan: asan, **options)
    result = rbpf.wait(seconds)
    assert_result(result, statuses)
    assert_operator rbpf.hwm, :<=, limit, 'VmHWM' if limit && !asan
    @last_run = rbpf
    result
  end

  def finish_siege(rbpf, duration, limit:, asan:, statuses:)
    result = rbpf.wait(duration + Live::PATIENCE)
    @honest_cpu = cpu_of(honest.pid) - @honest_before
    @rbpf = rbpf
    assert_result(result, statuses)
    slower = (asan ? ASAN_SLOWER : 1) * busy(rbpf)
    problems = []
    problems << "attached after #{rbpf.attaching.round(2)} s" if rbpf.attaching > ATTACH * slower
    problems << "ended after #{rbpf.recording.round(2)} s" if rbpf.recording > duration + (END_IN * slower)
    problems << "VmHWM #{rbpf.hwm >> 20} MB" if !asan && rbpf.hwm > limit + MARGIN
    assert_empty problems, result.err
    assert_recording
    result
  end

  # How much slower than alone, or beside one other process for each of its CPUs, everything is.
  def busy(rbpf)
    [(rbpf.ended_at - rbpf.attached_at) * 1e9 / [@honest_cpu, 1].max / 2, 1].max
  end

  def assert_result(result, statuses)
    refute_match(/AddressSanitizer|runtime error:/, result.err)
    refute result.status.signaled?, "ended by #{result.status}\n#{result.err}"
    assert_includes statuses, result.code, result.err
    assert_clean result.err, 'standard error'
    assert_clean result.out, 'standard output'
  end

  def assert_clean(text, what)
    flunk "#{what} is no UTF-8: #{text.scrub.inspect[0, 200]}" unless text.valid_encoding?
    bad = text[/.{0,40}#{CONTROLS}.{0,40}/mo]
    flunk "#{what} holds control characters: #{bad.dump}" if bad
  end

  # The recording can be read, holds no controls, and has all of the honest Ruby.
  def assert_recording
    made = Recording.new(path('rbpf.data'))
    text = Rbpf.read('export', '-f', 'json', '--stack', 'ruby', '-i', made.file)
    assert_clean text, 'the recording'
    strings(JSON.parse(text)) { |string| assert_clean string, 'the recording' }
    assert_honest(made)
    @made = made
  end

  def strings(value, &block)
    case value
    when String then value.include?("\n") ? block.call(value.gsub(/\n/, "\v")) : block.call(value)
    when Array then value.each { |v| strings(v, &block) }
    when Hash then value.each { |k, v| [k, v].each { |x| strings(x, &block) } }
    end
  end

  # Its share of the CPU is sampled, and its method is in the samples.
  def assert_honest(made)
    samples = made.samples.select { |sample| sample.pid == honest.pid }
    refute_empty samples, 'no sample of the honest process'
    sampled = samples.sum(&:value)
    used = @rbpf.used_beside(made.json['totals']['end_ns'] / 1e9) - @honest_before
    assert_operator sampled, :>=, used * 0.8, "of #{used} ns that the honest process used"
    named = samples.count { |sample| sample.frames.any? { |frame| frame.label == 'Honest.known' } }
    if busy(@rbpf) > BUSY
      # So busy a machine leaves rbpf no time to read names before the end, which its summary says.
      told = made.totals.values_at('unresolved', 'failed', 'no_ruby').sum
      assert_operator samples.size - named, :<=, (samples.size * 0.05) + told, 'samples without a name that are told'
    else
      assert_operator named, :>=, samples.size * 0.95, 'samples of the honest process with its method'
    end
  end

  # CPU time of a process, ns.
  def cpu_of(pid)
    Dir["/proc/#{pid}/task/*/schedstat"].sum { |file| File.read(file).to_i }
  end

  # All views of the recording, as text that goes to a terminal or a browser.
  def assert_views_clean(file = path('rbpf.data'))
    ['report', 'report --tree', 'report --by thread', 'report --by process', 'report --info', 'report --json',
     'report --csv', 'flame', 'export -f folded --threads', 'export -f json'].each do |view|
      # Lines of CSV end in CR and LF.
      assert_clean Rbpf.read(*view.split, '-i', file).gsub("\r\n", "\n"), view
    end
  end

  # Kills what a target has forked, too.
  def end_group(target)
    Process.kill(:KILL, -target.pid)
  rescue Errno::ESRCH
    nil
  end
end
