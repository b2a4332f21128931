# SPDX-License-Identifier: GPL-2.0-only
# frozen_string_literal: true

# Spends much of its time in garbage collection.
#
#   ruby churn.rb SECONDS
#
# Begins when a line comes on standard input, and ends when another comes.

require_relative 'oracle/checkpoint'

class Churn
  def run(seconds)
    stop = Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID) + seconds
    keep = []
    while Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID) < stop
      allocate(keep)
      collect
    end
  end

  def allocate(keep)
    keep.shift(20_000) if keep.size > 100_000
    20_000.times { |i| keep << [i.to_s] }
  end

  def collect
    GC.start
  end
end

Oracle.say(waiting: true, pid: Process.pid)
Oracle.wait_for_test
Churn.new.run(Float(ARGV.fetch(0)))
Oracle.say(ready: true, collections: GC.count)
Oracle.wait_for_test
