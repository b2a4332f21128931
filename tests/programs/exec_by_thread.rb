# SPDX-License-Identifier: GPL-2.0-only
# frozen_string_literal: true

# Another thread than the main one burns CPU time and executes this program once more, which then does the same.
#
#   ruby exec_by_thread.rb SECONDS
#
# Begins when a line comes on standard input, and ends when another one comes.

require_relative 'oracle/checkpoint'

def before_exec
  Oracle.spin
end

def after_exec
  Oracle.spin
end

Oracle.seconds = Float(ARGV.fetch(0))
if ARGV[1]
  after_exec
  Oracle.say(ready: true)
  Oracle.wait_for_test
else
  Oracle.say(waiting: true)
  Oracle.wait_for_test
  Thread.new do
    before_exec
    exec(RbConfig.ruby, __FILE__, ARGV[0], 'again')
  end.join
end
