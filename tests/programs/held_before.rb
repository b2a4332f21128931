# SPDX-License-Identifier: GPL-2.0-only
# frozen_string_literal: true

# A Mutex or Monitor that a thread holds, and three others wait for, before anybody looks:
#
#   ruby held_before.rb Mutex|Monitor SECONDS
#
# When a line comes on standard input two more want it, and after SECONDS it is given away. Says then
#
#   {"wanted": NS, "given": NS}
#
# when those two wanted it, and when it was given away, by CLOCK_MONOTONIC; and ends when another line comes.

require 'monitor'
require_relative 'oracle/checkpoint'

class HeldBefore
  WORK = 0.004 # s

  def self.holds(lock, till)
    lock.synchronize { till.pop }
  end

  def self.wants(lock)
    lock.synchronize { works(WORK) }
  end

  # For less time than there is between two ticks.
  def self.works(seconds)
    till = now + (seconds * 1e9)
    nil while now < till
  end

  def self.now
    Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond)
  end
end

lock = Object.const_get(ARGV[0]).new
till = Queue.new
holder = Thread.new { HeldBefore.holds(lock, till) }
sleep 0.001 until till.num_waiting == 1
threads = Array.new(3) { Thread.new { HeldBefore.wants(lock) } }
sleep 0.001 until threads.all? { |thread| thread.status == 'sleep' }
Oracle.say(waiting: true, pid: Process.pid)
Oracle.wait_for_test
wanted = HeldBefore.now
threads += Array.new(2) { Thread.new { HeldBefore.wants(lock) } }
sleep Float(ARGV[1])
given = HeldBefore.now
till << true
[holder, *threads].each(&:join)
Oracle.say(ready: true, wanted: wanted, given: given)
Oracle.wait_for_test
