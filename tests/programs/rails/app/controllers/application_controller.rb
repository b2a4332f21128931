# SPDX-License-Identifier: GPL-2.0-only
# frozen_string_literal: true

# The answer to a request says in a header what its action took: "PID CONTROLLER#ACTION CPU WALL", in ns, by the CPU
# clock of its thread and by the wall clock. Actions render by themselves, so that all this time is within their own frame.
class ApplicationController < ActionController::Base
  around_action :measure

  private

  def measure
    wall = clock_ns(Process::CLOCK_MONOTONIC)
    cpu = clock_ns(Process::CLOCK_THREAD_CPUTIME_ID)
    yield
    cpu = clock_ns(Process::CLOCK_THREAD_CPUTIME_ID) - cpu
    wall = clock_ns(Process::CLOCK_MONOTONIC) - wall
    response.set_header('X-Spent', "#{Process.pid} #{self.class}##{action_name} #{cpu} #{wall}")
  end

  def clock_ns(id)
    Process.clock_gettime(id, :nanosecond)
  end
end
