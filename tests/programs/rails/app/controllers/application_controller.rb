# SPDX-License-Identifier: GPL-2.0-only
# frozen_string_literal: true

# The answer to a request says in a header what its action took: "PID CONTROLLER#ACTION CPU WALL NETWORK LOCK
# TIMER QUEUED", in ns, by the CPU clock of its thread, by the wall clock, and for what of that it waited (TimeAccount). Actions render
# by themselves, so that all this time is within their own frame.
class ApplicationController < ActionController::Base
  around_action :measure

  private

  def measure(&action)
    TimeAccount.begin
    spent = timed(&action) + TimeAccount.end
    response.set_header('X-Spent', "#{Process.pid} #{self.class}##{action_name} #{spent.join(' ')}")
  end

  # [CPU, WALL] of the block. Nothing else is done here, so that a profile of what is below this method has the same.
  def timed
    wall = TimeAccount.now
    cpu = Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID, :nanosecond)
    yield
    cpu = Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID, :nanosecond) - cpu
    [cpu, TimeAccount.now - wall]
  end
end
