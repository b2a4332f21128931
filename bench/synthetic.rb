# SPDX-License-Identifier: GPL-2.0-only
# frozen_string_literal: true

# What stacks of 100 frames cost: one that is always the same, and such that nearly each is another one. At a low rate
# the BPF program finds nothing of what it needs in the CPU's caches, at a high rate all of it.

require_relative 'recording_cost'

class Synthetic
  FRAMES = 100
  SECONDS = 2
  HERTZ = [99, 999, 4999].freeze
  PROGRAMS = { 'the same' => 'work.rb', 'varied' => 'varied.rb' }.freeze

  # Builds of rbpf, which are measured in turns; the program idle_cost; a directory.
  def initialize(rbpfs, idle, dir)
    @rbpfs = rbpfs
    @idle = idle
    @dir = dir
  end

  def run(turns)
    @figures = Hash.new { |hash, key| hash[key] = [] }
    turns.times { |i| PROGRAMS.each { |stacks, program| turn(stacks, program, @rbpfs.rotate(i)) } }
    puts "Stacks of #{FRAMES} Ruby frames, with native ones (per sample; medians of #{turns} turns)"
    RecordingCost.print_table(RecordingCost::COLUMNS, @figures)
  end

  private

  def turn(stacks, program, rbpfs)
    pid = Process.spawn(RbConfig.ruby, File.expand_path(program, __dir__), FRAMES.to_s, out: File::NULL)
    sleep 0.5
    HERTZ.each do |hertz|
      empty = RecordingCost.empty(@idle, [pid], hertz, 1)
      rbpfs.each do |rbpf|
        cost = RecordingCost.new(rbpf, @dir).of([pid], hertz, SECONDS, []) { sleep(SECONDS) && {} }
        @figures[[hertz, stacks, rbpf]] << cost.merge(empty: empty)
      end
    end
  ensure
    Process.kill(:KILL, pid)
    Process.wait(pid)
  end
end
