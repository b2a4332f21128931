# SPDX-License-Identifier: GPL-2.0-only
# frozen_string_literal: true

# Children, one after the other, each of which ends after a moment of CPU time.
#
#   ruby moments.rb CHILDREN SECONDS
#
# Says {"ready": true, "cpu": SECONDS}: what all of them have used in Moments.in_child, by their own clocks. Begins when
# a line comes on standard input and ends when another one comes.

require_relative 'oracle/checkpoint'

module Moments
  module_function

  def cpu
    Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID)
  end

  def in_child(deadline)
    nil while cpu < deadline
  end

  # What it has used there.
  def child(seconds)
    read, write = IO.pipe
    pid = fork do
      before = cpu
      in_child(before + seconds)
      write.write(cpu - before)
      exit!(0)
    end
    write.close
    Float(read.read)
  ensure
    read.close
    Process.wait(pid)
  end
end

children = Integer(ARGV.fetch(0))
seconds = Float(ARGV.fetch(1))
Oracle.say(waiting: true)
Oracle.wait_for_test
Oracle.say(ready: true, cpu: Array.new(children) { Moments.child(seconds) }.sum)
Oracle.wait_for_test
