# SPDX-License-Identifier: GPL-2.0-only
# frozen_string_literal: true

# Stops in a signal handler, which Ruby runs on top of whatever the main thread does.

require_relative '../oracle/checkpoint'

class Interrupted
  def work
    Process.kill(:USR1, Process.pid)
    sleep(Oracle::LIMIT)
  end

  def handle
    Oracle.checkpoint
  end
end

Oracle.watch_main(:trap)
trap(:USR1) { Interrupted.new.handle }
Interrupted.new.work
