# SPDX-License-Identifier: GPL-2.0-only
# frozen_string_literal: true

# tests/programs/rails, Rails on Puma, asked as fast as it answers, and recordings of its workers: what throughput.rb and
# phases.rb have in common.

require 'fileutils'

require_relative 'recording_cost'
require_relative '../tests/programs/rails/shop'

class FullLoad
  ENDLESS = 1 << 30

  def initialize(rbpf, dir)
    @rbpf = rbpf
    @dir = dir
  end

  def run(turns)
    return puts("#{self.class}, Rails on Puma under full load: left out, there is no #{Shop.missing}") if Shop.missing

    @shop = Shop::Processes.new(@dir)
    @shop.start_web
    @workers = File.read("/proc/#{@shop.web}/task/#{@shop.web}/children").split
    measure_all(turns)
  ensure
    @shop&.stop
  end

  private

  # Yields the pid of rbpf, which has recorded under full load for @settled s.
  def recorded(settled, options)
    file = File.join(@dir, 'full_load.data')
    rbpf = RecordingCost.new(@rbpf, @dir).start(file, @workers, 99, options)
    Shop::Load.new(@shop.port, ENDLESS, ENDLESS, settled).run
    yield rbpf
  ensure
    Process.kill(:TERM, rbpf)
    Process.wait(rbpf)
    FileUtils.rm_f(file)
  end
end
