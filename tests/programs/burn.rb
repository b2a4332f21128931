# SPDX-License-Identifier: GPL-2.0-only
# frozen_string_literal: true

# Burns CPU in known methods and says how much each of them took by its own clocks.
#
#   ruby burn.rb SECONDS [THREADS]
#
# Each thread burns its part of SECONDS of CPU time, three times as much in Burner#heavy as in
# Burner#light, and about as much as in that in a method written in C (Array#sort). Begins when a
# line comes on standard input, and ends when another comes.

require_relative 'oracle/checkpoint'

class Burner
  attr_reader :spent

  def initialize(seconds)
    @seconds = seconds
    @spent = Hash.new(0)
    @numbers = Array.new(20_000) { |i| (i * 7_919) % 20_011 }.freeze
  end

  def run
    stop = clock + (@seconds * 1e9)
    round = 0
    while clock < stop
      measure('Burner#heavy') { heavy }
      measure('Burner#light') { light }
      measure('Array#sort') { sorted }
      GC.start if ((round += 1) % 64).zero?
    end
    self
  end

  private

  def heavy
    i = 0
    i += 1 while i < 450_000
  end

  def light
    i = 0
    i += 1 while i < 150_000
  end

  def sorted
    @numbers.sort
  end

  def measure(name)
    before = clock
    yield
    @spent[name] += clock - before
  end

  def clock
    Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID, :nanosecond)
  end
end

GC.disable # but for GC.start, for a collection has a time of its own
seconds = Float(ARGV.fetch(0))
threads = Integer(ARGV.fetch(1, '1'))
Oracle.say(waiting: true, pid: Process.pid)
before = Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID, :nanosecond)
Oracle.wait_for_test
begun = Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond)
burners = Array.new(threads) { Burner.new(seconds / threads) }
threads == 1 ? burners[0].run : burners.map { |burner| Thread.new { burner.run } }.each(&:join)
spent = burners.map(&:spent).inject { |a, b| a.merge(b) { |_, x, y| x + y } }
after = Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID, :nanosecond)
wall = Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond) - begun
Oracle.say(ready: true, cpu_ns: after - before, wall_ns: wall, spent: spent)
Oracle.wait_for_test
