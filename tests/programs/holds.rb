# SPDX-License-Identifier: GPL-2.0-only
# frozen_string_literal: true

# A thread that holds a Mutex in a way of its own, and another one that waits for it, until the program ends:
#
#   ruby holds.rb sleeps|computes SECONDS
#
# Begins when a line comes on standard input, says after SECONDS
#
#   {"ready": true, "wanted": NS}
#
# and ends when another line comes. wanted: when the other one wanted it, by CLOCK_MONOTONIC.

require_relative 'oracle/checkpoint'

class Holds
  def self.sleeps(mutex)
    mutex.synchronize { sleep }
  end

  def self.computes(mutex)
    mutex.synchronize { nil while true }
  end
end

seconds = Float(ARGV.fetch(1))
Oracle.say(waiting: true, pid: Process.pid)
Oracle.wait_for_test
mutex = Mutex.new
Thread.new { Holds.public_send(ARGV[0], mutex) }
sleep 0.001 until mutex.locked?
wanted = nil
Thread.new do
  wanted = Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond)
  mutex.lock
end
sleep seconds
Oracle.say(ready: true, wanted: wanted)
Oracle.wait_for_test
exit!(0)
