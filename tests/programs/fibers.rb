# SPDX-License-Identifier: GPL-2.0-only
# frozen_string_literal: true

# Fibers, and who resumed them.
#
#   ruby fibers.rb spin SECONDS     scenarios one after another, each burning that CPU time
#   ruby fibers.rb sleep NAME       one of them, asleep
#   ruby fibers.rb KIND SECONDS     many fibers, switched some thousand times a second:
#                                   resume nested short threads enumerators transfer scheduler
#
# spin and sleep print for each scenario, as it begins to burn or to sleep,
#   {"scenario": NAME, "fibers": [[[LABEL, PATH, LINE], ...], ...]}
# the stack of the running fiber first, then that of the one that resumed it, as it stood then. In
# the others each fiber has methods of its own: their names end with its number, and so does that of
# the method that resumes it. All begin when a line comes on standard input, print {"ready": true,
# "switches": N}, and end when another line comes.

require_relative 'oracle/checkpoint'

# The stacks of the fibers that wait for the running one to come back; innermost first.
module Resumers
  STACKS = []

  # Called on the line, and by the method, that then resumes a fiber by the C function named.
  def self.waiting(cfunc)
    stack = caller_locations(1).map { |l| [l.label, l.path, l.lineno] }
    STACKS.unshift([[c_label(cfunc), *stack[0].drop(1)], *stack])
  end

  def self.c_label(cfunc)
    RUBY_VERSION < '3.4' ? cfunc[/\w+\z/] : cfunc
  end

  def self.back
    STACKS.shift
  end
end

module Scenarios
  SCENARIOS = {}

  def self.scenario(name, &body)
    SCENARIOS[name] = body
    Oracle.define_spin(name)
  end

  def self.spin(seconds)
    Oracle.seconds = Float(seconds)
    SCENARIOS.each { |name, body| run(name, body) }
  end

  def self.sleep(name)
    Oracle.mode = :sleep
    run(name, SCENARIOS.fetch(name.to_sym))
  end

  def self.run(name, body)
    @name = name
    Resumers::STACKS.clear
    body.call
  end

  def self.checkpoint
    own = caller_locations(1).map { |l| [l.label, l.path, l.lineno] }
    Oracle.say(scenario: @name, fibers: [own, *Resumers::STACKS])
    Oracle.mode == :sleep ? Oracle.wait_for_test : Oracle.__send__("spin_#{@name}")
  end

  def self.resume(fiber)
    Resumers.waiting('Fiber#resume'); fiber.resume
    Resumers.back
  end

  def self.next_of(enumerator)
    Resumers.waiting('Enumerator#next'); enumerator.next
    Resumers.back
  end

  def self.peek_at(enumerator)
    Resumers.waiting('Enumerator#peek'); enumerator.peek
    Resumers.back
  end

  def self.deep(depth, &block)
    depth.zero? ? block.call : deep(depth - 1, &block)
  end

  def self.list
    yield 1
    checkpoint
    yield 2
  end

  def self.first_resumer(fiber)
    resume(fiber)
  end

  def self.second_resumer(fiber)
    [1].each { resume(fiber) }
  end

  scenario(:one) { resume(Fiber.new { checkpoint }) }

  scenario(:two) do
    resume(Fiber.new { [1].each { resume(Fiber.new { checkpoint }) } })
  end

  scenario(:three) do
    inner = Fiber.new { deep(2) { checkpoint } }
    middle = Fiber.new { deep(1) { resume(inner) } }
    resume(Fiber.new { resume(middle) })
  end

  scenario(:deep_resumer) { deep(150) { resume(Fiber.new { checkpoint }) } }
  scenario(:deep_fiber) { resume(Fiber.new { deep(150) { checkpoint } }) }
  scenario(:both_deep) { deep(40) { resume(Fiber.new { deep(40) { checkpoint } }) } }

  scenario(:ten_deep) do
    innermost = Fiber.new { checkpoint }
    resume(9.times.inject(innermost) { |fiber, _| Fiber.new { resume(fiber) } })
  end

  # Resumed here, and once more from elsewhere.
  scenario(:resumed_twice) do
    fiber = Fiber.new do
      Fiber.yield
      checkpoint
    end
    first_resumer(fiber)
    second_resumer(fiber)
  end

  scenario(:resumed_by_another_fiber) do
    fiber = Fiber.new do
      Fiber.yield
      checkpoint
    end
    first_resumer(fiber)
    resume(Fiber.new { second_resumer(fiber) })
  end

  # The main fiber, which has resumed others.
  scenario(:after_fibers) do
    fiber = Fiber.new { 3.times { Fiber.yield } }
    first_resumer(fiber)
    first_resumer(fiber)
    deep(3) { checkpoint }
  end

  scenario(:enumerator_next) do
    enumerator = Enumerator.new do |yielder|
      yielder << 1
      checkpoint
      yielder << 2
    end
    next_of(enumerator)
    next_of(enumerator)
  end

  scenario(:enumerator_of_method) do
    enumerator = to_enum(:list)
    next_of(enumerator)
    peek_at(enumerator)
  end

  scenario(:enumerator_in_fiber) do
    enumerator = to_enum(:list)
    resume(Fiber.new { 2.times { next_of(enumerator) } })
  end

  scenario(:enumerator_in_enumerator) do
    inner = to_enum(:list)
    outer = Enumerator.new { |yielder| loop { yielder << next_of(inner) } }
    next_of(outer)
    next_of(outer)
  end

  scenario(:in_thread) do
    Thread.new { resume(Fiber.new { deep(2) { checkpoint } }) }.join
  end

  scenario(:thread_in_fiber) do
    Fiber.new { Thread.new { deep(2) { checkpoint } }.join }.resume
  end

  scenario(:raised_in_fiber) do
    fiber = Fiber.new do
      begin
        Fiber.yield
        raise 'one'
      rescue RuntimeError
        checkpoint
      end
    end
    first_resumer(fiber)
    second_resumer(fiber)
  end
end

# Fibers with a number.
module Numbered
  COUNT = 50

  class << self
    attr_accessor :switches
  end
  self.switches = 0

  def self.burn
    i = 0
    i += 1 while i < 1_000
  end

  def self.define(number)
    class_eval(<<~RUBY, "numbered_#{number}.rb", 1)
      def self.outer_#{number}
        loop do
          [1].each { inner_#{number} }
          Fiber.yield
        end
      end

      def self.inner_#{number}
        burn
      end

      def self.fiber_#{number}
        Fiber.new { outer_#{number} }
      end

      def self.short_#{number}
        Fiber.new { inner_#{number} }
      end

      def self.resume_#{number}(fiber)
        Numbered.switches += 1
        fiber.resume
        burn
      end

      def self.nested_#{number}
        Fiber.new do
          fiber = fiber_#{number}
          loop do
            resume_#{number}(fiber)
            Fiber.yield
          end
        end
      end

      def self.list_#{number}
        loop do
          inner_#{number}
          yield #{number}
        end
      end

      def self.next_#{number}(enumerator)
        Numbered.switches += 1
        enumerator.next
        burn
      end

      def self.transfer_#{number}(to)
        Fiber.new do
          loop do
            inner_#{number}
            Numbered.switches += 1
            to.call.transfer
          end
        end
      end

      def self.waits_#{number}
        Fiber.schedule do
          loop do
            inner_#{number}
            Numbered.switches += 1
            sleep(0)
          end
        end
      end
    RUBY
  end

  def self.resume
    fibers = Array.new(COUNT) { |i| __send__("fiber_#{i}") }
    until over?
      fibers.each_with_index { |fiber, i| __send__("resume_#{i}", fiber) }
    end
  end

  def self.nested
    fibers = Array.new(COUNT) { |i| __send__("nested_#{i}") }
    until over?
      fibers.each_with_index { |fiber, i| __send__("resume_#{i}", fiber) }
    end
  end

  # Each is resumed once, and its stack used by the next.
  def self.short
    i = 0
    until over?
      i = (i + 1) % COUNT
      __send__("resume_#{i}", __send__("short_#{i}"))
    end
  end

  def self.threads
    Array.new(3) do |t|
      Thread.new do
        numbers = (0...COUNT).select { |i| i % 3 == t }
        fibers = numbers.to_h { |i| [i, __send__("fiber_#{i}")] }
        until over?
          fibers.each { |i, fiber| __send__("resume_#{i}", fiber) }
        end
      end
    end.each(&:join)
  end

  def self.enumerators
    all = Array.new(COUNT) { |i| to_enum("list_#{i}") }
    until over?
      all.each_with_index { |enumerator, i| __send__("next_#{i}", enumerator) }
    end
  end

  def self.transfer
    root = Fiber.current
    fibers = Array.new(COUNT) do |i|
      __send__("transfer_#{i}", -> { over? ? root : fibers[(i + 1) % COUNT] })
    end
    fibers[0].transfer
  end

  def self.scheduler
    Fiber.set_scheduler(Scheduler.new)
    COUNT.times { |i| __send__("waits_#{i}") }
  end

  def self.over?
    Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID) > @stop
  end

  def self.run(kind, seconds)
    COUNT.times { |i| define(i) }
    @stop = Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID) + seconds
    kind == 'scheduler' ? Thread.new { scheduler }.join : __send__(kind)
  end

  # Takes all in turn.
  class Scheduler
    def initialize
      @ready = []
    end

    def fiber(&block)
      fiber = Fiber.new(blocking: false, &block)
      @ready << fiber
      fiber
    end

    def kernel_sleep(*)
      @ready << Fiber.current
      Fiber.yield
    end

    def close
      @ready.shift.resume until Numbered.over?
      @ready.clear
    end
    alias scheduler_close close

    def block(*)
      kernel_sleep
    end

    def unblock(*); end

    def fiber_interrupt(*); end

    def io_wait(_io, events, _timeout)
      events
    end
  end
end

require 'fiber'
kind, argument = ARGV
Oracle.say(waiting: true, pid: Process.pid)
Oracle.wait_for_test
if %w[spin sleep].include?(kind)
  Scenarios.public_send(kind, argument)
else
  Numbered.run(kind, Float(argument))
end
Oracle.say(ready: true, switches: Numbered.switches)
Oracle.wait_for_test
exit!(0)
