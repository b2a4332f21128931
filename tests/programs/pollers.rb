# SPDX-License-Identifier: GPL-2.0-only
# frozen_string_literal: true

# Loops of a program's own, each in a thread, that wait for something to do and then do it, which is to wait, too:
#
#   ruby pollers.rb SECONDS
#
# Begins when a line comes on standard input and ends when another one comes. Says
#
#   {"ready": true, "threads": [{"poller": NAME, "tid": TID, "idle": NS, "work": NS}, ...]}
#
# idle, work: what the thread measured around the two, less the CPU time that it used there and what it was queued for.

require_relative 'oracle/checkpoint'

# A gem, as far as its path tells.
eval(<<~RUBY, TOPLEVEL_BINDING, '/usr/share/gems/waiting-1.0.0/lib/waiting.rb', 1)
  module Waiting
    def self.take(queue)
      queue.pop
    end
  end
RUBY

class Poller
  def initialize(seconds)
    @seconds = seconds
    @spent = { idle: 0, work: 0 }
    @queue = Queue.new
  end

  def start
    Thread.new do
      @tid = Oracle.tid
      @deadline = now + (@seconds * 1e9)
      run
      { poller: self.class.name, tid: @tid }.merge(@spent)
    end
  end

  def measure(what)
    before = off_cpu
    result = yield
    @spent[what] += off_cpu - before
    result
  end

  private

  def feed
    Thread.new { loop { sleep(0.05) && @queue << Job.new } }
  end

  def more?
    now < @deadline
  end

  def now
    Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond)
  end

  def off_cpu
    now - Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID, :nanosecond) - queued
  end

  # 0 where there is no /proc, as in a root.
  def queued
    File.read("/proc/#{Process.pid}/task/#{@tid}/schedstat").split[1].to_i
  rescue Errno::ENOENT
    0
  end
end

class Job
  def perform(poller)
    poller.measure(:work) { sleep 0.02 }
  end
end

class SleepingPoller < Poller
  def run
    while more?
      measure(:idle) { sleep 0.03 }
      Job.new.perform(self)
    end
  end
end

class QueuePoller < Poller
  def run
    feed
    measure(:idle) { fetch }.perform(self) while more?
  end

  def fetch
    @queue.pop
  end
end

class GemPoller < Poller
  def run
    feed
    measure(:idle) { Waiting.take(@queue) }.perform(self) while more?
  end
end

Oracle.say(waiting: true, pid: Process.pid)
Oracle.wait_for_test
threads = [SleepingPoller, QueuePoller, GemPoller].map { |poller| poller.new(Float(ARGV[0])).start }
Oracle.say(ready: true, threads: threads.map(&:value))
Oracle.wait_for_test
exit!(0)
