# SPDX-License-Identifier: GPL-2.0-only
# frozen_string_literal: true

# Alternates between two methods in step with the CPU time of its thread: half of each period in the
# one, half in the other. A profiler that samples with just that period sees only one of them.
#
#   ruby lockstep.rb SECONDS HZ
#
# Begins when a line comes on standard input, and ends when another comes.

require_relative 'oracle/checkpoint'

class Lockstep
  attr_reader :spent

  def initialize(hertz)
    @period = 1_000_000_000 / hertz
    @half = @period / 2
    @spent = { 'Lockstep#first' => 0, 'Lockstep#second' => 0 }
  end

  def run(seconds)
    now = clock
    stop = now + (seconds * 1_000_000_000)
    while now < stop
      before = now
      half, name = now % @period < @half ? [@half, 'Lockstep#first'] : [@period, 'Lockstep#second']
      until_then = now - (now % @period) + half
      name == 'Lockstep#first' ? first(until_then) : second(until_then)
      now = clock
      @spent[name] += now - before
    end
    self
  end

  private

  def first(time)
    i = 0
    i += 1 while i % 64 != 0 || clock < time
  end

  def second(time)
    i = 0
    i += 1 while i % 64 != 0 || clock < time
  end

  def clock
    Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID, :nanosecond)
  end
end

Oracle.say(waiting: true, pid: Process.pid)
Oracle.wait_for_test
lockstep = Lockstep.new(Integer(ARGV.fetch(1))).run(Float(ARGV.fetch(0)))
Oracle.say(ready: true, spent: lockstep.spent)
Oracle.wait_for_test
