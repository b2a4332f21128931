# SPDX-License-Identifier: GPL-2.0-only
# frozen_string_literal: true

# What rbpf costs a real application: tests/programs/rails, Rails on Puma with two workers, under a load of so many
# requests a second.

require_relative 'recording_cost'
require_relative '../tests/programs/rails/shop'

class RealProgram
  RATE = 40 # requests a second
  # s, by Hz: long enough for some hundred samples
  SECONDS = { 99 => 5, 499 => 3, 999 => 3 }.freeze
  YARDSTICK = 2 # s, of what it is compared with
  STACKS = { 'native + Ruby' => [], 'Ruby alone' => ['--no-native'] }.freeze
  COLUMNS = RecordingCost::COLUMNS.merge(
    'requests/s' => ['%.1f', ->(f) { f[:answered] }],
    # CPU time of the application for a request: with the empty program, with rbpf.
    'empty: CPU' => ['%+.1f%%', ->(f) { ((f[:empty_ns] / f[:alone_ns]) - 1) * 100 }],
    'rbpf: CPU' => ['%+.1f%%', ->(f) { ((f[:request_ns] / f[:alone_ns]) - 1) * 100 }]
  ).freeze

  # Builds of rbpf, which are measured in turns; the program idle_cost; a directory.
  def initialize(rbpfs, idle, dir)
    @rbpfs = rbpfs
    @idle = idle
    @dir = dir
  end

  def run(turns)
    return puts("Rails on Puma: left out, there is no #{Shop.missing}") if Shop.missing

    with_shop do
      @alone = []
      @figures = Hash.new { |hash, key| hash[key] = [] }
      turns.times { |i| turn(@rbpfs.rotate(i)) }
      print_table(turns)
    end
  end

  private

  def with_shop
    @shop = Shop::Processes.new(@dir)
    @shop.start_web
    @workers = File.read("/proc/#{@shop.web}/task/#{@shop.web}/children").split
    yield
  ensure
    @shop&.stop
  end

  # All that is compared comes within one turn, so that a change of the machine's mood hits all of it; the builds
  # in another order in each.
  def turn(rbpfs)
    SECONDS.each do |hertz, seconds|
      @alone << under_load(YARDSTICK)
      yardsticks = { alone_ns: @alone.last[:request_ns] }.merge(with_empty_program(hertz))
      STACKS.to_a.product(rbpfs).each do |(stacks, options), rbpf|
        cost = RecordingCost.new(rbpf, @dir).of(@workers, hertz, seconds, options) { under_load(seconds) }
        @figures[[hertz, stacks, rbpf]] << cost.merge(yardsticks)
      end
    end
  end

  def with_empty_program(hertz)
    empty = nil
    idle = Thread.new { empty = RecordingCost.empty(@idle, @workers, hertz, YARDSTICK) }
    # Until it has run: on a busy machine it takes a while to load.
    load = under_load(YARDSTICK)
    load = under_load(YARDSTICK) while idle.alive?
    idle.join
    { empty: empty, empty_ns: load[:request_ns] }
  end

  # Requests a second, and the CPU time of the application for each.
  def under_load(seconds)
    load = Shop::Load.new(@shop.port, RATE * seconds, RATE, seconds)
    before = RecordingCost.cpu_ns(@workers)
    from = RecordingCost.now
    answered = load.run.spent.values.sum(&:runs).to_f
    { answered: answered / (RecordingCost.now - from),
      request_ns: (RecordingCost.cpu_ns(@workers) - before) / answered }
  end

  def print_table(turns)
    rate, cpu = %i[answered request_ns].map { |figure| RecordingCost.median(@alone.map { |f| f[figure] }) }
    puts "Rails on Puma, #{RATE} requests a second (per sample, and for each request; medians of #{turns} turns)"
    puts format('  without rbpf %<rate>.1f requests a second of %<cpu>.1f ms of CPU time', rate: rate, cpu: cpu / 1e6)
    RecordingCost.print_table(COLUMNS, @figures)
  end
end
