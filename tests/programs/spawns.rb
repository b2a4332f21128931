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

WAYS = {
  'system' => -> { system(TRUE) },
  'shell' => -> { system("#{TRUE}; #{TRUE}") },
  'backticks' => -> { `#{TRUE}` },
  'spawn' => -> { Process.wait(spawn(TRUE)) },
  'open3' => -> { Open3.capture2(TRUE) },
  'fork_exec' => -> { Process.wait(fork { exec(TRUE) }) },
  'fork' => -> { Process.wait(fork { exit!(0) }) },
  'ruby' => -> { system(RbConfig.ruby, '--disable-gems', '-e', '1') }
}.freeze

def used
  times = Process.times
  times.utime + times.stime + times.cutime + times.cstime
end

def spawn_children(how, seconds)
  deadline = Process.clock_gettime(Process::CLOCK_MONOTONIC) + seconds
  how.call while Process.clock_gettime(Process::CLOCK_MONOTONIC) < deadline
end

how = WAYS.fetch(ARGV.fetch(0))
seconds = Float(ARGV.fetch(1))
Oracle.say(waiting: true, pid: Process.pid)
Oracle.wait_for_test
before = used
spawn_children(how, seconds)
Oracle.say(ready: true, used_ns: ((used - before) * 1e9).round)
Oracle.wait_for_test
