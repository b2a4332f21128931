# SPDX-License-Identifier: GPL-2.0-only
# frozen_string_literal: true

# What recording costs a server that has as much to do as it can: tests/programs/rails, Rails on Puma, asked as fast as it
# answers, for some seconds without rbpf and with it, in turns: when a recording has just begun and names are read, and later.
#
#   ruby bench/throughput.rb [TURNS]
#
# Each recording is compared with what was measured right before it and right after it without one. What is printed are the
# medians of that, and between which values half of them are.

require 'tmpdir'

require_relative 'full_load'

class Throughput < FullLoad
  LATER = 20 # s after a recording has begun
  THINNED = 42 # … in which the number of samples has come down to what --max-cost permits
  VARIANTS = {
    'cpu, 99 Hz' => [RecordingCost::SETTLED],
    'states' => [RecordingCost::SETTLED, '--mode', 'states'],
    'states, --waker' => [RecordingCost::SETTLED, '--mode', 'states', '--waker'],
    'cpu, later' => [LATER],
    'cpu, max-cost' => [THINNED, '--max-cost', '0.5'],
    'states, later' => [LATER, '--mode', 'states'],
    '--waker, later' => [LATER, '--mode', 'states', '--waker']
  }.freeze
  TURNS = 10
  SECONDS = 2

  private

  def measure_all(turns)
    figures = Hash.new { |hash, key| hash[key] = [] }
    before = measure
    turns.times do |i|
      VARIANTS.to_a.rotate(i).each do |name, (settled, *options)|
        with = recorded(settled, options) { measure }
        after = measure
        figures[name] << compare(with, [before, after])
        before = after
      end
    end
    print_table(figures, turns)
  end

  # Requests a second, and CPU time of the workers for each, in ns.
  def measure
    load = Shop::Load.new(@shop.port, ENDLESS, ENDLESS, SECONDS)
    cpu = RecordingCost.cpu_ns(@workers)
    from = RecordingCost.now
    answered = load.run.spent.values.sum(&:runs).to_f
    { rate: answered / (RecordingCost.now - from), cpu: (RecordingCost.cpu_ns(@workers) - cpu) / answered }
  end

  # By how many percent it is less, or more CPU time.
  def compare(with, without)
    rate, cpu = %i[rate cpu].map { |figure| without.sum { |f| f[figure] } / without.size }
    { rate: ((with[:rate] / rate) - 1) * 100, cpu: ((with[:cpu] / cpu) - 1) * 100, alone: rate }
  end

  def print_table(figures, turns)
    alone = RecordingCost.median(figures.values.flatten.map { |f| f[:alone] })
    puts format('Rails on Puma under full load (%<rate>.0f requests a second without rbpf; medians of %<turns>d turns)', rate: alone, turns: turns)
    puts format('  %<a>-18s%<b>30s%<c>30s', a: '', b: 'requests a second', c: 'CPU time for each')
    figures.each do |name, all|
      cells = %i[rate cpu].map { |figure| spread(all.map { |f| f[figure] }).rjust(30) }
      puts format('  %<name>-18s', name: name) + cells.join
    end
  end

  def spread(values)
    sorted = values.sort
    format('%<m>+.1f%% (%<a>+.1f to %<b>+.1f)', m: RecordingCost.median(sorted), a: sorted[sorted.size / 4], b: sorted[sorted.size * 3 / 4])
  end
end

if $PROGRAM_NAME == __FILE__
  Dir.mktmpdir('rbpf-throughput') do |dir|
    Throughput.new(File.expand_path('../rbpf', __dir__), dir).run(Integer(ARGV[0] || Throughput::TURNS))
  end
end
