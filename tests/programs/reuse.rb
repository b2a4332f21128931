# SPDX-License-Identifier: GPL-2.0-only
# frozen_string_literal: true

# Defines methods of equal shape one after another, runs each for a moment, removes it and lets the
# garbage collector have it: addresses are used again and again by code of another name.
#
#   ruby reuse.rb METHODS KEPT        KEPT: methods between two collections
#
# Begins when a line comes on standard input, says when each method ran (CLOCK_MONOTONIC, ns), and
# ends when another line comes.

require_relative 'oracle/checkpoint'

class Reuse
  def run(count, kept)
    Array.new(count) do |i|
      collect if (i % kept).zero?
      span(format('gen_%05d', i), (i * 10) + 1)
    end
  end

  # [name, first line, when it began, when it ended]
  def span(name, line)
    Reuse.class_eval("def #{name}\n  i = 0\n  i += 1 while i < 60_000\nend", "#{name}.rb", line)
    before = now
    __send__(name)
    after = now
    Reuse.__send__(:remove_method, name)
    [name, line, before, after]
  end

  private

  def collect
    GC.start
  end

  def now
    Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond)
  end
end

Oracle.say(waiting: true, pid: Process.pid)
Oracle.wait_for_test
spans = Reuse.new.run(Integer(ARGV.fetch(0)), Integer(ARGV.fetch(1)))
Oracle.say(ready: true, spans: spans)
Oracle.wait_for_test
