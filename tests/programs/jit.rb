# SPDX-License-Identifier: GPL-2.0-only
# frozen_string_literal: true

# What a JIT compiler has work with: hot methods, chains of calls, blocks, leaf methods that are
# inlined, C functions, and all that makes compiled code give up. See tests/live/jit_test.rb.
#
#   ruby jit.rb truth         runs all of it once and says each stack that it can have
#   ruby jit.rb run SECONDS   runs it for that CPU time, then Jit::Phases
#
# truth prints {"truth": [[[LABEL, PATH, LINE], ...], ...], "lines": {LABEL: [LINE, ...], ...}}:
# every stack at an event of TracePoint, innermost frame first, with the C function that is about to
# be called; and the lines of the code by labels without classes. run begins when a line comes on
# standard input; it prints {"ready": true, "spans": [[LINE, FROM, TO], ...]}: when which line was
# running (CLOCK_MONOTONIC, ns). It ends when another line comes.

require_relative 'oracle/checkpoint'

class Jit
  class Failed < StandardError; end

  # The number of rounds of the innermost loops.
  def initialize(rounds)
    @rounds = rounds
    @numbers = Array.new(8) { |i| (i * 5) % 8 }
    @point = Point.new(1, 2)
    @shapes = [Circle.new, Square.new, Line.new]
  end

  def run_all
    chain
    recursion
    mutual
    blocks
    nested_blocks
    leaves
    c_calls
    callbacks
    attributes
    polymorphic
    types
    raises
    ensures
    throws
    breaks
    keywords
    splats
    supers
    missing
    sends
    procs
    defined
    strings
    hashes
    constants
    redefined
    bindings
    ivars
    big_method
    case_in_loop
    iterators
    comparisons
    tail
  end

  def burn(number)
    i = 0
    i += 1 while i < @rounds
    number + i
  end

  def chain
    chain1(1)
  end

  def chain1(x)
    chain2(x) + 1
  end

  def chain2(x)
    x += chain3(x)
    x += burn(x)
    chain3(x)
  end

  def chain3(x)
    chain4(x) + chain5(x)
  end

  def chain4(x)
    chain5(x)
  end

  def chain5(x)
    burn(x)
  end

  def recursion
    down(40)
  end

  def down(depth)
    return burn(depth) if depth.zero?

    down(depth - 1)
  end

  def mutual
    even(20)
  end

  def even(depth)
    return burn(depth) if depth == 0

    odd(depth - 1)
  end

  def odd(depth)
    even(depth - 1)
  end

  def blocks
    yields { burn(1) }
    yields do |x|
      burn(x)
      burn(x + 1)
    end
  end

  def yields
    yield 1
    yield 2
  end

  def nested_blocks
    @numbers.each do |x|
      @numbers.first(2).each do |y|
        yields do |z|
          leaf(x + y + z)
        end
      end
      burn(x)
    end
  end

  def leaves
    i = 0
    while i < @rounds
      i += 1
      nothing
      one
      leaf(i)
      two_leaves(i)
    end
  end

  def nothing; end

  def one
    1
  end

  def leaf(x)
    x + 1
  end

  def two_leaves(x)
    leaf(x) + leaf(x + 1)
  end

  def c_calls
    i = 0
    while i < @rounds
      i += 3
      @numbers.include?(9)
      @numbers.sort
      i.to_s
      @numbers.first
      i.zero?
    end
  end

  def callbacks
    @numbers.sort_by { |x| burn(x) }
    @numbers.map { |x| leaf(x) }
    @numbers.inject { |a, b| two_leaves(a + b) }
    @numbers.each_with_index do |x, i|
      burn(x + i)
    end
    [Version.new(2), Version.new(1)].sort
  end

  def attributes
    i = 0
    while i < @rounds
      i += 1
      @point.x = @point.y
      @point.sum
    end
  end

  def polymorphic
    @shapes.each { |shape| shape.area(@rounds) }
    @shapes.each do |shape|
      shape.area(1)
      burn(1)
    end
  end

  # The same code with other classes each time: guards fail.
  def types
    add(1, 2)
    add(1.5, 2.5)
    add('a', 'b')
    add([1], [2])
    add(1 << 70, 1)
    add(1, 2.5)
  end

  def add(a, b)
    c = a + b
    burn(1)
    c + a
  end

  def raises
    fails(3)
    burn(1)
  rescue Failed
    burn(2)
  end

  def fails(depth)
    raise Failed if depth.zero?

    fails(depth - 1)
  end

  def ensures
    yields do |x|
      begin
        burn(x)
      ensure
        burn(x + 1)
      end
    end
  end

  def throws
    catch(:done) do
      yields { |x| thrower(x) }
    end
    burn(1)
  end

  def thrower(x)
    burn(x)
    throw :done if x == 2
  end

  def breaks
    @numbers.each do |x|
      burn(x)
      break if x > 4
    end
    @numbers.each do |x|
      next if x > 2

      burn(x)
    end
    returns_from_block
  end

  def returns_from_block
    @numbers.each do |x|
      return burn(x) if x > 2
    end
  end

  def keywords
    with_keywords(1, b: 2)
    with_keywords(1, b: 2, c: burn(3))
  end

  def with_keywords(a, b:, c: burn(b))
    burn(a + b + c)
  end

  def splats
    takes_all(*@numbers)
    takes_some(1)
    takes_some(1, 2, 3)
  end

  def takes_all(*all)
    burn(all.size)
  end

  def takes_some(a, b = burn(a), *rest)
    burn(a + b + rest.size)
  end

  def supers
    Child.new.work(@rounds)
  end

  def missing
    Ghost.new(self).boo(1)
  end

  def sends
    send(:burn, 1)
    __send__(:leaf, 1)
    public_send(:burn, 2)
    method(:burn).call(3)
    respond_to?(:burn)
  end

  def procs
    a = proc { |x| burn(x) }
    a.call(1)
    a.(2)
    b = ->(x) { leaf(burn(x)) }
    b.call(3)
    [1, 2].each(&b)
    [1, 2].map(&:to_s)
    yields(&a)
  end

  define_method(:by_block) do |x|
    burn(x)
  end

  def defined
    by_block(1)
  end

  def strings
    i = 0
    while i < @rounds
      i += 8
      _text = "#{i} and #{leaf(i)}"
      +'a' << 'b'
    end
  end

  def hashes
    h = { a: 1, 'b' => 2 }
    i = 0
    while i < @rounds
      i += 4
      h[:a]
      h[i] = h['b']
    end
    h.each do |_key, value|
      leaf(value)
    end
  end

  LIMIT = 3

  # An assignment to a constant makes compiled code that used it invalid.
  def constants
    i = 0
    while i < LIMIT
      i += 1
      burn(i)
      reassign(i) if i == LIMIT - 1
    end
  end

  def reassign(value)
    verbose = $VERBOSE
    $VERBOSE = nil
    self.class.const_set(:OTHER, value)
    $VERBOSE = verbose
  end

  # A method that is defined anew makes compiled callers invalid while they run.
  def redefined
    i = 0
    while i < 4
      i += 1
      Changing.new.value(i)
      change if i == 2
      burn(i)
    end
  end

  def change
    verbose = $VERBOSE
    $VERBOSE = nil
    Changing.class_eval do
      define_method(:other) { 1 }
      remove_method(:other)
    end
    $VERBOSE = verbose
  end

  # A frame's variables leave the stack.
  def bindings
    x = 1
    b = binding
    b.local_variable_set(:x, 2)
    burn(x)
  end

  # Objects of one class whose variables are in different order.
  def ivars
    Shaped.new(true).sum(@rounds)
    Shaped.new(false).sum(@rounds)
  end

  def big_method
    a = burn(1)
    b = leaf(a)
    c = two_leaves(b)
    if c > 5
      d = burn(c)
      e = leaf(d)
    else
      d = burn(2)
      e = 7
    end
    f = [a, b, c, d, e]
    g = f.map { |x| leaf(x) }
    h = { a: f, b: g }
    h.size
    burn(3)
  end

  def case_in_loop
    i = 0
    while i < @rounds
      i += 1
      case i % 4
      when 0
        leaf(i)
      when 1
        nothing
      else
        one
      end
    end
  end

  def iterators
    3.times { |x| burn(x) }
    1.upto(2) { |x| burn(x) }
    (1..2).each { |x| burn(x) }
    @numbers.each_slice(3) { |x| burn(x.size) }
    @numbers.select { |x| leaf(x) > 3 }
    tap { burn(1) }
    loop do
      burn(1)
      break
    end
  end

  def comparisons
    a = Version.new(1)
    b = Version.new(2)
    i = 0
    while i < @rounds
      i += 4
      _less = a < b
      a == b
    end
  end

  def tail
    tail1 { burn(1) }
  end

  def tail1(&block)
    tail2(&block)
  end

  def tail2
    yield
    burn(2)
  end

  class Point
    attr_accessor :x, :y

    def initialize(x, y)
      @x = x
      @y = y
    end

    def sum
      x + y
    end
  end

  class Circle
    def area(rounds)
      i = 0
      i += 1 while i < rounds
      i
    end
  end

  class Square < Circle
    def area(rounds)
      side(rounds) + 1
    end

    def side(rounds)
      i = 0
      i += 1 while i < rounds
      i
    end
  end

  class Line < Circle
  end

  class Parent
    def work(rounds)
      i = 0
      i += 1 while i < rounds
      i
    end
  end

  class Child < Parent
    def work(rounds)
      super + super(1)
    end
  end

  class Ghost
    def initialize(jit)
      @jit = jit
    end

    def method_missing(_name, x)
      @jit.burn(x)
    end

    def respond_to_missing?(_name, _private)
      true
    end
  end

  class Changing
    def value(x)
      i = 0
      i += 1 while i < 50
      x
    end
  end

  class Shaped
    def initialize(first)
      if first
        @a = 1
        @b = 2
      else
        @b = 2
        @a = 1
      end
    end

    def sum(rounds)
      i = 0
      while i < rounds
        i += 2
        @a + @b
      end
    end
  end

  class Version
    include Comparable
    attr_reader :number

    def initialize(number)
      @number = number
    end

    def <=>(other)
      number <=> other.number
    end
  end

  # Some milliseconds on one line each, then the time.
  class Phases
    def initialize
      @spans = []
    end

    def run(times)
      times.times { once }
      @spans
    end

    def once
      t0 = now
      loop_on_one_line(0, t0)
    end

    def loop_on_one_line(i, t0)
      i += 1 while i < ROUNDS
      t1 = now
      i -= 1 while i > 0
      t2 = now
      i += leaf(i) while i < ROUNDS
      t3 = now
      i = [i].max - 1 while i > 0
      t4 = now
      note(t0, t1, t2, t3, t4)
    end

    FIRST_LINE = instance_method(:loop_on_one_line).source_location[1] + 1
    ROUNDS = 150_000

    def leaf(_number)
      1
    end

    def note(*times)
      times.each_cons(2).with_index do |(from, to), i|
        @spans << [FIRST_LINE + (i * 2), from, to]
      end
    end

    def now
      Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond)
    end
  end
end

# Says every stack there is.
class Truth
  EVENTS = %i[line call return b_call b_return c_call c_return].freeze

  def initialize
    @stacks = {}
    @internal = {}
  end

  def of(jit)
    trace = TracePoint.new(*EVENTS) do |point|
      note(point, caller_locations(1)) if Thread.current == Thread.main
    end
    trace.enable { 2.times { jit.run_all } }
    Oracle.say(truth: @stacks.keys, lines: lines)
  end

  private

  # TracePoint does not see the lines of conditions and of arguments. Up to 3.0 an instruction may
  # have none, which Ruby shows as the first.
  def lines
    all = Hash.new { |hash, label| hash[label] = [] }
    collect(RubyVM::InstructionSequence.compile_file(__FILE__), all)
    @internal.each_key { |method| collect(RubyVM::InstructionSequence.of(method), all) }
    all.transform_values(&:uniq)
  end

  def collect(iseq, all)
    all[iseq.label].concat(iseq.to_a[13].grep(Integer))
    all[iseq.label] << iseq.first_lineno if RUBY_VERSION < '3.1'
    iseq.each_child { |child| collect(child, all) }
  end

  def note(point, locations)
    note_internal(point) if point.event == :call && point.path.start_with?('<internal:')
    stack = locations.map { |l| [l.label, l.path, l.lineno] }
    @stacks[stack] = true
    @stacks[[[c_label(point), *stack[0][1..]], *stack]] = true if point.event == :c_call
  end

  # A method of Ruby's own that is written in Ruby.
  def note_internal(point)
    @internal[point.defined_class.instance_method(point.method_id)] = true
  end

  def c_label(point)
    return point.method_id.to_s if RUBY_VERSION < '3.4'

    owner = point.defined_class
    return "#{owner}##{point.method_id}" unless owner.singleton_class?

    "#{owner.inspect[/\A#<Class:(.*)>\z/, 1]}.#{point.method_id}"
  end
end

def compiled
  if defined?(RubyVM::YJIT.enabled?) && RubyVM::YJIT.enabled?
    RubyVM::YJIT.runtime_stats&.slice(:compiled_iseq_count, :invalidation_count)
  elsif defined?(RubyVM::ZJIT.enabled?) && RubyVM::ZJIT.enabled?
    RubyVM::ZJIT.stats&.slice(:compiled_iseq_count)
  end
end

case ARGV.fetch(0)
when 'truth'
  Truth.new.of(Jit.new(9))
when 'run'
  Oracle.say(waiting: true, pid: Process.pid)
  Oracle.wait_for_test
  jit = Jit.new(300)
  stop = Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID) + Float(ARGV.fetch(1))
  jit.run_all while Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID) < stop
  spans = Jit::Phases.new.run(50)
  Oracle.say(ready: true, spans: spans, compiled: compiled)
  Oracle.wait_for_test
end
