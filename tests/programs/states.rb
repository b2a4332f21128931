# SPDX-License-Identifier: GPL-2.0-only
# frozen_string_literal: true

# A thread that waits in one way, by its own clocks:
#
#   ruby states.rb SCENARIO SECONDS
#
# Begins when a line comes on standard input and ends when another one comes. Says
#
#   {"ready": true, "threads": [{"tid": TID, "queued": NS, "waits": {STATE: NS}, "held": {STATE: NS}}, ...]}
#
# waits: what the thread measured around what it waited in, less the CPU time that it used there; held: the
# same while it held the GVL. queued: how long the kernel says that it could run and did not, in all its life; 0: it was not asked.

require 'monitor'
require 'socket'

require_relative 'oracle/checkpoint'

# What a thread measures of itself.
class Measured
  attr_reader :tid

  def initialize(seconds)
    @tid = Oracle.tid
    @waits = Hash.new(0)
    @held = Hash.new(0)
    @until = wall + (seconds * 1e9)
  end

  def wall
    Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond)
  end

  def cpu
    Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID, :nanosecond)
  end

  # 0 where there is no /proc, as in a root.
  def queued
    File.read("/proc/#{Process.pid}/task/#{@tid}/schedstat").split[1].to_i
  rescue Errno::ENOENT
    0
  end

  def more?
    wall < @until
  end

  def waits(state, into = @waits)
    queued = self.queued
    begun = wall - cpu
    result = yield
    into[state] += wall - cpu - begun - (self.queued - queued)
    result
  end

  def waited(state, nanoseconds)
    @waits[state] += nanoseconds
  end

  def holds(state, &block)
    waits(state, @held, &block)
  end

  def to_h
    { tid: @tid, queued: queued, waits: @waits, held: @held }
  end
end

module Scenarios
  module_function

  def sleep_(m)
    m.waits(:timer) { sleep 0.05 } while m.more?
  end

  def burn(m)
    nil while m.more?
  end

  def pipe(m)
    read, write = IO.pipe
    pid = fork { loop { sleep(0.03) && write.syswrite('x') } }
    m.waits(:pipe) { read.readpartial(1) } while m.more?
  ensure
    Process.kill(:KILL, pid)
    Process.wait(pid)
  end

  def socket(m)
    server = TCPServer.new('127.0.0.1', 0)
    pid = fork do
      peer = server.accept
      loop { sleep(0.03) && peer.write('x') }
    end
    client = TCPSocket.new('127.0.0.1', server.addr[1])
    m.waits(:network) { client.readpartial(1) } while m.more?
  ensure
    Process.kill(:KILL, pid)
    Process.wait(pid)
  end

  def select_(m)
    read, = IO.pipe
    while m.more?
      m.waits(:pipe) { IO.select([read], nil, nil, 0.03) }
      m.waits(:timer) { IO.select(nil, nil, nil, 0.02) }
    end
  end

  def child(m)
    while m.more?
      pid = fork { sleep 0.1 }
      m.waits(:child) { Process.wait(pid) }
    end
  end

  # Somebody else holds it for some time, and sleeps.
  def mutex(m)
    mutex = Mutex.new
    helper = Thread.new { mutex.synchronize { sleep 0.05 } while m.more? }
    while m.more?
      sleep 0.001 until mutex.locked? || !helper.alive?
      m.waits(:lock) { mutex.lock }
      mutex.unlock
    end
    helper.join
  end

  def monitor(m)
    monitor = Monitor.new
    helper = Thread.new { monitor.synchronize { sleep 0.05 } while m.more? }
    while m.more?
      sleep 0.001 until monitor.mon_locked? || !helper.alive?
      m.waits(:lock) { monitor.enter }
      monitor.exit
    end
    helper.join
  end

  def queue(m)
    queue = Queue.new
    helper = Thread.new { queue << sleep(0.03) while m.more? }
    m.waits(:lock) { queue.pop } while m.more?
    helper.kill
  end

  def condition(m)
    mutex = Mutex.new
    condition = ConditionVariable.new
    helper = Thread.new { sleep(0.02) && mutex.synchronize { condition.signal } while m.more? }
    m.waits(:lock) { mutex.synchronize { condition.wait(mutex, 0.1) } } while m.more?
    helper.kill
  end

  def flock(m)
    path = "/tmp/rbpf-states-#{Process.pid}"
    file = File.open(path, 'w')
    pid = fork { File.open(path) { |f| loop { f.flock(File::LOCK_EX) && sleep(0.05) && f.flock(File::LOCK_UN) && sleep(0.005) } } }
    while m.more?
      sleep 0.003
      m.waits(:lock) { file.flock(File::LOCK_EX) }
      file.flock(File::LOCK_UN)
    end
  ensure
    Process.kill(:KILL, pid)
    Process.wait(pid)
    File.unlink(path)
  end

  # The helper measures it, since a process that is stopped cannot.
  def stopped(m)
    read, write = IO.pipe
    helper = fork { write.puts(Array.new(3) { stop_parent(m) }.sum) }
    write.close
    nil while !Process.wait(helper, Process::WNOHANG) && sleep(0.02)
    m.waited(:stopped, read.gets.to_i)
  end

  def stop_parent(m)
    begun = m.wall
    Process.kill(:STOP, Process.ppid)
    sleep 0.3
    Process.kill(:CONT, Process.ppid)
    m.wall - begun
  ensure
    sleep 0.1
  end

  # C code that sleeps and does not give the GVL away.
  def held(m)
    require 'fiddle'
    usleep = Fiddle::Function.new(Fiddle::Handle::DEFAULT['usleep'], [Fiddle::TYPE_INT],
                                  Fiddle::TYPE_INT, need_gvl: true)
    m.holds(:timer) { usleep.call(30_000) } while m.more?
  end

  # The other thread has the GVL when this one has not.
  def gvl(m)
    helper = Thread.new { nil while m.more? }
    m.waits(:gvl) { nil while m.more? }
    helper.join
  end
end

scenario, seconds = ARGV
Oracle.say(waiting: true, pid: Process.pid)
Oracle.wait_for_test
# In a thread of its own, which does nothing else.
said = Thread.new do
  measured = Measured.new(Float(seconds))
  Scenarios.public_send(scenario, measured)
  measured.to_h
end.value
Oracle.say(ready: true, threads: [said])
Oracle.wait_for_test
