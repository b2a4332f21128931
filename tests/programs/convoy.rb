# SPDX-License-Identifier: GPL-2.0-only
# frozen_string_literal: true

# Threads that want a Mutex or a Monitor, each to hold it in a way of its own:
#
#   ruby convoy.rb SECONDS
#
# Begins when a line comes on standard input and ends when another one comes. Says
#
#   {"ready": true, "caused": {METHOD: [LEAST, MOST], ...}, "waited": NS}
#
# caused: how long others waited while a thread held the lock in this method, in ns by their own clocks: at most with what passed
# between its turn and those before and after it, when the lock is given from one to the other, which have to get a CPU and the GVL.

require 'monitor'

require_relative 'oracle/checkpoint'

# What the threads that want one lock did.
class Convoy
  Turn = Struct.new(:by, :wanted, :got, :given)

  # @lock: what has synchronize.
  def initialize(lock, deadline)
    @lock = lock
    @deadline = deadline
    @turns = []
  end

  attr_reader :turns

  def now
    Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond)
  end

  def threads(by, count)
    Array.new(count) { Thread.new { take_turns(by) } }
  end

  # Who waits for a ConditionVariable does not wait for its Mutex. They do until all others have ended.
  def sleepers(count)
    @condition = ConditionVariable.new
    asleep = 0
    threads = Array.new(count) do
      Thread.new { @lock.synchronize { (asleep += 1) && @condition.wait(@lock) } }
    end
    sleep 0.001 until @lock.synchronize { asleep == count }
    threads
  end

  def wake(sleepers)
    @lock.synchronize { @condition.broadcast }
    sleepers.each(&:join)
  end

  def caused
    sums = Hash.new { |hash, by| hash[by] = [0, 0] }
    turns = @turns.sort_by(&:got)
    turns.each_cons(2) do |before, holder|
      least = waited_in(holder, holder.got, holder.given)
      gap = waited_in(holder, before.given, holder.got) + (holder.got - [holder.wanted, before.given].max)
      add(sums[before.by], 0, gap)
      add(sums[holder.by], least, least + gap)
    end
    sums
  end

  def waited
    @turns.sum { |turn| turn.got - turn.wanted }
  end

  def sleeps_long
    hold(__method__) { sleep 0.009 }
  end

  def sleeps_briefly
    hold(__method__) { sleep 0.003 }
  end

  def works
    hold(__method__) do
      till = now + 3_000_000
      nil while now < till
    end
  end

  def monitored
    hold(__method__) { sleep 0.004 }
  end

  private

  # How long others than @turn waited between these times.
  def waited_in(turn, from, to)
    @turns.sum { |other| other.equal?(turn) ? 0 : [[other.got, to].min - [other.wanted, from].max, 0].max }
  end

  def add(sums, least, most)
    sums[0] += least
    sums[1] += most
  end

  def hold(by)
    turn = Turn.new(by, now)
    @lock.synchronize do
      turn.got = now
      yield
      turn.given = now
    end
    @turns << turn
  end

  # Those that do not let others have it would not form a queue.
  def take_turns(by)
    public_send(by) && sleep(0.001) while now < @deadline
  end
end

seconds = Float(ARGV.fetch(0))
Oracle.say(waiting: true, pid: Process.pid)
Oracle.wait_for_test
deadline = Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond) + (seconds * 1e9).to_i
mutex = Convoy.new(Mutex.new, deadline)
monitor = Convoy.new(Monitor.new, deadline)
sleepers = mutex.sleepers(2)
threads = mutex.threads(:sleeps_long, 2) + mutex.threads(:sleeps_briefly, 6) + mutex.threads(:works, 2)
threads += monitor.threads(:monitored, 3)
threads.each(&:join)
mutex.wake(sleepers)
Oracle.say(ready: true, caused: mutex.caused.merge(monitor.caused), waited: mutex.waited + monitor.waited)
Oracle.wait_for_test
