# SPDX-License-Identifier: GPL-2.0-only
# frozen_string_literal: true

# Publishes what it is as OTEP 4719 says (version 2), and so does its second worker; the first one publishes nothing,
# and has inherited nothing. What each of them published is for the test to compare.

require_relative '../oracle/checkpoint'
require_relative 'context'

Context.publish({ 'service.name' => 'shop, "main"', 'service.version' => "2.1\e[31m" }, 'team' => 'x=y')
Oracle.say(waiting: true, pid: Process.pid)
Oracle.wait_for_test
used = Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID)
from, to = IO.pipe
workers = [nil, 'worker'].map do |name|
  fork do
    Context.publish('service.name' => name) if name
    to.puts
    $stdin.read
  end
end
2.times { from.gets }
# What has used no CPU time has no samples.
nil until Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID) > used + 0.05
Oracle.say(ready: true, pids: [Process.pid, *workers])
Process.waitall
