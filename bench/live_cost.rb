# SPDX-License-Identifier: GPL-2.0-only
# frozen_string_literal: true

# make bench-live: what top and serve take, each at 99 Hz with all on its screen or page, while they watch a busy Puma:
# tests/programs/rails, asked RATE times a second, by default so often that it takes about one core. In % of one core; the
# kernel's is the run time of the BPF programs, by its statistics.
#
#   SECONDS=60   RATE=60

require 'tmpdir'

require_relative 'recording_cost'
require_relative 'watchers'
require_relative '../tests/programs/rails/shop'

class LiveCost
  SETTLED = 5 # s, in which names are read
  FORMAT = '  %-6s %11s %11s %11s %11s %11s'

  def initialize(dir, seconds, rate)
    @dir = dir
    @seconds = seconds
    @rate = rate
  end

  def run
    abort "Rails on Puma: there is no #{Shop.missing}" if Shop.missing

    @shop = Shop::Processes.new(@dir)
    @shop.start_web
    @workers = File.read("/proc/#{@shop.web}/task/#{@shop.web}/children").split
    load = Thread.new { Shop::Load.new(@shop.port, 1 << 30, @rate, (@seconds + SETTLED + 10) * 2).run }
    load.report_on_exception = false
    BpfStatistics.on { print_table }
  ensure
    load&.kill
    @shop&.stop
  end

  private

  def print_table
    puts format(FORMAT, '', 'Puma %', 'user %', 'kernel %', 'RSS MiB', 'samples/s')
    { 'top' => Top, 'serve' => Serve }.each do |name, watcher|
      puts format(FORMAT, name, *figures(watcher.new(['-p', @shop.web.to_s])))
      $stdout.flush
    end
  end

  def figures(watcher)
    sleep SETTLED
    before = taken(watcher)
    sleep @seconds
    puma, user, kernel, samples = taken(watcher).zip(before).map { |after, from| after - from }
    seconds = @seconds.to_f
    [puma / seconds * 100, user / seconds * 100, kernel / seconds * 100, watcher.memory['Rss'] / 1024.0, samples / seconds].map { |f| f.round(2) }
  ensure
    raise 'top or serve failed' unless watcher.stop.zero?
  end

  # s of CPU time of Puma, of what watches, of the BPF programs; and how often that of samples has run.
  def taken(watcher)
    programs = watcher.programs
    [RecordingCost.cpu_ns(@workers) / 1e9, watcher.cpu, programs.sum(&:ns) / 1e9,
     programs.select { |p| p.type == BpfStatistics::PERF_EVENT }.sum(&:runs)]
  end
end

Dir.mktmpdir('rbpf-live') { |dir| LiveCost.new(dir, *[%w[SECONDS 60], %w[RATE 60]].map { |of| Integer(ENV.fetch(*of)) }).run }
