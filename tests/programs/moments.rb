# SPDX-License-Identifier: GPL-2.0-only
# frozen_string_literal: true

# Children, or threads that wait before it begins: one after the other uses a moment of CPU time, and no more.
#
#   ruby moments.rb children|threads COUNT SECONDS [SECONDS TO REST BEFORE EACH]
#
# Says {"ready": true, "cpu": SECONDS}: what all of them have used in Moments.in_moment, by their own clocks. Begins when
# a line comes on standard input and ends when another one comes.

require_relative 'oracle/checkpoint'

module Moments
  module_function

  def cpu
    Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID)
  end

  def in_moment(deadline)
    nil while cpu < deadline
  end

  # What it has used there.
  def moment(seconds)
    before = cpu
    in_moment(before + seconds)
    cpu - before
  end

  # Returns what gives the moment of the next child when it is called.
  def children(_count, seconds)
    lambda do
      read, write = IO.pipe
      pid = fork do
        write.write(moment(seconds))
        exit!(0)
      end
      write.close
      Float(read.read).tap { Process.wait(pid) }
    ensure
      read.close
    end
  end

  # The same of threads.
  def threads(count, seconds)
    turns = Queue.new
    said = Queue.new
    count.times { Thread.new { turns.pop && said << moment(seconds) } }
    -> { turns << true && said.pop }
  end
end

kind = ARGV.fetch(0)
count = Integer(ARGV.fetch(1))
next_one = Moments.public_send(kind, count, Float(ARGV.fetch(2)))
Oracle.say(waiting: true)
Oracle.wait_for_test
rest = Float(ARGV.fetch(3, 0))
Oracle.say(ready: true, cpu: Array.new(count) { sleep(rest) && next_one.call }.sum)
Oracle.wait_for_test
