# SPDX-License-Identifier: GPL-2.0-only
# frozen_string_literal: true

# work.rb DEPTH [BLOCKS]: from DEPTH frames down, and so many blocks called by Array#each, repeat one
# piece of work for ever and print the CPU time that each repetition took, in ns, one a line.

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
  depth.positive? ? descend(depth - 1) : nest(Integer(ARGV.fetch(1, '0')))
end

def nest(blocks)
  return measure if blocks.zero?

  [1].each { nest(blocks - 1) }
end

# descend, nest, measure, loop, its block and piece (and <main>) are frames too.
descend([Integer(ARGV.fetch(0)) - 7, 0].max)
