# SPDX-License-Identifier: GPL-2.0-only
# frozen_string_literal: true

# Threads that each wait in a way of their own, with the name of it, and their tids:
#
#   {"waiting": true, "pid": PID, "tids": {NAME: [TID, ...], ...}, "since": [NS, NS], "worn": NS}
#
# since, by CLOCK_MONOTONIC: all of them, but those that spin, began to wait between the two. worn: when the thread of that
# name did, which used its CPU until then.
#
#   ruby waits.rb [SPINNING]    so many threads never wait
#
# Ends when a line comes on standard input, at the latest after a while.

require 'monitor'
require 'socket'

require_relative 'oracle/checkpoint'

POOL = 5

# What is held by a thread and waited for by others.
class Held
  attr_reader :mutex, :monitor

  def initialize
    @mutex = Mutex.new
    @monitor = Monitor.new
  end

  def hold_mutex
    @mutex.synchronize { sleep }
  end

  def hold_monitor
    @monitor.synchronize { sleep }
  end
end

class Waits
  def initialize
    @tids = Hash.new { |hash, name| hash[name] = [] }
    @threads = []
    @held = Held.new
    @pipe = IO.pipe
  end

  attr_reader :tids, :worn

  def start
    start_holders
    wait_until_all_sleep
    start_lockers
    start_others
    start_pool
    wait_until_all_sleep
  end

  def spin(count)
    count.times { thread('spinning') { nil while true } }
    sleep(0.002) until @tids['spinning'].size == count
  end

  private

  def start_holders
    thread('mutex holder') { @held.hold_mutex }
    thread('monitor holder') { @held.hold_monitor }
  end

  def start_lockers
    thread('lock') { @held.mutex.lock }
    thread('synchronize') { @held.mutex.synchronize { nil } }
    thread('monitor') { @held.monitor.synchronize { nil } }
    condition = ConditionVariable.new
    mutex = Mutex.new
    thread('condition') { mutex.synchronize { condition.wait(mutex) } }
  end

  def start_others
    forever = thread('sleep') { sleep }
    thread('worn') { wear_out && sleep }
    thread('join') { forever.join }
    thread('read') { @pipe[0].read }
    thread('select') { IO.select([@pipe[0]]) }
    thread('select socket') { IO.select([TCPServer.new('127.0.0.1', 0)]) }
    thread('accept') { TCPServer.new('127.0.0.1', 0).accept }
  end

  def wear_out
    till = now + 100_000_000
    nil while now < till
    @worn = now
  end

  def start_pool
    queue = Queue.new
    POOL.times { |i| thread(format('pool %03d', i + 1)) { queue.pop } }
  end

  def thread(name)
    @threads << Thread.new do
      Thread.current.name = name
      @tids[name] << Oracle.tid
      yield
    end
    @threads.last
  end

  def wait_until_all_sleep
    sleep(0.002) until @threads.all? { |thread| thread.status == 'sleep' }
  end
end

def now
  Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond)
end

waits = Waits.new
since = [now]
waits.start
since << now
waits.spin(Integer(ARGV.fetch(0, 0)))
Oracle.say(waiting: true, pid: Process.pid, tids: waits.tids, since: since, worn: waits.worn)
Oracle.wait_for_test
exit!(0)
