# SPDX-License-Identifier: GPL-2.0-only
# frozen_string_literal: true

# Threads that have methods of their own: their names end with the thread's number.
#
#   ruby ractors.rb ractors SECONDS    3 Ractors, each with threads of its own
#   ruby ractors.rb threads SECONDS    24 threads that run for all that time
#   ruby ractors.rb short SECONDS      100 threads or more that end after some milliseconds
#
# Begins when a line comes on standard input, prints {"ready": true, "threads": N}, and ends when
# another line comes.

require_relative 'oracle/checkpoint'

module Numbered
  COUNT = 24
  SHORT = 100 # threads at least

  def self.define(number)
    class_eval(<<~RUBY, "numbered_#{number}.rb", 1)
      def self.outer_#{number}(stop)
        [1].each { inner_#{number}(stop) }
      end

      def self.inner_#{number}(stop)
        i = 0
        until i % 8 == 0 && clock > stop
          i += 1
          leaf_#{number}(i)
          block_#{number} { |x| leaf_#{number}(x) }
        end
      end

      def self.block_#{number}
        yield 1
        yield 2
      end

      def self.leaf_#{number}(x)
        i = 0
        i += 1 while i < 300
        Array.new(10) { |k| k + x }
      end

      def self.ractor_#{number}(seconds)
        Ractor.new(seconds) do |time|
          gate = Thread::Queue.new
          inner = [#{number + 1}, #{number + 2}].map { |i| Numbered.start(i, gate) }
          stop = Numbered.clock + time
          inner.each { gate << stop }
          Numbered.outer_#{number}(stop)
          inner.each(&:join)
        end
      end

      # Waits, then burns for a moment.
      def self.short_#{number}
        Thread.new do
          sleep(0.001)
          outer_#{number}(clock + 0.002)
          IO.select(nil, nil, nil, 0.001)
          outer_#{number}(clock + 0.002)
        end
      end
    RUBY
  end

  def self.clock
    Process.clock_gettime(Process::CLOCK_MONOTONIC)
  end

  def self.start(number, gate)
    method = "outer_#{number}"
    Thread.new { __send__(method, gate.pop) }
  end

  def self.ractors(seconds)
    all = [0, 3, 6].map { |i| __send__("ractor_#{i}", seconds) }
    all.each { |ractor| ractor.respond_to?(:take) ? ractor.take : ractor.join }
    9
  end

  # None begins before all are there, or one could get the native thread of one that has ended.
  def self.threads(seconds)
    gate = Thread::Queue.new
    all = COUNT.times.map { |i| start(i, gate) }
    stop = clock + seconds
    all.each { gate << stop }
    all.each(&:join).size
  end

  def self.short(seconds)
    stop = clock + seconds
    running = []
    number = 0
    while clock < stop || number < SHORT # however busy the machine is
      define(number) if number >= COUNT
      running << __send__("short_#{number}")
      number += 1
      running.shift.join if running.size > 6
    end
    running.each(&:join)
    number
  end
end

$VERBOSE = nil # Ractor is experimental
kind, seconds = ARGV
Numbered::COUNT.times { |i| Numbered.define(i) }
Oracle.say(waiting: true, pid: Process.pid)
Oracle.wait_for_test
threads = Numbered.public_send(kind, Float(seconds))
Oracle.say(ready: true, threads: threads)
Oracle.wait_for_test
exit!(0)
