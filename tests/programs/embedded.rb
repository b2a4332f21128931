# SPDX-License-Identifier: GPL-2.0-only
# frozen_string_literal: true

# Run by a Ruby within another program (embed.c): burns CPU in Ruby's main thread and one more.
#
#   embedded.rb SECONDS
#
# Begins when a line comes on standard input, prints {"ready": true, "main": TID, "other": TID}, and
# ends when another line comes.

require_relative 'oracle/checkpoint'

class Embedded
  def main(stop)
    [1].each { work while Oracle.clock < stop }
  end

  def other(stop)
    [1].each { work while Oracle.clock < stop }
  end

  def work
    i = 0
    i += 1 while i < 10_000
    GC.start if rand(100).zero?
  end
end

def Oracle.clock
  Process.clock_gettime(Process::CLOCK_MONOTONIC)
end

Oracle.say(waiting: true, pid: Process.pid)
Oracle.wait_for_test
stop = Oracle.clock + Float(ARGV.fetch(0))
tid = nil
thread = Thread.new do
  tid = Oracle.tid
  Embedded.new.other(stop)
end
Embedded.new.main(stop)
thread.join
Oracle.say(ready: true, main: Oracle.tid, other: tid)
Oracle.wait_for_test
exit!(0)
