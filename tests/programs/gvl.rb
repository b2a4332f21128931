# SPDX-License-Identifier: GPL-2.0-only
# frozen_string_literal: true

# Threads that burn CPU without the global VM lock, in zlib, while others have it and run Ruby.
#
#   ruby gvl.rb SECONDS
#
# Each thread has methods of its own: their names end with its number. Even ones run Ruby, odd ones
# compress. Begins when a line comes on standard input, prints {"tids": {NUMBER: TID}} when all
# threads run and {"ready": true} when they have ended, and ends when another line comes.

require 'zlib'
require_relative 'oracle/checkpoint'

module Numbered
  COUNT = 6
  DATA = Random.new(1).bytes(2_000_000).freeze

  def self.define(number)
    class_eval(<<~RUBY, "numbered_#{number}.rb", 1)
      def self.ruby_#{number}(stop)
        count_#{number} while clock < stop
      end

      def self.count_#{number}
        i = 0
        i += 1 while i < 5_000
      end

      def self.zlib_#{number}(stop)
        [1].each { compress_#{number} } while clock < stop
      end

      def self.compress_#{number}
        Zlib::Deflate.deflate(DATA, 9)
      end
    RUBY
  end

  def self.clock
    Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID)
  end

  def self.start(number, gate, tids)
    method = number.even? ? "ruby_#{number}" : "zlib_#{number}"
    Thread.new do
      tids[number] = Oracle.tid
      __send__(method, gate.pop)
    end
  end

  def self.run(seconds)
    tids = {}
    gate = Thread::Queue.new
    all = COUNT.times.map { |i| start(i, gate, tids) }
    sleep(0.001) until tids.size == COUNT
    Oracle.say(tids: tids)
    stop = clock + seconds
    all.each { gate << stop }
    all.each(&:join)
  end
end

Numbered::COUNT.times { |i| Numbered.define(i) }
Oracle.say(waiting: true, pid: Process.pid)
Oracle.wait_for_test
Numbered.run(Float(ARGV.fetch(0)))
Oracle.say(ready: true)
Oracle.wait_for_test
