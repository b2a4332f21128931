# SPDX-License-Identifier: GPL-2.0-only
# frozen_string_literal: true

# Burns CPU from its first moment on, then ends with a status.
#
#   ruby short.rb SECONDS [STATUS] [wait]     wait: for a line on standard input, before all

require_relative 'oracle/checkpoint'

class Short
  def first
    Oracle.spin
  end

  def last
    Oracle.spin
  end
end

seconds, status, wait = ARGV
Oracle.seconds = Float(seconds) / 2
if wait
  Oracle.say(waiting: true, pid: Process.pid)
  Oracle.wait_for_test
end
Short.new.first
Short.new.last
Oracle.say(ready: true, uid: Process.uid, gid: Process.gid, groups: Process.groups)
exit!(Integer(status || '0'))
