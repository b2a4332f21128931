# SPDX-License-Identifier: GPL-2.0-only
# frozen_string_literal: true

# Single waits of a thread, each for something else and of a length of its own, among many short ones:
#
#   ruby longest_waits.rb
#
# Begins when a line comes on standard input and ends when another one comes. Says
#
#   {"ready": true, "tid": TID, "name": THREAD, "waits": [[METHOD, STATE, FROM, TO], ...]}
#
# in the order in which they were, FROM and TO in ns of CLOCK_MONOTONIC.

require_relative 'oracle/checkpoint'

module Waits
  LENGTHS = { nap: ['timer', 0.3], take: ['pipe', 0.8], doze: ['timer', 1.7], reap: ['child', 0.5] }.freeze # s
  SHORT = 0.002

  module_function

  def now
    Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond)
  end

  def nap(_)
    sleep LENGTHS[:nap][1]
  end

  def doze(_)
    sleep LENGTHS[:doze][1]
  end

  def take(child)
    child[0].read
  end

  def reap(child)
    Process.wait(child[1])
  end

  # The end of a pipe, and the child process that closes the other one as it ends, after @seconds.
  def child_for(seconds)
    from, to = IO.pipe
    pid = fork do
      sleep seconds
      exit!
    end
    to.close
    [from, pid]
  end

  def measure(method)
    state, seconds = LENGTHS.fetch(method)
    child = child_for(seconds) if %i[take reap].include?(method)
    from = now
    public_send(method, child)
    [method, state, from, now]
  end

  def all
    LENGTHS.keys.map do |method|
      20.times { sleep SHORT }
      measure(method)
    end
  end
end

Oracle.say(waiting: true, pid: Process.pid)
Oracle.wait_for_test
thread = Thread.new do
  Thread.current.name = 'one by one'
  sleep 0.2 # until rbpf knows it; shorter than any of the waits
  { tid: Oracle.tid, name: Thread.current.name, waits: Waits.all }
end
Oracle.say(ready: true, **thread.value)
Oracle.wait_for_test
