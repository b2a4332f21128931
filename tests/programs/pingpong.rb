# SPDX-License-Identifier: GPL-2.0-only
# frozen_string_literal: true

# Two processes that send a byte to and fro as fast as they can:
#
#   ruby pingpong.rb SECONDS
#
# Begins when a line comes on standard input and ends when another one comes. Says
#
#   {"ready": true, "switches": {TID: NUMBER, ...}}
#
# how often each has left its CPU to wait, by the kernel's account, from its first byte to its last.

require_relative 'oracle/checkpoint'

module PingPong
  module_function

  def switches
    Integer(File.read('/proc/thread-self/status')[/^voluntary_ctxt_switches:\s+(\d+)/, 1])
  end

  # Until there is nothing more to read.
  def answer(read, write)
    before = switches
    write.syswrite('x') while read.sysread(1)
  rescue EOFError, Errno::EPIPE
    switches - before
  end

  def serve(read, write, seconds)
    stop = Process.clock_gettime(Process::CLOCK_MONOTONIC) + seconds
    before = switches
    while Process.clock_gettime(Process::CLOCK_MONOTONIC) < stop
      write.syswrite('x')
      read.sysread(1)
    end
    write.close
    switches - before
  end
end

there, back, result = Array.new(3) { IO.pipe }
child = fork do
  there[1].close
  result[1].puts(PingPong.answer(there[0], back[1]))
end
Oracle.say(waiting: true, pid: Process.pid)
Oracle.wait_for_test
own = PingPong.serve(back[0], there[1], Float(ARGV.fetch(0)))
Oracle.say(ready: true, switches: { Process.pid => own, child => Integer(result[0].gets) })
Oracle.wait_for_test
