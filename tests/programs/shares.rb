# SPDX-License-Identifier: GPL-2.0-only
# frozen_string_literal: true

# Two threads that want the GVL all the time, of which one uses three times as much CPU time as the other:
#
#   ruby shares.rb SECONDS
#
# SECONDS: CPU time of the other one. Begins when a line comes on standard input and ends when another one comes. Says
#
#   {"ready": true, "threads": {METHOD: {"tid": TID, "cpu": NS, "off": NS}, ...}}
#
# off: how long it ran on no CPU, which is what it waited for the GVL or for a CPU, by its own clocks.

require_relative 'oracle/checkpoint'

class Shares
  def self.now(clock)
    Process.clock_gettime(clock, :nanosecond)
  end

  # Until both have begun: the second one would wait for a time slice of the first one before it reads its clocks.
  def self.meet
    @begun = @begun.to_i + 1
    Thread.pass until @begun == 2
  end

  def self.one(ns)
    meet
    stop = now(Process::CLOCK_THREAD_CPUTIME_ID) + ns
    nil while now(Process::CLOCK_THREAD_CPUTIME_ID) < stop
  end

  def self.three(ns)
    meet
    stop = now(Process::CLOCK_THREAD_CPUTIME_ID) + (3 * ns)
    nil while now(Process::CLOCK_THREAD_CPUTIME_ID) < stop
  end

  def self.times
    [now(Process::CLOCK_MONOTONIC), now(Process::CLOCK_THREAD_CPUTIME_ID)]
  end

  def self.measure(method, ns)
    before = times
    public_send(method, ns)
    wall, cpu = times.zip(before).map { |after, from| after - from }
    { tid: Oracle.tid, cpu: cpu, off: wall - cpu }
  end
end

ns = (Float(ARGV.fetch(0)) * 1e9).to_i
Oracle.say(waiting: true, pid: Process.pid)
Oracle.wait_for_test
threads = %i[three one].map { |method| Thread.new { [method, Shares.measure(method, ns)] } }
Oracle.say(ready: true, threads: threads.to_h(&:value))
Oracle.wait_for_test
