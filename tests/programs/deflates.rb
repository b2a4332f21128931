# SPDX-License-Identifier: GPL-2.0-only
# frozen_string_literal: true

# A thread that holds a Mutex while it works without the GVL, so that it never leaves its CPU, and another one that waits for it:
#
#   ruby deflates.rb SECONDS
#
# Begins when a line comes on standard input and ends when another one comes. Says
#
#   {"ready": true, "waited": NS, "tid": TID}
#
# waited: how long the other one, TID, waited for the Mutex, by its own clock.

require 'zlib'

require_relative 'oracle/checkpoint'

class Deflates
  attr_reader :waited, :tid

  def initialize(seconds)
    @mutex = Mutex.new
    @text = Random.new(1).bytes(400_000)
    @waited = 0
    @deadline = now + (seconds * 1e9).to_i
  end

  def run
    [Thread.new { deflates }, Thread.new { wants }].each(&:join)
  end

  # It is free when this one takes it.
  def deflates
    while now < @deadline
      @mutex.synchronize { Zlib.deflate(@text) }
      sleep 0.004
    end
  end

  def wants
    @tid = Oracle.tid
    while now < @deadline
      sleep 0.001 until @mutex.locked? || now > @deadline
      wanted = now
      @mutex.synchronize { @waited += now - wanted }
    end
  end

  private

  def now
    Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond)
  end
end

seconds = Float(ARGV.fetch(0))
Oracle.say(waiting: true, pid: Process.pid)
Oracle.wait_for_test
deflates = Deflates.new(seconds)
deflates.run
Oracle.say(ready: true, waited: deflates.waited, tid: deflates.tid)
Oracle.wait_for_test
