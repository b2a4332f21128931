# SPDX-License-Identifier: GPL-2.0-only
# frozen_string_literal: true

# Two threads that meet at a Mutex and at a Queue that are new each time, where others were that have been freed:
#
#   ruby locks_anew.rb SECONDS
#
# Begins when a line comes on standard input and ends when another one comes. Says
#
#   {"ready": true, "waited": NS, "places": N, "met": N}
#
# waited: how long the one waited for Mutexes while the other held them, in #holds, by its own clock; places: at how many
# addresses the objects were, of which there were twice as many as the threads have met.

require 'objspace'

require_relative 'oracle/checkpoint'

# The other thread takes what comes from @meetings.
class Anew
  attr_reader :waited, :met

  def initialize
    @meetings = Queue.new
    @done = Queue.new
    @places = {}
    @waited = @met = 0
    @other = Thread.new { meet until @meetings.closed? && @meetings.empty? }
  end

  def run(seconds)
    deadline = now + (seconds * 1e9)
    while now < deadline
      holds
      GC.start
      @met += 1
    end
    @meetings.close
    @other.join
  end

  def places
    @places.size
  end

  # Nothing of this call is left when it has returned.
  def holds
    mutex = Mutex.new
    queue = Queue.new
    [mutex, queue].each { |object| @places[ObjectSpace.dump(object)[/"address":"(\w+)"/, 1]] = true }
    mutex.synchronize do
      @meetings << [mutex, queue]
      sleep 0.004
    end
    sleep 0.001
    queue << 1
    @done.pop
  end

  private

  def now
    Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond)
  end

  def meet
    mutex, queue = @meetings.pop
    return unless mutex

    wanted = now
    mutex.synchronize { @waited += now - wanted }
    queue.pop
    @done << 1
  end
end

seconds = Float(ARGV.fetch(0))
Oracle.say(waiting: true, pid: Process.pid)
Oracle.wait_for_test
anew = Anew.new
anew.run(seconds)
Oracle.say(ready: true, waited: anew.waited, places: anew.places, met: anew.met)
Oracle.wait_for_test
