# SPDX-License-Identifier: GPL-2.0-only
# frozen_string_literal: true

# Modules and classes: mixing in, refining, nesting, and those without a name.

module Mixed
  def mixed
    Oracle.checkpoint
  end

  def self.included(base)
    base.extend(ClassMethods)
  end

  module ClassMethods
    def class_level
      Oracle.checkpoint
    end
  end
end

class Mixer
  include Mixed

  def run
    mixed
  end
end

module Prepended
  def work
    super
  end

  def only_prepended
    Oracle.checkpoint
  end
end

class HasPrepended
  prepend Prepended

  def work
    Oracle.checkpoint
  end
end

module Extension
  def extended
    [1].each { Oracle.checkpoint }
  end
end

module Doubling
  refine String do
    def doubled
      Oracle.checkpoint
      self * 2
    end

    def upcase
      [1].each { super() }
      Oracle.checkpoint
    end
  end

  refine Integer do
    def thrice
      yield
    end
  end
end

module UsesRefinement
  using Doubling

  def self.plain
    'a'.doubled
  end

  def self.with_super
    'a'.upcase
  end

  def self.with_block
    1.thrice { Oracle.checkpoint }
  end
end

module Outer
  module Middle
    class Inner
      def run
        [1].each { Oracle.checkpoint }
      end

      def self.run
        new.run
      end

      class Innermost
        def run
          Inner.run
        end
      end
    end
  end

  class << self
    def run
      Middle::Inner::Innermost.new.run
    end
  end
end

class Outer::Middle::Compact < Outer::Middle::Inner
  def run
    super
  end
end

# A class that was made by a method, without a name, and has none when it runs.
module Nameless
  def self.class_with_method
    Class.new do
      def run
        [1].each { Oracle.checkpoint }
      end

      def self.run
        new.run
      end

      def <=>(_other)
        Oracle.checkpoint
      end
    end
  end

  def self.module_with_method
    Module.new do
      def run
        Oracle.checkpoint
      end
    end
  end

  def self.child_of_named
    Class.new(Mixer) do
      def run
        super
      end
    end
  end

  # Reachable by a constant of a class that has no name itself: a temporary path, not a name.
  def self.nested
    outer = Class.new
    outer.const_set(:Nested, Class.new { def run; Oracle.checkpoint; end })
    outer
  end
end

NamedLater = Nameless.class_with_method
BothNames = NamedLater
SetByConstSet = Object.const_set(:ConstSet, Class.new { def run; Oracle.checkpoint; end })

Point = Struct.new(:x, :y) do
  def distance
    Oracle.checkpoint
  end

  def self.origin
    new(0, 0).distance
  end
end

class Point3 < Struct.new(:x, :y, :z, keyword_init: true)
  def initialize(*)
    super
    Oracle.checkpoint
  end
end

if defined?(Data) && Data.respond_to?(:define)
  Coordinate = Data.define(:latitude) do
    def north
      Oracle.checkpoint
    end
  end

  Height = Data.define(:metres) do
    def initialize(metres:)
      super
      Oracle.checkpoint
    end
  end
end

class Bare < BasicObject
  def run
    [1].each { ::Oracle.checkpoint }
  end

  def self.run
    new.run
  end

  def method_missing(_name, *_arguments)
    ::Oracle.checkpoint
  end
end

class Hooked
  def self.inherited(subclass)
    super
    Oracle.checkpoint
  end

  def self.method_added(name)
    Oracle.checkpoint if name == :added
  end

  def self.const_missing(_name)
    Oracle.checkpoint
  end

  def self.define_added
    class_eval { def added; end }
  end
end

module HookedModule
  def self.included(_base)
    Oracle.checkpoint
  end

  def self.extended(_base)
    Oracle.checkpoint
  end

  def self.prepended(_base)
    Oracle.checkpoint
  end
end

class String
  def oracle_reopened
    Oracle.checkpoint
  end
end

module Kernel
  def oracle_kernel
    Oracle.checkpoint
  end
end

def oracle_toplevel
  Oracle.checkpoint
end

module Oracle
  scenario(:included_method) { Mixer.new.run }
  scenario(:extended_by_hook) { Mixer.class_level }
  scenario(:prepended_super) { HasPrepended.new.work }
  scenario(:prepended_only) { HasPrepended.new.only_prepended }
  scenario(:extended_object) { Object.new.extend(Extension).extended }
  scenario(:extended_class) { Class.new { extend Extension }.extended }

  scenario(:refinement) { UsesRefinement.plain }
  scenario(:refinement_super) { UsesRefinement.with_super }
  scenario(:refinement_block) { UsesRefinement.with_block }

  scenario(:nested_constants) { Outer.run }
  scenario(:compact_constant) { Outer::Middle::Compact.new.run }

  scenario(:anonymous_class) { Nameless.class_with_method.new.run }
  scenario(:anonymous_class_singleton) { Nameless.class_with_method.run }
  scenario(:anonymous_class_operator) { Nameless.class_with_method.new <=> 1 }
  scenario(:anonymous_module) { Object.new.extend(Nameless.module_with_method).run }
  scenario(:anonymous_child) { Nameless.child_of_named.new.run }
  scenario(:anonymous_nested) { Nameless.nested::Nested.new.run }
  scenario(:named_later) { NamedLater.new.run }
  scenario(:named_later_singleton) { NamedLater.run }
  scenario(:named_by_const_set) { SetByConstSet.new.run }

  scenario(:struct_method) { Point.new(1, 2).distance }
  scenario(:struct_singleton) { Point.origin }
  scenario(:struct_initialize) { Point3.new(x: 1, y: 2, z: 3) }
  if defined?(Coordinate)
    scenario(:data_method) { Coordinate.new(latitude: 1).north }
    scenario(:data_initialize) { Height.new(metres: 1) }
  end

  scenario(:basic_object) { Bare.run }
  scenario(:basic_object_missing) { Bare.new.anything }

  scenario(:hook_inherited) { Class.new(Hooked) }
  scenario(:hook_method_added) { Hooked.define_added }
  scenario(:hook_const_missing) { Hooked::NoSuchConstant }
  scenario(:hook_included) { Class.new.include(HookedModule) }
  scenario(:hook_extended) { Object.new.extend(HookedModule) }
  scenario(:hook_prepended) { Class.new.prepend(HookedModule) }

  scenario(:reopened_core_class) { 'text'.oracle_reopened }
  scenario(:kernel_method) { 1.oracle_kernel }
  scenario(:toplevel_method) { oracle_toplevel }
end
