# SPDX-License-Identifier: GPL-2.0-only
# frozen_string_literal: true

# Methods: how they are defined, named, called and found.

class Plain
  def run
    helper(1)
  end

  def helper(_number)
    Oracle.checkpoint
  end

  def keywords(first, *rest, key:, other: 2, **options, &block)
    [first, rest, key, other, options, block]
    Oracle.checkpoint
  end

  def default_argument(_first, _second = Oracle.checkpoint)
    nil
  end

  def default_keyword(key: Oracle.checkpoint)
    key
  end

  def forwards(...)
    keywords(...)
  end

  def calls_private
    secret
  end

  def calls_own_private
    self.value = 1
  end

  def rescue_modifier
    (raise 'one' rescue Oracle.checkpoint)
  end

  private

  def secret
    Oracle.checkpoint
  end

  attr_reader :value

  def value=(_value)
    Oracle.checkpoint
  end
end

class Operators
  include Comparable

  def <=>(_other)
    Oracle.checkpoint
    0
  end

  def [](_index)
    Oracle.checkpoint
  end

  def []=(_index, _value)
    Oracle.checkpoint
  end

  def +@
    Oracle.checkpoint
  end

  def !
    Oracle.checkpoint
  end

  def ===(_other)
    Oracle.checkpoint
  end

  def =~(_other)
    Oracle.checkpoint
  end

  def %(_other)
    Oracle.checkpoint
  end

  def **(_other)
    Oracle.checkpoint
  end

  def call(_argument)
    Oracle.checkpoint
  end

  def `(_command)
    Oracle.checkpoint
  end

  def backtick
    `not a command`
  end

  def done?
    Oracle.checkpoint
  end

  def done!
    Oracle.checkpoint
  end

  def done=(_value)
    Oracle.checkpoint
  end
end

class Singletons
  def self.with_self
    Oracle.checkpoint
  end

  class << self
    def in_singleton_class
      with_block { Oracle.checkpoint }
    end

    private

    def with_block
      yield
    end
  end

  def self.block_in_singleton
    [1].each { |_| Oracle.checkpoint }
  end
end

class InheritsSingletons < Singletons
end

# One object's own methods. Ruby 3.4 prints them without a class.
LONER = Object.new
def LONER.alone
  Oracle.checkpoint
end

class << LONER
  def alone_in_class
    [1].each { alone_block { Oracle.checkpoint } }
  end

  def alone_block
    yield
  end
end

module MainModule
  def self.of_module
    Oracle.checkpoint
  end

  module_function

  def function
    Oracle.checkpoint
  end
end

class UsesModuleFunction
  include MainModule

  def run
    function
  end
end

class Defined
  define_method(:from_block) { Oracle.checkpoint }

  define_method(:from_nested_block) do |*_arguments|
    [1].each { Oracle.checkpoint }
  end

  define_method(:from_lambda, ->(_number = 1) { Oracle.checkpoint })

  def original
    Oracle.checkpoint
  end
  define_method(:from_unbound_method, instance_method(:original))

  def self.make(name)
    define_method(name) { Oracle.checkpoint }
  end
  make(:made)

  define_singleton_method(:from_singleton) { Oracle.checkpoint }

  # Defined by a method of another class, in a block with a depth of its own.
  [:looped].each { |name| define_method(name) { [1].each { Oracle.checkpoint } } }
end

class DefinedFromMethod
  def source
    Oracle.checkpoint
  end

  def define_on(klass)
    unbound = method(:source).unbind
    klass.send(:define_method, :copied, unbound)
  end

  def run
    klass = Class.new(DefinedFromMethod)
    define_on(klass)
    klass.new.copied
  end
end

class Missing
  def method_missing(name, *arguments)
    return super unless name == :ghost

    [arguments].each { Oracle.checkpoint }
  end

  def respond_to_missing?(name, include_all)
    Oracle.checkpoint if name == :asked
    name == :ghost || super
  end
end

class Aliased
  def before
    Oracle.checkpoint
  end
  alias after before
  alias_method :later, :before

  alias plain_inspect inspect
  def to_s
    Oracle.checkpoint
    'aliased'
  end
  alias name to_s
end

class AliasedChild < Aliased
  alias_method :inherited_alias, :before
end

class Grandparent
  def chain(_argument = nil)
    Oracle.checkpoint
  end

  def self.chain
    Oracle.checkpoint
  end

  def only_here
    yield
  end
end

class Parent < Grandparent
  def chain(argument = nil)
    super
  end

  def self.chain
    super
  end
end

class Child < Parent
  def chain(_argument = nil)
    [1].each { super(nil) }
  end

  def self.chain
    super()
  end
end

class Reached
  def initialize(stop)
    Oracle.checkpoint if stop
  end

  def each
    yield 1
  end

  def itself_by_name(name, *arguments)
    __send__(name, *arguments)
  end

  def target(*_arguments)
    Oracle.checkpoint
  end

  def by_send
    send(:target, 1)
  end

  def by_public_send
    public_send(:target)
  end

  def by_underscored_send
    __send__(:target, 1, 2)
  end

  def by_double_send
    send(:send, :target)
  end

  def by_method_object
    method(:target).call(1)
  end

  def by_brackets
    method(:target)[1]
  end

  def by_bind_call
    Reached.instance_method(:target).bind_call(self, 1)
  end

  def by_bind
    Reached.instance_method(:target).bind(self).call
  end

  def by_send_to_private
    Plain.new.send(:secret)
  end

  def by_safe_navigation
    self&.target
  end

  def by_unpacking
    arguments = [1, 2]
    target(*arguments)
  end
end

class Deep
  def down(depth)
    depth.zero? ? Oracle.checkpoint : down(depth - 1)
  end

  def even(depth)
    depth.zero? ? Oracle.checkpoint : odd(depth - 1)
  end

  def odd(depth)
    even(depth - 1)
  end

  def through_blocks(depth)
    return Oracle.checkpoint if depth.zero?

    [depth].each { |n| through_blocks(n - 1) }
  end
end

class Lines
  def add(*numbers)
    numbers.sum
  end

  # Ruby gives the line of the call that is being made, neither the first nor the last.
  def several
    add(
      1,
      add(2,
          3),
      add(
        4,
        stop(
          5
        )
      ),
      6
    )
  end

  def chained
    [3, 1, 2]
      .map { |x| x + 1 }
      .select { |x| x }
      .each_with_index do |_, i|
        Oracle.checkpoint if i.zero?
      end
      .first
  end

  def in_heredoc
    add(<<~ONE.size, <<~TWO.size,
      some text
      and #{'more'}
    ONE
      more
      text #{stop(1)}
      and more
    TWO
        3)
  end

  def in_hash
    {
      one: 1,
      two: stop(2),
      three: 3
    }
  end

  def in_condition
    if add(1, 2) == 3 &&
       add(3) == 3 &&
       stop(1).zero?
      1
    end
  end

  def after_loop
    i = 0
    while i < 3
      i += 1
      stop(i) if i == 2
    end
  end

  # rubocop would split this, a profiler must not mind: two calls on one line, and a very far line
  def one_line; add(1); stop(1); end

  def stop(_number)
    Oracle.checkpoint
    0
  end
end

module Oracle
  scenario(:plain_method) { Plain.new.run }
  scenario(:keyword_arguments) { Plain.new.keywords(1, 2, key: 3, more: 4) { nil } }
  scenario(:default_argument) { Plain.new.default_argument(1) }
  scenario(:default_keyword) { Plain.new.default_keyword }
  scenario(:forwarded_arguments) { Plain.new.forwards(1, key: 2) }
  scenario(:private_method) { Plain.new.calls_private }
  scenario(:private_setter) { Plain.new.calls_own_private }
  scenario(:rescue_modifier) { Plain.new.rescue_modifier }

  scenario(:operator_compare) { Operators.new <=> 1 }
  scenario(:operator_index) { Operators.new[1] }
  scenario(:operator_index_set) { Operators.new[1] = 2 }
  scenario(:operator_unary_plus) { +Operators.new }
  scenario(:operator_not) { !Operators.new }
  scenario(:operator_case) do
    case 1
    when Operators.new then nil
    end
  end
  scenario(:operator_match) { Operators.new =~ 1 }
  scenario(:operator_percent) { Operators.new % 1 }
  scenario(:operator_power) { Operators.new**1 }
  scenario(:operator_call) { Operators.new.(1) }
  scenario(:operator_backtick) { Operators.new.backtick }
  scenario(:comparable_equal) { Operators.new == Operators.new }
  scenario(:comparable_clamp) { Operators.new.clamp(Operators.new, Operators.new) }
  scenario(:comparable_less) { Operators.new < Operators.new }
  scenario(:question_method) { Operators.new.done? }
  scenario(:bang_method) { Operators.new.done! }
  scenario(:setter_method) { Operators.new.done = 1 }

  scenario(:singleton_self) { Singletons.with_self }
  scenario(:singleton_class_block) { Singletons.in_singleton_class }
  scenario(:singleton_block) { Singletons.block_in_singleton }
  scenario(:singleton_inherited) { InheritsSingletons.with_self }
  scenario(:singleton_of_object) { LONER.alone }
  scenario(:singleton_of_object_block) { LONER.alone_in_class }
  scenario(:module_singleton) { MainModule.of_module }
  scenario(:module_function_on_module) { MainModule.function }
  scenario(:module_function_included) { UsesModuleFunction.new.run }

  scenario(:define_method_block) { Defined.new.from_block }
  scenario(:define_method_nested) { Defined.new.from_nested_block(1) }
  scenario(:define_method_lambda) { Defined.new.from_lambda }
  scenario(:define_method_unbound) { Defined.new.from_unbound_method }
  scenario(:define_method_in_method) { Defined.new.made }
  scenario(:define_singleton_method) { Defined.from_singleton }
  scenario(:define_method_in_block) { Defined.new.looped }
  scenario(:define_method_copied) { DefinedFromMethod.new.run }

  scenario(:method_missing) { Missing.new.ghost(1) }
  scenario(:respond_to_missing) { Missing.new.respond_to?(:asked) }
  scenario(:respond_to_missing_method) { Missing.new.method(:asked) rescue nil }

  scenario(:alias_keyword) { Aliased.new.after }
  scenario(:alias_method) { Aliased.new.later }
  scenario(:alias_to_s) { Aliased.new.name }
  scenario(:alias_inherited) { AliasedChild.new.inherited_alias }

  scenario(:super_chain) { Child.new.chain(1) }
  scenario(:super_chain_singleton) { Child.chain }
  scenario(:inherited_method) { Child.new.only_here { Oracle.checkpoint } }

  scenario(:initialize) { Reached.new(true) }
  scenario(:send) { Reached.new(false).by_send }
  scenario(:public_send) { Reached.new(false).by_public_send }
  scenario(:underscored_send) { Reached.new(false).by_underscored_send }
  scenario(:double_send) { Reached.new(false).by_double_send }
  scenario(:send_to_private) { Reached.new(false).by_send_to_private }
  scenario(:method_call) { Reached.new(false).by_method_object }
  scenario(:method_brackets) { Reached.new(false).by_brackets }
  scenario(:bind_call) { Reached.new(false).by_bind_call }
  scenario(:bind) { Reached.new(false).by_bind }
  scenario(:safe_navigation) { Reached.new(false).by_safe_navigation }
  scenario(:splat) { Reached.new(false).by_unpacking }

  scenario(:deep_recursion) { Deep.new.down(500) }
  scenario(:deep_mutual_recursion) { Deep.new.even(300) }
  scenario(:deep_blocks) { Deep.new.through_blocks(150) }
  scenario(:very_deep_recursion) { Deep.new.down(9_000) }

  scenario(:lines_of_arguments) { Lines.new.several }
  scenario(:lines_of_chain) { Lines.new.chained }
  scenario(:lines_of_heredoc) { Lines.new.in_heredoc }
  scenario(:lines_of_hash) { Lines.new.in_hash }
  scenario(:lines_of_condition) { Lines.new.in_condition }
  scenario(:lines_of_loop) { Lines.new.after_loop }
  scenario(:lines_one) { Lines.new.one_line }
end
