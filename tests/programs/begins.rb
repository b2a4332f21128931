# SPDX-License-Identifier: GPL-2.0-only
# frozen_string_literal: true

# Threads that begin while another one has the GVL, as in a server that makes one for each request:
#
#   ruby begins.rb SECONDS
#
# Begins when a line comes on standard input and ends when another one comes. Says
#
#   {"ready": true, "waited": NS}
#
# waited: how long they waited to begin, by their own clocks, while Begins.works had the GVL.

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

  # How long two threads waited for this one.
  def self.turn
    wanted = []
    threads = Array.new(2) do
      wanted << now
      Thread.new { nil }
    end
    given = works
    threads.each(&:join)
    wanted.sum { |at| given - at }
  end

  def self.run(seconds)
    stop = now + (seconds * 1e9).to_i
    waited = 0
    waited += turn while now < stop
    waited
  end
end

Oracle.say(waiting: true, pid: Process.pid)
Oracle.wait_for_test
Oracle.say(ready: true, waited: Begins.run(Float(ARGV.fetch(0))))
Oracle.wait_for_test
