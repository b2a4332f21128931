# SPDX-License-Identifier: GPL-2.0-only
# frozen_string_literal: true

# The one place where a scenario stops. A scenario calls Oracle.checkpoint somewhere deep; what Ruby
# itself says about the stack at that moment is the truth that a profile is compared with.
#
# Oracle.mode says what happens at a checkpoint:
#   :truth  print the stack and go on
#   :spin   print the stack, then burn Oracle.seconds of this thread's CPU time
#   :sleep  sleep, until another thread has printed this one's stack and the test has looked at it
#
# The truth of a scenario is one line of JSON:
#   {"scenario": NAME, "tid": TID, "frames": [[LABEL, PATH, LINE], ...]}     innermost frame first
# In :sleep it is the whole stack, in the other modes it starts with Oracle.checkpoint itself.
#
# Kept to the syntax of Ruby 2.7, like all programs here that are run by several versions.

require 'json'

module Oracle
  # No program outlives this, whatever becomes of the test that started it.
  LIMIT = 120

  GETTID = RUBY_PLATFORM.start_with?('aarch64') ? 178 : 186
  private_constant :GETTID

  class << self
    attr_accessor :mode, :seconds
  end

  self.mode = :truth
  self.seconds = 0.05

  def self.checkpoint
    hold
  end

  # A checkpoint holds once for a scenario: a comparison that sort calls again just goes through.
  def self.hold
    return if held?(Thread.current)

    Thread.current.thread_variable_set(:oracle_held, true)
    return sleep(LIMIT) if mode == :sleep

    emit(Thread.current, caller_locations(1))
    __send__("spin_#{Thread.current.thread_variable_get(:oracle_scenario)}") if mode == :spin
  end

  # A scenario burns CPU in a method that has its name, so that each sample says where it belongs.
  def self.define_spin(name)
    instance_eval("def spin_#{name}\n  spin\nend", 'oracle_spin', 1)
  end

  # A slice's time is limited because a Ruby thread may be moved to another native thread, which has
  # a clock of its own.
  def self.spin
    spent = 0
    now = Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID)
    while spent < seconds
      before = now
      i = 0
      i += 1 while i < 5_000
      now = Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID)
      spent += (now - before).clamp(0, 0.001)
    end
  end

  def self.held?(thread)
    thread.thread_variable_get(:oracle_held)
  end

  # Says which scenario the calling thread is about to run.
  def self.enter(name)
    Thread.current.thread_variable_set(:oracle_scenario, name.to_s)
    Thread.current.thread_variable_set(:oracle_tid, tid)
    Thread.current.thread_variable_set(:oracle_held, nil)
  end

  def self.emit(thread, locations)
    frames = locations.map { |l| [l.label, l.path, l.lineno] }
    say(scenario: thread.thread_variable_get(:oracle_scenario),
        tid: thread.thread_variable_get(:oracle_tid), frames: frames)
  end

  # One line, one write: lines of several threads never mix in a regular file.
  def self.say(object)
    $stdout.syswrite("#{JSON.generate(object)}\n")
  end

  # Waits until thread sleeps in its checkpoint, then prints its stack as seen from outside.
  def self.emit_asleep(thread)
    sleep(0.002) until held?(thread) && thread.status == 'sleep'
    emit(thread, thread.backtrace_locations)
  end

  # Until the test writes a line or closes the pipe.
  def self.wait_for_test
    IO.select([$stdin], nil, nil, LIMIT)
    $stdin.gets
  end

  # For a program that is one scenario on its main thread: it will stop at its checkpoint, be
  # described by a helper thread, and end when the test says so.
  def self.watch_main(name)
    self.mode = :sleep
    enter(name)
    Thread.new do
      emit_asleep(Thread.main)
      say(ready: true, pid: Process.pid, ruby: RUBY_VERSION)
      wait_for_test
      exit!(0)
    end
  end

  def self.tid
    return Thread.current.native_thread_id if Thread.current.respond_to?(:native_thread_id)

    verbose = $VERBOSE
    $VERBOSE = nil
    syscall(GETTID)
  ensure
    $VERBOSE = verbose
  end
end
