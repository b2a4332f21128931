# SPDX-License-Identifier: GPL-2.0-only
# frozen_string_literal: true

# Threads that begin while another one has the GVL, as in a server that makes one for each request:
#
#   ruby begins.rb SECONDS
#
# Begins when a line comes on standard input and ends when another one comes. Says
#
#   {"ready": true, "waited": [LEAST, MOST]}
#
# waited: how long they waited to begin, in ns by their own clocks: at least while Begins.works had the GVL, but for when they were
# queued for a CPU, by the kernel's account; at most until they ran, since who has the GVL, or gets it first, may lose its CPU.

require_relative 'oracle/checkpoint'

class Begins
  TURN = 20_000_000 # ns, less than a thread may have the GVL when others want it

  def self.now
    Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond)
  end

  def self.works
    stop = now + TURN
    nil while now < stop
    now
  end

  # 0 where there is no /proc, as in a root.
  def self.queued
    File.read('/proc/thread-self/schedstat').split[1].to_i
  rescue Errno::ENOENT
    0
  end

  # How long two threads waited, at least and at most.
  def self.turn
    wanted = []
    threads = Array.new(2) do
      wanted << now
      Thread.new { [now, queued] }
    end
    given = works
    threads.map(&:value).zip(wanted).map { |(ran, queued), at| [[given - at - queued, 0].max, ran - at] }.transpose.map(&:sum)
  end

  # The same, again and again.
  def self.run(seconds)
    stop = now + (seconds * 1e9).to_i
    turns = []
    turns << turn while now < stop
    turns.transpose.map(&:sum)
  end
end

Oracle.say(waiting: true, pid: Process.pid)
Oracle.wait_for_test
Oracle.say(ready: true, waited: Begins.run(Float(ARGV.fetch(0))))
Oracle.wait_for_test
