# SPDX-License-Identifier: GPL-2.0-only
# frozen_string_literal: true

# Threads that want a Mutex or a Monitor, each to hold it in a way of its own:
#
#   ruby convoy.rb SECONDS
#
# Begins when a line comes on standard input and ends when another one comes. Says
#
#   {"ready": true, "caused": {METHOD: NS, ...}, "waited": NS}
#
# caused: how long others waited while a thread held the lock in this method, by their own clocks.

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

  # Who waits for a ConditionVariable does not wait for its Mutex.
  def sleepers(count)
    condition = ConditionVariable.new
    Array.new(count) do
      Thread.new { @lock.synchronize { condition.wait(@lock, (@deadline - now) / 1e9) } }
    end
  end

  # Each waits for those that hold it, one after the other: a turn begins when the one before it ends, for the lock is given
  # to a thread that has still to get a CPU and the GVL.
  def caused
    sums = Hash.new(0)
    turns = @turns.sort_by(&:got)
    turns.each_cons(2) do |before, holder|
      turns.each do |waiter|
        both = [waiter.got, holder.given].min - [waiter.wanted, before.given].max
        sums[holder.by] += both if both.positive? && !waiter.equal?(holder)
      end
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
threads = mutex.threads(:sleeps_long, 2) + mutex.threads(:sleeps_briefly, 6) + mutex.threads(:works, 2)
threads += mutex.sleepers(2)
threads += monitor.threads(:monitored, 3)
threads.each(&:join)
Oracle.say(ready: true, caused: mutex.caused.merge(monitor.caused), waited: mutex.waited + monitor.waited)
Oracle.wait_for_test
