# SPDX-License-Identifier: GPL-2.0-only
# frozen_string_literal: true

# Uses CPU time in a C function (hot.c).
#
#   ruby hot.rb HOT.SO SECONDS
#
# Begins when a line comes on standard input, says when it is ready, and ends when another line
# comes.

require ARGV[0]

$stdout.sync = true
puts '{"waiting": true}'
$stdin.gets
finish = Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID) + Float(ARGV[1])
hot_work(20_000) while Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID) < finish
puts '{"ready": true}'
$stdin.gets
