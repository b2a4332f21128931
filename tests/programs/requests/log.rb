# SPDX-License-Identifier: GPL-2.0-only
# frozen_string_literal: true

require 'json'

# What a program knows itself of its requests: [tid, begin, end, name] of each, times in ns of CLOCK_MONOTONIC, which are
# within the frames that tell the request.
module RequestLog
  SERVED = Queue.new

  module_function

  # Uses some ms of CPU time, as the request that is called so.
  def work(name)
    from = now
    spin(CHANCE.synchronize { RANDOM.rand(2..12) })
    SERVED << [tid, from, now, name]
  end

  RANDOM = Random.new(4242)
  CHANCE = Mutex.new

  def spin(milliseconds)
    deadline = cpu + (milliseconds * 1_000_000)
    text = +'' # objects, so that there is a collection now and then
    text = "#{text[-100, 100]}#{text.size}" while cpu < deadline
  end

  # Runs the block again and again in so many threads, for the seconds that the program is given; then says what
  # was served.
  def run(threads = 2)
    run_for do |seconds|
      deadline = now + (seconds * 1e9)
      Array.new(threads) { |i| Thread.new { yield i while now < deadline } }.each(&:join)
      { served: Array.new(SERVED.size) { SERVED.pop } }
    end
  end

  # Runs the block once, which is given these seconds; then says what it returns.
  def run_for
    $stdout.sync = true
    4.times { GC.start } # code that has been there for a while
    puts JSON.generate(waiting: true)
    $stdin.gets
    puts JSON.generate({ ready: true }.merge(yield(Float(ARGV.fetch(0)))))
    $stdin.gets
  end

  def now
    Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond)
  end

  def cpu
    Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID, :nanosecond)
  end

  def tid
    Thread.current.thread_variable_get(:tid) || gettid.tap { |tid| Thread.current.thread_variable_set(:tid, tid) }
  end

  # In a root there is no /proc, and in a forked child some Rubies' Thread#native_thread_id is the parent's.
  def gettid
    verbose = $VERBOSE
    $VERBOSE = nil
    syscall(RUBY_PLATFORM.start_with?('aarch64') ? 178 : 186)
  ensure
    $VERBOSE = verbose
  end
end
