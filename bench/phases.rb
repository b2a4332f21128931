# SPDX-License-Identifier: GPL-2.0-only
# frozen_string_literal: true

# What sampling costs a server that has as much to do as it can: tests/programs/rails, Rails on Puma, is recorded all the
# time, and for one lot of requests after the other the BPF programs are told to follow its workers, or not to, by their map
# `procs`. So what is compared lies seconds apart, on machines whose speed changes from minute to minute, and no recording
# begins meanwhile. The clocks of threads tick in both cases: what they cost (doc/cost.md) is not in the difference.
#
#   ruby bench/phases.rb [PAIRS]
#
# Of a server that takes all CPUs, the CPU time of its workers for a request and rbpf's share of the CPUs together are what
# is lost; that varies far less than the time that the requests take.

require 'etc'
require 'json'
require 'tmpdir'

require_relative 'full_load'

class Phases < FullLoad
  # Options, and s after the recording has begun: with --max-cost until the number of samples has come down.
  VARIANTS = { 'cpu, 99 Hz' => [20], 'cpu, max-cost' => [42, '--max-cost', '0.5'],
               'states' => [20, '--mode', 'states'], 'states, --waker' => [20, '--mode', 'states', '--waker'] }.freeze
  PAIRS = 40
  REQUESTS = 200 # whole turns of the paths that the load asks for

  private

  def measure_all(pairs)
    puts "Rails on Puma under full load, sampled or not from one #{REQUESTS} requests to the next (means of #{pairs} pairs, " \
         'without the tenth at each end, and their standard errors)'
    VARIANTS.each { |name, (settled, *options)| print_row(name, recorded(settled, options) { |rbpf| measure_pairs(rbpf, pairs) }) }
  end

  def measure_pairs(rbpf, pairs)
    map = procs_of(rbpf)
    Array.new(pairs) { [true, false].shuffle.to_h { |sampled| [sampled, measure_phase(rbpf, map, sampled)] } }
  end

  # Without being sampled the workers are not in the map, and afterwards they are again, as they were.
  def measure_phase(rbpf, map, sampled)
    return measure(rbpf) if sampled

    followed = values(map)
    @workers.each { |pid| bpftool('map', 'delete', *key(map, pid)) }
    measure(rbpf).tap { followed.each { |pid, value| bpftool('map', 'update', *key(map, pid), 'value', 'hex', *value) } }
  end

  def measure(rbpf)
    before = [RecordingCost.now, RecordingCost.cpu_ns(@workers), RecordingCost.cpu_ns([rbpf])]
    Shop::Load.new(@shop.port, REQUESTS, ENDLESS).run
    after = [RecordingCost.now, RecordingCost.cpu_ns(@workers), RecordingCost.cpu_ns([rbpf])]
    %i[time cpu rbpf].zip(after.zip(before).map { |a, b| a - b }).to_h
  end

  def procs_of(rbpf)
    ids = Dir["/proc/#{rbpf}/fdinfo/*"].filter_map { |file| map_behind(file) }
    ids.find { |id| JSON.parse(bpftool('-j', 'map', 'show', 'id', id))['name'] == 'procs' }
  end

  # nil: it is of no map, or has been closed meanwhile.
  def map_behind(file)
    File.read(file)[/^map_id:\s+(\d+)/, 1]
  rescue Errno::ENOENT
    nil
  end

  def key(map, pid)
    ['id', map, 'key', 'hex', *[pid.to_i].pack('L').bytes.map { |byte| format('%02x', byte) }]
  end

  def values(map)
    @workers.to_h { |pid| [pid, JSON.parse(bpftool('-j', 'map', 'lookup', *key(map, pid)))['value'].map { |byte| byte.delete_prefix('0x') }] }
  end

  def bpftool(*arguments)
    IO.popen(['bpftool', *arguments], &:read).tap { raise "bpftool #{arguments.first(4).join(' ')} failed" unless $?.success? }
  end

  def print_row(name, pairs)
    time, cpu = %i[time cpu].map { |figure| pairs.map { |pair| ((pair[true][figure].to_f / pair[false][figure]) - 1) * 100 } }
    rbpf = pairs.map { |pair| pair[true][:rbpf] / pair[true][:time] / 1e7 / Etc.nprocessors }
    puts format('  %<name>-18s requests take %<time>s, CPU time of a request %<cpu>s, rbpf %<rbpf>s of all CPUs',
                name: name, time: mean(time), cpu: mean(cpu), rbpf: mean(rbpf))
  end

  def mean(values)
    kept = values.sort[values.size / 10..-(values.size / 10) - 1]
    mean = kept.sum / kept.size
    error = Math.sqrt(kept.sum { |value| (value - mean)**2 } / (kept.size - 1) / kept.size)
    format('%+.2f%% (%.2f)', mean, error)
  end
end

if $PROGRAM_NAME == __FILE__
  Dir.mktmpdir('rbpf-phases') do |dir|
    Phases.new(File.expand_path('../rbpf', __dir__), dir).run(Integer(ARGV[0] || Phases::PAIRS))
  end
end
