# SPDX-License-Identifier: GPL-2.0-only
# frozen_string_literal: true

# Threads that wait for something that others give them, while another one has the GVL:
#
#   ruby late.rb SECONDS
#
# Begins when a line comes on standard input and ends when another one comes. Says
#
#   {"ready": true, "late": {TID: NS, ...}, "times": {TID: N, ...}}
#
# late: how long after it was given what it waited for, so often, each came back, by its own clock; and how long after it was
# made it began.

require_relative 'oracle/checkpoint'

# What the threads do until a time.
class Late
  PAUSE = 0.03

  def initialize(seconds)
    @deadline = now + (seconds * 1e9).to_i
    @queue = Queue.new
  end

  def now
    Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond)
  end

  def more?
    now < @deadline
  end

  def burn
    nil while more?
  end

  def give
    (sleep PAUSE) && @queue << now while more?
    @queue << nil
  end

  # Both return how late they were, each time.
  def pops
    late = []
    while (given = @queue.pop)
      late << (now - given)
    end
    late
  end

  def joins
    late = []
    while more?
      thread = Thread.new { (sleep PAUSE) && now }
      thread.join
      late << (now - thread.value)
    end
    late
  end

  def waiter(what)
    made = now
    Thread.new do
      begun = now - made
      [Oracle.tid, [begun, *__send__(what)]]
    end
  end

  def run
    others = [Thread.new { burn }, Thread.new { give }]
    waiters = [waiter(:pops), waiter(:joins)]
    waiters.to_h(&:value).tap { others.each(&:join) }
  end
end

Oracle.say(waiting: true, pid: Process.pid)
Oracle.wait_for_test
late = Late.new(Float(ARGV[0])).run
Oracle.say(ready: true, late: late.transform_values(&:sum), times: late.transform_values(&:size))
Oracle.wait_for_test
