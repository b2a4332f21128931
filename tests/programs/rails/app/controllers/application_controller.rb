# SPDX-License-Identifier: GPL-2.0-only
# frozen_string_literal: true

# The answer to a request says in a header what its action took: "PID CONTROLLER#ACTION NANOSECONDS", by the
# CPU clock of its thread. Actions render by themselves, so that all this time is within their own frame.
class ApplicationController < ActionController::Base
  around_action :measure

  private

  def measure
    before = cpu_ns
    yield
    ns = cpu_ns - before
    response.set_header('X-CPU', "#{Process.pid} #{self.class}##{action_name} #{ns}")
  end

  def cpu_ns
    Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID, :nanosecond)
  end
end
