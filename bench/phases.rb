# SPDX-License-Identifier: GPL-2.0-only
# frozen_string_literal: true

# What sampling costs the requests of a server that has as much to do as it can: tests/programs/rails, Rails on Puma, is
# recorded all the time, and every quarter of a second the BPF programs are told to follow its workers, or not to, by their map
# `procs`. So what is compared lies a quarter of a second apart, on machines whose speed changes every few seconds, and no recording
# begins meanwhile. In both cases the clocks of threads tick, and the scheduler's programs find out whom they follow: what that
# costs (doc/cost.md) is not in the difference.
#
#   ruby bench/phases.rb [PAIRS [VARIANT]...]
#
# What is compared is the CPU time of actions by their own clocks, each with the median of its action, so that it does not
# matter which ones a phase has; only those count that a phase has from beginning to end. Together with rbpf's share of the CPUs
# while it samples it is what the server loses.

require 'etc'
require 'json'
require 'tmpdir'

require_relative 'full_load'

# Keeps each request: from when to when it was, by this process's clock, its action, and its CPU time.
class KeepingLoad < Shop::Load
  Request = Struct.new(:from, :to, :action, :cpu_ns)

  attr_reader :kept

  def initialize(...)
    super
    @kept = []
  end

  def stop
    @seconds = 0
  end

  private

  def ask(http, path)
    from = now
    _, action, cpu_ns = http.get(path)['X-Spent'].split
    @lock.synchronize { @kept << Request.new(from, now, action, Integer(cpu_ns)) }
  end
end

# The map by which the BPF programs of a recording know whom they follow.
class Followed
  def initialize(rbpf, pids)
    @map = Dir["/proc/#{rbpf}/fdinfo/*"].filter_map { |file| map_behind(file) }.find { |id| show('show', 'id', id)['name'] == 'procs' }
    @values = pids.to_h { |pid| [bytes(pid), show('lookup', 'id', @map, 'key', 'hex', *bytes(pid))['value'].map { |byte| byte.delete_prefix('0x') }] }
    @followed = true
    @seconds = 0
    @since = RecordingCost.now
  end

  def follow(followed)
    return if followed == @followed

    tell(followed)
    @followed = followed
    followed ? @since = RecordingCost.now : @seconds += RecordingCost.now - @since
  end

  # In which they were followed since this began.
  def seconds
    @seconds + (@followed ? RecordingCost.now - @since : 0)
  end

  private

  def tell(followed)
    commands = @values.map do |key, value|
      followed ? ['map update', *key_of(key), 'value hex', *value] : ['map delete', *key_of(key)]
    end
    IO.popen(%w[bpftool batch file -], 'r+') do |bpftool|
      bpftool.puts(commands.map { |words| words.join(' ') })
      bpftool.close_write
      bpftool.read
    end
    raise 'bpftool failed' unless $?.success?
  end

  # nil: it is of no map, or has been closed meanwhile.
  def map_behind(file)
    File.read(file)[/^map_id:\s+(\d+)/, 1]
  rescue Errno::ENOENT
    nil
  end

  def key_of(key)
    ['id', @map, 'key hex', *key]
  end

  def bytes(pid)
    [pid.to_i].pack('L').bytes.map { |byte| format('%02x', byte) }
  end

  def show(*command)
    JSON.parse(IO.popen(['bpftool', '-j', 'map', *command], &:read))
  end
end

class Phases < FullLoad
  SETTLED = 20 # s after a recording has begun
  # 24 Hz is what --max-cost leaves.
  VARIANTS = { 'cpu, 99 Hz' => ['-F', '99'], 'cpu, 24 Hz' => ['-F', '24'],
               'states, --waker' => ['--mode', 'states', '--waker'],
               'the same, 24 Hz' => ['--mode', 'states', '--waker', '-F', '24'] }.freeze
  PAIRS = 300
  SECONDS = 0.25
  THREADS = 6 # that Puma has for requests

  def initialize(rbpf, dir, variants)
    super(rbpf, dir)
    @variants = variants.empty? ? VARIANTS : variants.to_h { |name| [name, VARIANTS.fetch(name)] }
  end

  private

  def measure_all(pairs)
    puts "Rails on Puma under full load, sampled or not from one quarter of a second to the next (means of #{pairs} pairs, " \
         'and their standard errors)'
    @variants.each { |name, options| print_row(name, recorded(SETTLED, options) { |rbpf| measure_pairs(rbpf, pairs) }) }
  end

  # Pairs of phases and requests, and rbpf's CPU time for a second in which it samples.
  def measure_pairs(rbpf, pairs)
    followed = Followed.new(rbpf, @workers)
    load = KeepingLoad.new(@shop.port, ENDLESS, ENDLESS, connections: THREADS)
    asking = Thread.new { load.run }
    spent = -RecordingCost.cpu_ns([rbpf])
    phases = Array.new(pairs) { [true, false].shuffle.to_h { |sampled| [sampled, phase(followed, sampled)] } }
    spent += RecordingCost.cpu_ns([rbpf])
    { phases: phases, rbpf: spent / followed.seconds, requests: load.kept }
  ensure
    load&.stop
    asking&.join
  end

  def phase(followed, sampled)
    followed.follow(sampled)
    from = RecordingCost.now
    sleep SECONDS
    from..RecordingCost.now
  end

  def print_row(name, figures)
    requests = relative(figures[:requests])
    differences = figures[:phases].filter_map do |pair|
      sampled, not_sampled = pair.values_at(true, false).map { |phase| mean_within(phase, requests) }
      sampled - not_sampled if sampled && not_sampled
    end
    puts format('  %<name>-18s CPU time of an action %<cpu>+.2f%% (%<error>.2f), rbpf %<rbpf>.2f%% of all CPUs; %<rate>.0f requests a second',
                name: name, cpu: mean(differences) * 100, error: standard_error(differences) * 100,
                rbpf: figures[:rbpf] / 1e7 / Etc.nprocessors, rate: requests.size / (requests.last[0].to - requests.first[0].from))
  end

  # Each request with the logarithm of its CPU time by the median of its action.
  def relative(requests)
    medians = requests.group_by(&:action).transform_values { |all| RecordingCost.median(all.map(&:cpu_ns)).to_f }
    requests.map { |request| [request, Math.log(request.cpu_ns / medians[request.action])] }
  end

  # Of the requests that were in this phase from their begin to their end; nil: none was.
  def mean_within(phase, requests)
    within = requests.filter_map { |request, relative| relative if phase.cover?(request.from..request.to) }
    mean(within) unless within.empty?
  end

  def mean(values)
    values.sum / values.size
  end

  def standard_error(values)
    mean = mean(values)
    Math.sqrt(values.sum { |value| (value - mean)**2 } / (values.size - 1) / values.size)
  end
end

if $PROGRAM_NAME == __FILE__
  Dir.mktmpdir('rbpf-phases') do |dir|
    Phases.new(File.expand_path('../rbpf', __dir__), dir, ARGV.drop(1)).run(Integer(ARGV[0] || Phases::PAIRS))
  end
end
