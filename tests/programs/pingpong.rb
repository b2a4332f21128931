# SPDX-License-Identifier: GPL-2.0-only
# frozen_string_literal: true

# Two processes that send a byte to and fro as fast as they can:
#
#   ruby pingpong.rb SECONDS
#
# Begins when a line comes on standard input and ends when another one comes. Says
#
#   {"waiting": true, "pids": [PID, PID]}
#   {"ready": true}

require_relative 'oracle/checkpoint'

module PingPong
  module_function

  # Until there is nothing more to read.
  def answer(read, write)
    write.syswrite('x') while read.sysread(1)
  rescue EOFError
    nil
  end

  def serve(read, write, seconds)
    stop = Process.clock_gettime(Process::CLOCK_MONOTONIC) + seconds
    while Process.clock_gettime(Process::CLOCK_MONOTONIC) < stop
      write.syswrite('x')
      read.sysread(1)
    end
    write.close
  end
end

there, back, over = Array.new(3) { IO.pipe }
child = fork do
  [there, over].each { |_, write| write.close }
  PingPong.answer(there[0], back[1])
  over[0].read
end
Oracle.say(waiting: true, pids: [Process.pid, child])
Oracle.wait_for_test
PingPong.serve(back[0], there[1], Float(ARGV.fetch(0)))
Oracle.say(ready: true)
Oracle.wait_for_test
