# SPDX-License-Identifier: GPL-2.0-only
# frozen_string_literal: true

# Begins one child after the other, and says what all of them and itself have used by the kernel's account.
#
#   ruby spawns.rb HOW SECONDS
#
# Begins when a line comes on standard input, and ends when another comes.

require 'open3'
require_relative 'oracle/checkpoint'

TRUE = '/bin/true'

# Asks for no time: the kernel would add up what the thread has used.
def work
  5_000.times { |i| i.to_s }
end

WAYS = {
  'system' => -> { system(TRUE) },
  'shell' => -> { system("#{TRUE}; #{TRUE}") },
  'backticks' => -> { `#{TRUE}` },
  'spawn' => -> { Process.wait(spawn(TRUE)) },
  'open3' => -> { Open3.capture2(TRUE) },
  'fork_exec' => -> { Process.wait(fork { exec(TRUE) }) },
  'work_exec' => -> { Process.wait(fork { exec(TRUE) if work }) },
  'fork' => -> { Process.wait(fork { exit!(0) }) },
  'ruby' => -> { system(RbConfig.ruby, '--disable-gems', '-e', '1') }
}.freeze

def used
  times = Process.times
  times.utime + times.stime + times.cutime + times.cstime
end

# How many.
def spawn_children(how, seconds)
  deadline = Process.clock_gettime(Process::CLOCK_MONOTONIC) + seconds
  children = 0
  while Process.clock_gettime(Process::CLOCK_MONOTONIC) < deadline
    how.call
    children += 1
  end
  children
end

# What one child's work takes, at least: a child has to copy pages besides.
def work_ns
  before = Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID, :nanosecond)
  50.times { work }
  (Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID, :nanosecond) - before) / 50
end

how = WAYS.fetch(ARGV.fetch(0))
seconds = Float(ARGV.fetch(1))
Oracle.say(waiting: true, pid: Process.pid)
Oracle.wait_for_test
work_ns # the first times take longer
before = used
children = spawn_children(how, seconds)
Oracle.say(ready: true, children: children, work_ns: work_ns, used_ns: ((used - before) * 1e9).round)
Oracle.wait_for_test
