# SPDX-License-Identifier: GPL-2.0-only
# frozen_string_literal: true

# Threads that do nothing but sleep: shorter than a second, longer, and for ever.
#
#   ruby sleepers.rb
#
# Ends when a line comes on standard input.

require_relative 'oracle/checkpoint'

[0.7, 3].each { |seconds| Thread.new { loop { sleep seconds } } }
Thread.new { sleep }
Oracle.say(waiting: true, pid: Process.pid)
$stdin.gets
