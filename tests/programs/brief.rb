# SPDX-License-Identifier: GPL-2.0-only
# frozen_string_literal: true

# Children that live for a moment, each of which makes code of its own, runs it and dies at once.
#
#   ruby brief.rb CHILDREN SECONDS
#
# Child N runs Brief::OfN#work_N, a block in it and Brief::OfN.again_N, half of the time each, with a
# collection in between. SECONDS are of CPU time. The file of its code is brief_N.rb, which begins at
# line 1000 * N.

require_relative 'oracle/checkpoint'

module Brief
end

def code(number)
  <<~RUBY
    class Brief::Of#{number}
      def work_#{number}(deadline)
        [deadline].each do |time|
          nil while Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID) < time
        end
      end

      def self.again_#{number}(deadline)
        nil while Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID) < deadline
      end
    end
  RUBY
end

# The middle of a life, from now
def soon(seconds)
  Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID) + (seconds / 2)
end

def live(number, seconds)
  eval(code(number), TOPLEVEL_BINDING, "brief_#{number}.rb", 1000 * number) # rubocop:disable all
  made = Brief.const_get("Of#{number}")
  made.new.send("work_#{number}", soon(seconds))
  GC.start
  made.send("again_#{number}", soon(seconds))
  exit!(0)
end

children = Integer(ARGV.fetch(0))
seconds = Float(ARGV.fetch(1))
Oracle.say(waiting: true, pid: Process.pid)
Oracle.wait_for_test
pids = (1..children).to_h do |number|
  pid = fork { live(number, seconds) }
  Process.wait(pid)
  [number, pid]
end
Oracle.say(ready: true, pids: pids)
Oracle.wait_for_test
