# SPDX-License-Identifier: GPL-2.0-only
# frozen_string_literal: true

# A server that forked before the recording began: two workers, each with a helper of its own. When a
# line comes on standard input each burns CPU in a method of its own. Ends when another comes.
#
#   ruby prefork.rb SECONDS

require_relative 'oracle/checkpoint'

class Prefork
  def in_master
    Oracle.spin
  end

  def in_worker
    Oracle.spin
  end

  def in_helper
    Oracle.spin
  end
end

# A child that waits until the write end of its pipe is closed everywhere.
def forked(start, name)
  fork do
    start[1].close
    yield if block_given?
    start[0].read
    Prefork.new.__send__(name)
    Process.waitall
    exit!(0)
  end
end

Oracle.seconds = Float(ARGV.fetch(0))
start = IO.pipe
helpers, told = IO.pipe
workers = Array.new(2) do
  forked(start, :in_worker) { told.puts(forked(start, :in_helper)) }
end
Oracle.say(waiting: true, pid: Process.pid, workers: workers,
           helpers: Array.new(2) { Integer(helpers.gets) })
Oracle.wait_for_test
start[1].close
Prefork.new.in_master
Process.waitall
Oracle.say(ready: true)
Oracle.wait_for_test
