# SPDX-License-Identifier: GPL-2.0-only
# frozen_string_literal: true

# work.rb DEPTH: from DEPTH frames down, repeat one piece of work for ever and print the CPU time
# that each repetition took, in ns, one a line.

def piece
  i = 0
  i += 1 while i < 400_000
end

def measure
  $stdout.sync = true
  loop do
    before = Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID, :nanosecond)
    piece
    puts Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID, :nanosecond) - before
  end
end

def descend(depth)
  depth.positive? ? descend(depth - 1) : measure
end

# descend, measure, loop, its block and piece (and <main>) are frames too.
descend([Integer(ARGV.fetch(0)) - 6, 0].max)
