# SPDX-License-Identifier: GPL-2.0-only
# frozen_string_literal: true

# Threads that wait for the GVL: some as they gave it away, others as they come back from what they do without it.
#
#   ruby turns.rb SECONDS
#
# Begins when a line comes on standard input and ends when another one comes. Says
#
#   {"ready": true, "threads": {METHOD: TID, ...}}

require 'zlib'
require_relative 'oracle/checkpoint'

module Turns
  DATA = ('a'..'z').to_a.join * 20_000
  METHODS = %i[compute pass nap zip].freeze

  module_function

  def compute
    1.upto(20_000) { |i| i * i }
  end

  def pass
    Thread.pass
  end

  def nap
    sleep 0.001
  end

  # Without the GVL, and mostly without leaving the CPU.
  def zip
    Zlib.deflate(DATA)
  end

  def now
    Process.clock_gettime(Process::CLOCK_MONOTONIC)
  end

  def repeat(method, stop)
    public_send(method) while now < stop
    Oracle.tid
  end
end

seconds = Float(ARGV.fetch(0))
Oracle.say(waiting: true, pid: Process.pid)
Oracle.wait_for_test
stop = Turns.now + seconds
threads = Turns::METHODS.to_h { |method| [method, Thread.new { Turns.repeat(method, stop) }] }
Oracle.say(ready: true, threads: threads.transform_values(&:value))
Oracle.wait_for_test
