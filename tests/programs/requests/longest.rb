# SPDX-License-Identifier: GPL-2.0-only
# frozen_string_literal: true

# Requests of two threads, of lengths of their own, which sleep most of their time and then use the CPU:
#
#   ruby longest.rb SECONDS
#
# Says {"ready": true, "served": [[TID, THREAD, NAME, FROM, TO, ASLEEP, CPU], ...]}, times in ns, FROM and TO of CLOCK_MONOTONIC and
# within the frames that tell the request. ASLEEP is how long it asked to sleep, CPU the CPU time that it used.

require_relative 'like_rails'
require_relative 'log'

class LengthsController < ActionController::Metal
  SERVED = Queue.new
  FIRST = 1.2 # s of short ones: until rbpf has seen the frames
  KEPT = Queue.new # so that no two have the same address, by which two requests without a sample between them are told apart

  def initialize(asleep, busy)
    super()
    @asleep = asleep
    @busy = busy
    KEPT << self
  end

  def show
    serve('show')
  end

  def index
    serve('index')
  end

  private

  # @asleep and @busy: ms.
  def serve(name)
    tid = RequestLog.tid
    from = RequestLog.now
    cpu = RequestLog.cpu
    sleep @asleep / 1e3
    RequestLog.spin(@busy)
    cpu = RequestLog.cpu - cpu
    SERVED << [tid, Thread.current.name, "LengthsController##{name}", from, RequestLog.now, @asleep * 1_000_000, cpu]
  end
end

def serve_until(seconds, asleep, busy)
  random = Random.new(Thread.current.name.hash)
  deadline = RequestLog.now + (seconds * 1e9)
  while RequestLog.now < deadline
    LengthsController.new(random.rand(asleep), random.rand(busy)).dispatch(%w[show index].sample(random: random), nil, nil)
    sleep 0.005 # of no request
  end
end

RequestLog.run_for do |seconds|
  threads = Array.new(2) do |i|
    Thread.new do
      Thread.current.name = "web #{i}"
      serve_until(LengthsController::FIRST, 5..20, 1..3)
      serve_until(seconds - LengthsController::FIRST, 20..600, 5..40)
    end
  end
  threads.each(&:join)
  { served: Array.new(LengthsController::SERVED.size) { LengthsController::SERVED.pop } }
end
