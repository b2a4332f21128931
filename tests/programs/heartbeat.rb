# SPDX-License-Identifier: GPL-2.0-only
# frozen_string_literal: true

# Works a little and rests a little, many times a second, and says how far it is when asked to end
# by a line on standard input. Ends by itself after a while.
#
#   ruby heartbeat.rb [SECONDS]

require_relative 'oracle/checkpoint'

class Heartbeat
  attr_reader :beats

  def initialize
    @beats = 0
  end

  def run(seconds)
    deadline = now + seconds
    beat until IO.select([$stdin], nil, nil, 0.002) || now > deadline
  end

  def beat
    i = 0
    i += 1 while i < 100_000
    @beats += 1
  end

  private

  def now
    Process.clock_gettime(Process::CLOCK_MONOTONIC)
  end
end

heart = Heartbeat.new
Oracle.say(waiting: true, pid: Process.pid)
heart.run(Float(ARGV.fetch(0, Oracle::LIMIT)))
Oracle.say(ready: true, beats: heart.beats)
