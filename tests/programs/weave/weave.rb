# SPDX-License-Identifier: GPL-2.0-only
# frozen_string_literal: true

# Ruby and C in turn, to a random depth, and what is active at the innermost point, where CPU time
# is burned (weave.c keeps account).
#
#   ruby weave.rb main|thread|enumerate WEAVE.SO LEAVES LEAF_NS SEED
#
# main and thread say where. enumerate, on the main thread, has each way next to some others
# instead.
#
# Begins when a line comes on standard input. At each leaf one line is printed,
#   {"tid": …, "from_ns": …, "to_ns": …, "leaf": [STACK, STACK of the resumer, …]}
# (CLOCK_MONOTONIC) in which a STACK is from the outermost entry to the innermost
#   ["ruby", LABEL] ["core", LABEL] ["cfunc", LABEL, C FUNCTION] ["c", C FUNCTION]
# In a leaf of C the innermost entry is what runs; in one of Ruby it may have called Weave.cpu_ns.
# At last {"ready": true, "leaves": N, "seed": SEED}; ends when another line comes.
#
# Labels are those of Ruby 3.4. The frames of rescue and ensure clauses, which versions up to 3.3
# have besides that of the method, are not in it.

require_relative '../oracle/checkpoint'
require 'fiber'

# Ways from one step to the next. Each method here says what it is when it begins, and says so again
# after it has caught something.
class Weaver
  LEAVES = %i[leaf_of_ruby leaf_of_ruby_block leaf_of_c leaf_of_c_deep
              leaf_without_lock leaf_of_nested_c leaf_in_fiber_of_c].freeze

  # The methods that go on by calling go.
  WAYS = []

  # Of these, the ways of C that are called alike: Weave.NAME(weaver, left)
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
    Weave.leaf_ns = leaf_ns
  end

  # The start of a truth.
  def start(left)
    depth = Weave.enter(:ruby, :'Weaver#start')
    go(left)
    Weave.cut(depth)
    Weave.forget
  end

  def go(left)
    depth = Weave.enter(:ruby, :'Weaver#go')
    if left.zero?
      __send__(LEAVES[@random.rand(LEAVES.size)])
    else
      __send__(next_way, left - 1)
    end
    Weave.cut(depth)
  end

  def next_way
    @ways ? @ways.shift : WAYS[@random.rand(WAYS.size)]
  end

  def raises(_left)
    Weave.enter(:ruby, :'Weaver#raises')
    raise 'of Ruby'
  end

  def throws(left)
    Weave.enter(:ruby, :'Weaver#throws')
    throw :weave_tag, left
  end

  # ---- leaves

  def leaf_of_ruby
    depth = Weave.enter(:ruby, :'Weaver#leaf_of_ruby')
    stop = Weave.cpu_ns + @leaf_ns
    Weave.leaf_begins
    while Weave.cpu_ns < stop
      i = 0
      i += 1 while i < 500
    end
    Weave.leaf_ends
    Weave.cut(depth)
  end

  def leaf_of_ruby_block
    depth = Weave.enter(:ruby, :'Weaver#leaf_of_ruby_block')
    Weave.enter(:core, :'Array#each')
    [1].each do
      Weave.enter(:ruby, :'block in Weaver#leaf_of_ruby_block')
      stop = Weave.cpu_ns + @leaf_ns
      Weave.leaf_begins
      while Weave.cpu_ns < stop
        i = 0
        i += 1 while i < 500
      end
      Weave.leaf_ends
    end
    Weave.cut(depth)
  end

  def leaf_of_c
    depth = Weave.enter(:ruby, :'Weaver#leaf_of_c')
    Weave.burn
    Weave.cut(depth)
  end

  def leaf_of_c_deep
    depth = Weave.enter(:ruby, :'Weaver#leaf_of_c_deep')
    Weave.burn_deep(@random.rand(100))
    Weave.cut(depth)
  end

  def leaf_without_lock
    depth = Weave.enter(:ruby, :'Weaver#leaf_without_lock')
    Weave.burn_unlocked
    Weave.cut(depth)
  end

  def leaf_of_nested_c
    depth = Weave.enter(:ruby, :'Weaver#leaf_of_nested_c')
    Weave.burn_nested
    Weave.cut(depth)
  end

  def leaf_in_fiber_of_c
    depth = Weave.enter(:ruby, :'Weaver#leaf_in_fiber_of_c')
    Weave.burn_in_fiber
    Weave.cut(depth)
  end

  # ---- by Ruby

  def by_each(left)
    depth = Weave.enter(:ruby, :'Weaver#by_each')
    Weave.enter(:core, :'Array#each')
    [1].each do
      Weave.enter(:ruby, :'block in Weaver#by_each')
      go(left)
    end
    Weave.cut(depth)
  end

  def by_blocks(left)
    depth = Weave.enter(:ruby, :'Weaver#by_blocks')
    Weave.enter(:core, :'Integer#times')
    1.times do
      Weave.enter(:ruby, :'block in Weaver#by_blocks')
      Weave.enter(:core, :'Hash#each')
      { 1 => 2 }.each do |_, _|
        Weave.enter(:ruby, :'block (2 levels) in Weaver#by_blocks')
        go(left)
      end
    end
    Weave.cut(depth)
  end

  # A comparison that goes deep once.
  def by_sort(left)
    depth = Weave.enter(:ruby, :'Weaver#by_sort')
    Weave.enter(:core, :'Array#sort')
    deep = true
    [5, 3, 4, 1, 2].sort do |a, b|
      if deep
        deep = false
        Weave.enter(:ruby, :'block in Weaver#by_sort')
        go(left)
      end
      a <=> b
    end
    Weave.cut(depth)
  end

  def by_instance_exec(left)
    depth = Weave.enter(:ruby, :'Weaver#by_instance_exec')
    Weave.enter(:core, :'BasicObject#instance_exec')
    instance_exec(left) do |n|
      Weave.enter(:ruby, :'block in Weaver#by_instance_exec')
      go(n)
    end
    Weave.cut(depth)
  end

  def by_method_object(left)
    depth = Weave.enter(:ruby, :'Weaver#by_method_object')
    Weave.enter(:core, :'Method#call')
    method(:go).call(left)
    Weave.cut(depth)
  end

  def by_public_send(left)
    depth = Weave.enter(:ruby, :'Weaver#by_public_send')
    Weave.enter(:core, :'Kernel#public_send')
    public_send(:go, left)
    Weave.cut(depth)
  end

  def by_lambda(left)
    depth = Weave.enter(:ruby, :'Weaver#by_lambda')
    own = lambda do |n|
      Weave.enter(:ruby, :'block in Weaver#by_lambda')
      go(n)
    end
    own.call(left)
    Weave.cut(depth)
  end

  def by_recursion(left, more = 8)
    depth = Weave.enter(:ruby, :'Weaver#by_recursion')
    more.zero? ? go(left) : by_recursion(left, more - 1)
    Weave.cut(depth)
  end

  def by_rescue(left)
    depth = Weave.enter(:ruby, :'Weaver#by_rescue')
    begin
      raises(left)
    rescue RuntimeError
      Weave.cut(depth + 1)
      go(left)
    end
    Weave.cut(depth)
  end

  # An exception that came through C.
  def by_rescue_of_c(left)
    depth = Weave.enter(:ruby, :'Weaver#by_rescue_of_c')
    begin
      Weave.yield(left) { |n| raises(n) }
    rescue RuntimeError
      Weave.cut(depth + 1)
    end
    go(left)
    Weave.cut(depth)
  end

  def by_ensure(left)
    depth = Weave.enter(:ruby, :'Weaver#by_ensure')
    begin
      begin
        raises(left)
      ensure
        Weave.cut(depth + 1)
        go(left)
      end
    rescue RuntimeError
      Weave.cut(depth + 1)
    end
    Weave.cut(depth)
  end

  def by_catch(left)
    depth = Weave.enter(:ruby, :'Weaver#by_catch')
    Weave.enter(:core, :'Kernel#catch')
    catch(:weave_tag) do
      Weave.enter(:ruby, :'block in Weaver#by_catch')
      go(left)
      Weave.yield(left) { |n| throws(n) }
    end
    Weave.cut(depth)
  end

  # A throw that came through C.
  def by_thrown(left)
    depth = Weave.enter(:ruby, :'Weaver#by_thrown')
    catch(:weave_tag) { Weave.yield_deep(left) { |n| throws(n) } }
    Weave.cut(depth + 1)
    go(left)
    Weave.cut(depth)
  end

  def by_break(left)
    depth = Weave.enter(:ruby, :'Weaver#by_break')
    Weave.yield_deep(left) { break }
    Weave.cut(depth + 1)
    go(left)
    Weave.cut(depth)
  end

  def by_fiber(left)
    depth = Weave.enter(:ruby, :'Weaver#by_fiber')
    number = Weave.fiber_new
    fiber = Fiber.new do
      Weave.enter(:ruby, :'block in Weaver#by_fiber')
      go(left)
      Weave.fiber_pauses
    end
    Weave.enter(:core, :'Fiber#resume')
    Weave.fiber_begins(number)
    fiber.resume
    Weave.cut(depth)
  end

  # A fiber that is left, and resumed again by another one.
  def by_fiber_again(left)
    depth = Weave.enter(:ruby, :'Weaver#by_fiber_again')
    number = Weave.fiber_new
    fiber = Fiber.new do
      Weave.enter(:ruby, :'block in Weaver#by_fiber_again')
      Weave.fiber_pauses
      Fiber.yield
      go(left)
      Weave.fiber_pauses
    end
    Weave.fiber_begins(number)
    fiber.resume
    resumes(fiber, number)
    Weave.cut(depth)
  end

  def resumes(fiber, number)
    depth = Weave.enter(:ruby, :'Weaver#resumes')
    own = Weave.fiber_new
    other = Fiber.new do
      Weave.enter(:ruby, :'block in Weaver#resumes')
      Weave.enter(:core, :'Fiber#resume')
      Weave.fiber_begins(number)
      fiber.resume
      Weave.fiber_pauses
    end
    Weave.enter(:core, :'Fiber#resume')
    Weave.fiber_begins(own)
    other.resume
    Weave.cut(depth)
  end

  # One that waits meanwhile.
  def by_waiting_fiber(left)
    depth = Weave.enter(:ruby, :'Weaver#by_waiting_fiber')
    fiber = Fiber.new { Weave.yield(left) { Fiber.yield } }
    number = Weave.fiber_new
    Weave.fiber_begins(number)
    fiber.resume
    Weave.fiber_pauses
    go(left)
    Weave.cut(depth)
  end

  # ---- by C

  def by_yield(left)
    depth = Weave.enter(:ruby, :'Weaver#by_yield')
    Weave.yield(left) do |n|
      Weave.enter(:ruby, :'block in Weaver#by_yield')
      go(n)
    end
    Weave.cut(depth)
  end

  def by_yield_deep(left)
    depth = Weave.enter(:ruby, :'Weaver#by_yield_deep')
    Weave.yield_deep(left) do |n|
      Weave.enter(:ruby, :'block in Weaver#by_yield_deep')
      go(n)
    end
    Weave.cut(depth)
  end

  IN_C.each do |name|
    class_eval(<<~RUBY, __FILE__, __LINE__ + 1)
      def by_c_#{name}(left)                                    # def by_c_call(left)
        depth = Weave.enter(:ruby, :'Weaver#by_c_#{name}')      #   depth = …
        Weave.#{name}(self, left)                               #   Weave.call(self, left)
        Weave.cut(depth)                                        #   Weave.cut(depth)
      end                                                       # end
    RUBY
  end
end

kind, library, leaves, leaf_ns, seed = ARGV
require library
random = Random.new(Integer(seed))
weaver = Weaver.new(random, Integer(leaf_ns))
work =
  if kind == 'enumerate'
    lambda do
      (Weaver::WAYS + Weaver::WAYS.reverse).each_cons(2) do |ways|
        weaver.ways = ways.dup
        weaver.start(2)
      end
    end
  else
    -> { Integer(leaves).times { weaver.start(1 + random.rand(12)) } }
  end

$stdout.sync = true
Oracle.say(waiting: true, pid: Process.pid)
Oracle.wait_for_test
kind == 'thread' ? Thread.new(&work).join : work.call
Oracle.say(ready: true, leaves: Integer(leaves), seed: Integer(seed))
Oracle.wait_for_test
exit!(0)
