# SPDX-License-Identifier: GPL-2.0-only
# frozen_string_literal: true

# Ruby and C in turn, to a random depth, and what is active at the innermost point, where CPU time
# is burned (mixed.c keeps account).
#
#   ruby mixed.rb main|thread|enumerate MIXED.SO LEAVES LEAF_NS SEED
#
# main and thread say where. enumerate, on the main thread, has each way next to some others
# instead.
#
# Begins when a line comes on standard input. At each leaf one line is printed,
#   {"tid": …, "from_ns": …, "to_ns": …, "leaf": [STACK, STACK of the resumer, …]}
# (CLOCK_MONOTONIC) in which a STACK is from the outermost entry to the innermost
#   ["ruby", LABEL] ["core", LABEL] ["cfunc", LABEL, C FUNCTION] ["c", C FUNCTION]
# In a leaf of C the innermost entry is what runs; in one of Ruby it may have called Mixed.cpu_ns.
# At last {"ready": true, "leaves": N, "seed": SEED}; ends when another line comes.
#
# Labels are those of Ruby 3.4. The frames of rescue and ensure clauses, which versions up to 3.3
# have besides that of the method, are not in it.

require_relative '../oracle/checkpoint'
require 'fiber'

# Ways from one step to the next. Each method here says what it is when it begins, and says so again
# after it has caught something.
class Mixer
  LEAVES = %i[leaf_of_ruby leaf_of_ruby_block leaf_of_c leaf_of_c_deep
              leaf_without_lock leaf_of_nested_c leaf_in_fiber_of_c].freeze

  # The methods that go on by calling go.
  WAYS = []

  # Of these, the ways of C that are called alike: Mixed.NAME(mixer, left)
  IN_C = %i[call call_public nested deep shapes arguments protect after_protect ensure
            while_raised rescue never_returns catch block_call proc mutex qsort bsearch
            signal without_lock fiber].freeze

  def self.method_added(name)
    WAYS << name if name.to_s.start_with?('by_')
    super
  end

  attr_writer :ways

  def initialize(random, leaf_ns)
    @random = random
    @leaf_ns = leaf_ns
    Mixed.leaf_ns = leaf_ns
  end

  # The start of a truth.
  def start(left)
    depth = Mixed.enter(:ruby, :'Mixer#start')
    go(left)
    Mixed.cut(depth)
    Mixed.forget
  end

  def go(left)
    depth = Mixed.enter(:ruby, :'Mixer#go')
    if left.zero?
      __send__(LEAVES[@random.rand(LEAVES.size)])
    else
      __send__(next_way, left - 1)
    end
    Mixed.cut(depth)
  end

  def next_way
    @ways ? @ways.shift : WAYS[@random.rand(WAYS.size)]
  end

  def raises(_left)
    Mixed.enter(:ruby, :'Mixer#raises')
    raise 'of Ruby'
  end

  def throws(left)
    Mixed.enter(:ruby, :'Mixer#throws')
    throw :mixed_tag, left
  end

  # ---- leaves

  def leaf_of_ruby
    depth = Mixed.enter(:ruby, :'Mixer#leaf_of_ruby')
    stop = Mixed.cpu_ns + @leaf_ns
    Mixed.leaf_begins
    while Mixed.cpu_ns < stop
      i = 0
      i += 1 while i < 500
    end
    Mixed.leaf_ends
    Mixed.cut(depth)
  end

  def leaf_of_ruby_block
    depth = Mixed.enter(:ruby, :'Mixer#leaf_of_ruby_block')
    Mixed.enter(:core, :'Array#each')
    [1].each do
      Mixed.enter(:ruby, :'block in Mixer#leaf_of_ruby_block')
      stop = Mixed.cpu_ns + @leaf_ns
      Mixed.leaf_begins
      while Mixed.cpu_ns < stop
        i = 0
        i += 1 while i < 500
      end
      Mixed.leaf_ends
    end
    Mixed.cut(depth)
  end

  def leaf_of_c
    depth = Mixed.enter(:ruby, :'Mixer#leaf_of_c')
    Mixed.burn
    Mixed.cut(depth)
  end

  def leaf_of_c_deep
    depth = Mixed.enter(:ruby, :'Mixer#leaf_of_c_deep')
    Mixed.burn_deep(@random.rand(100))
    Mixed.cut(depth)
  end

  def leaf_without_lock
    depth = Mixed.enter(:ruby, :'Mixer#leaf_without_lock')
    Mixed.burn_unlocked
    Mixed.cut(depth)
  end

  def leaf_of_nested_c
    depth = Mixed.enter(:ruby, :'Mixer#leaf_of_nested_c')
    Mixed.burn_nested
    Mixed.cut(depth)
  end

  def leaf_in_fiber_of_c
    depth = Mixed.enter(:ruby, :'Mixer#leaf_in_fiber_of_c')
    Mixed.burn_in_fiber
    Mixed.cut(depth)
  end

  # ---- by Ruby

  def by_each(left)
    depth = Mixed.enter(:ruby, :'Mixer#by_each')
    Mixed.enter(:core, :'Array#each')
    [1].each do
      Mixed.enter(:ruby, :'block in Mixer#by_each')
      go(left)
    end
    Mixed.cut(depth)
  end

  def by_blocks(left)
    depth = Mixed.enter(:ruby, :'Mixer#by_blocks')
    Mixed.enter(:core, :'Integer#times')
    1.times do
      Mixed.enter(:ruby, :'block in Mixer#by_blocks')
      Mixed.enter(:core, :'Hash#each')
      { 1 => 2 }.each do |_, _|
        Mixed.enter(:ruby, :'block (2 levels) in Mixer#by_blocks')
        go(left)
      end
    end
    Mixed.cut(depth)
  end

  # A comparison that goes deep once.
  def by_sort(left)
    depth = Mixed.enter(:ruby, :'Mixer#by_sort')
    Mixed.enter(:core, :'Array#sort')
    deep = true
    [5, 3, 4, 1, 2].sort do |a, b|
      if deep
        deep = false
        Mixed.enter(:ruby, :'block in Mixer#by_sort')
        go(left)
      end
      a <=> b
    end
    Mixed.cut(depth)
  end

  def by_instance_exec(left)
    depth = Mixed.enter(:ruby, :'Mixer#by_instance_exec')
    Mixed.enter(:core, :'BasicObject#instance_exec')
    instance_exec(left) do |n|
      Mixed.enter(:ruby, :'block in Mixer#by_instance_exec')
      go(n)
    end
    Mixed.cut(depth)
  end

  def by_method_object(left)
    depth = Mixed.enter(:ruby, :'Mixer#by_method_object')
    Mixed.enter(:core, :'Method#call')
    method(:go).call(left)
    Mixed.cut(depth)
  end

  def by_public_send(left)
    depth = Mixed.enter(:ruby, :'Mixer#by_public_send')
    Mixed.enter(:core, :'Kernel#public_send')
    public_send(:go, left)
    Mixed.cut(depth)
  end

  def by_lambda(left)
    depth = Mixed.enter(:ruby, :'Mixer#by_lambda')
    own = lambda do |n|
      Mixed.enter(:ruby, :'block in Mixer#by_lambda')
      go(n)
    end
    own.call(left)
    Mixed.cut(depth)
  end

  def by_recursion(left, more = 8)
    depth = Mixed.enter(:ruby, :'Mixer#by_recursion')
    more.zero? ? go(left) : by_recursion(left, more - 1)
    Mixed.cut(depth)
  end

  def by_rescue(left)
    depth = Mixed.enter(:ruby, :'Mixer#by_rescue')
    begin
      raises(left)
    rescue RuntimeError
      Mixed.cut(depth + 1)
      go(left)
    end
    Mixed.cut(depth)
  end

  # An exception that came through C.
  def by_rescue_of_c(left)
    depth = Mixed.enter(:ruby, :'Mixer#by_rescue_of_c')
    begin
      Mixed.yield(left) { |n| raises(n) }
    rescue RuntimeError
      Mixed.cut(depth + 1)
    end
    go(left)
    Mixed.cut(depth)
  end

  def by_ensure(left)
    depth = Mixed.enter(:ruby, :'Mixer#by_ensure')
    begin
      begin
        raises(left)
      ensure
        Mixed.cut(depth + 1)
        go(left)
      end
    rescue RuntimeError
      Mixed.cut(depth + 1)
    end
    Mixed.cut(depth)
  end

  def by_catch(left)
    depth = Mixed.enter(:ruby, :'Mixer#by_catch')
    Mixed.enter(:core, :'Kernel#catch')
    catch(:mixed_tag) do
      Mixed.enter(:ruby, :'block in Mixer#by_catch')
      go(left)
      Mixed.yield(left) { |n| throws(n) }
    end
    Mixed.cut(depth)
  end

  # A throw that came through C.
  def by_thrown(left)
    depth = Mixed.enter(:ruby, :'Mixer#by_thrown')
    catch(:mixed_tag) { Mixed.yield_deep(left) { |n| throws(n) } }
    Mixed.cut(depth + 1)
    go(left)
    Mixed.cut(depth)
  end

  def by_break(left)
    depth = Mixed.enter(:ruby, :'Mixer#by_break')
    Mixed.yield_deep(left) { break }
    Mixed.cut(depth + 1)
    go(left)
    Mixed.cut(depth)
  end

  def by_fiber(left)
    depth = Mixed.enter(:ruby, :'Mixer#by_fiber')
    number = Mixed.fiber_new
    fiber = Fiber.new do
      Mixed.enter(:ruby, :'block in Mixer#by_fiber')
      go(left)
      Mixed.fiber_pauses
    end
    Mixed.enter(:core, :'Fiber#resume')
    Mixed.fiber_begins(number)
    fiber.resume
    Mixed.cut(depth)
  end

  # A fiber that is left, and resumed again by another one.
  def by_fiber_again(left)
    depth = Mixed.enter(:ruby, :'Mixer#by_fiber_again')
    number = Mixed.fiber_new
    fiber = Fiber.new do
      Mixed.enter(:ruby, :'block in Mixer#by_fiber_again')
      Mixed.fiber_pauses
      Fiber.yield
      go(left)
      Mixed.fiber_pauses
    end
    Mixed.fiber_begins(number)
    fiber.resume
    resumes(fiber, number)
    Mixed.cut(depth)
  end

  def resumes(fiber, number)
    depth = Mixed.enter(:ruby, :'Mixer#resumes')
    own = Mixed.fiber_new
    other = Fiber.new do
      Mixed.enter(:ruby, :'block in Mixer#resumes')
      Mixed.enter(:core, :'Fiber#resume')
      Mixed.fiber_begins(number)
      fiber.resume
      Mixed.fiber_pauses
    end
    Mixed.enter(:core, :'Fiber#resume')
    Mixed.fiber_begins(own)
    other.resume
    Mixed.cut(depth)
  end

  # One that waits meanwhile.
  def by_waiting_fiber(left)
    depth = Mixed.enter(:ruby, :'Mixer#by_waiting_fiber')
    fiber = Fiber.new { Mixed.yield(left) { Fiber.yield } }
    number = Mixed.fiber_new
    Mixed.fiber_begins(number)
    fiber.resume
    Mixed.fiber_pauses
    go(left)
    Mixed.cut(depth)
  end

  # ---- by C

  def by_yield(left)
    depth = Mixed.enter(:ruby, :'Mixer#by_yield')
    Mixed.yield(left) do |n|
      Mixed.enter(:ruby, :'block in Mixer#by_yield')
      go(n)
    end
    Mixed.cut(depth)
  end

  def by_yield_deep(left)
    depth = Mixed.enter(:ruby, :'Mixer#by_yield_deep')
    Mixed.yield_deep(left) do |n|
      Mixed.enter(:ruby, :'block in Mixer#by_yield_deep')
      go(n)
    end
    Mixed.cut(depth)
  end

  IN_C.each do |name|
    class_eval(<<~RUBY, __FILE__, __LINE__ + 1)
      def by_c_#{name}(left)                                    # def by_c_call(left)
        depth = Mixed.enter(:ruby, :'Mixer#by_c_#{name}')      #   depth = …
        Mixed.#{name}(self, left)                               #   Mixed.call(self, left)
        Mixed.cut(depth)                                        #   Mixed.cut(depth)
      end                                                       # end
    RUBY
  end
end

kind, library, leaves, leaf_ns, seed = ARGV
require library
random = Random.new(Integer(seed))
mixer = Mixer.new(random, Integer(leaf_ns))
work =
  if kind == 'enumerate'
    lambda do
      (Mixer::WAYS + Mixer::WAYS.reverse).each_cons(2) do |ways|
        mixer.ways = ways.dup
        mixer.start(2)
      end
    end
  else
    -> { Integer(leaves).times { mixer.start(1 + random.rand(12)) } }
  end

$stdout.sync = true
Oracle.say(waiting: true, pid: Process.pid)
Oracle.wait_for_test
kind == 'thread' ? Thread.new(&work).join : work.call
Oracle.say(ready: true, leaves: Integer(leaves), seed: Integer(seed))
Oracle.wait_for_test
exit!(0)
