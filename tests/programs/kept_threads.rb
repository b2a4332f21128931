# SPDX-License-Identifier: GPL-2.0-only
# frozen_string_literal: true

# Threads that have ended, of which the Ruby may keep the native threads:
#
#   ruby kept_threads.rb SECONDS
#
# Begins to sleep when a line comes on standard input and ends when another one comes.

require_relative 'oracle/checkpoint'

Array.new(4) { Thread.new { sleep 0.05 } }.each(&:join)
Oracle.say(waiting: true, pid: Process.pid)
Oracle.wait_for_test
sleep Float(ARGV[0])
Oracle.say(ready: true)
Oracle.wait_for_test
