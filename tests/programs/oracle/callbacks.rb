# SPDX-License-Identifier: GPL-2.0-only
# frozen_string_literal: true

# Ruby methods that C code calls: conversions, comparisons, hashing, output.

class Converted
  def to_s
    Oracle.checkpoint
    'text'
  end

  def to_str
    Oracle.checkpoint
    'text'
  end

  def to_ary
    Oracle.checkpoint
    [1, 2]
  end

  def to_a
    Oracle.checkpoint
    [1, 2]
  end

  def to_proc
    Oracle.checkpoint
    proc { nil }
  end

  def to_hash
    Oracle.checkpoint
    {}
  end

  def to_int
    Oracle.checkpoint
    1
  end

  def coerce(other)
    Oracle.checkpoint
    [other, 1]
  end

  def inspect
    Oracle.checkpoint
    'inspected'
  end

  def ==(_other)
    Oracle.checkpoint
    true
  end

  def takes(*_arguments, **_options)
    nil
  end

  def interpolated
    "a #{self} b"
  end

  def destructured
    [[self]].each { |((a, b))| [a, b] }
  end

  def splatted
    takes(*self)
  end

  def passed_as_block
    [1].each(&self)
  end
end

class Splatted
  def to_a
    Oracle.checkpoint
    [1, 2]
  end
end

class Keyed
  def hash
    Oracle.checkpoint
    1
  end

  def eql?(_other)
    true
  end
end

class SlowEquality
  def hash
    1
  end

  def eql?(_other)
    Oracle.checkpoint
    true
  end
end

class Listed
  include Enumerable

  def each
    yield 3
    yield 1
  end

  def each_stopping
    return to_enum(:each_stopping) unless block_given?

    Oracle.checkpoint
    yield 1
  end
end

class EachStops
  include Enumerable

  def each
    Oracle.checkpoint
    yield 1
  end
end

class Ordered
  include Comparable
  attr_reader :rank

  def initialize(rank)
    @rank = rank
  end

  def <=>(other)
    Oracle.checkpoint
    rank <=> other.rank
  end

  def succ
    Ordered.new(rank + 1)
  end
end

class Written
  def write(*strings)
    Oracle.checkpoint
    strings.sum(&:size)
  end
end

class Marshaled
  def marshal_dump
    Oracle.checkpoint
    1
  end
end

class Cloned
  def initialize_copy(_other)
    Oracle.checkpoint
  end
end

module Oracle
  scenario(:interpolation) { Converted.new.interpolated }
  scenario(:to_str) { 'a' + Converted.new }
  scenario(:to_ary) { Converted.new.destructured }
  scenario(:to_a) { [*Splatted.new] }
  scenario(:to_proc) { Converted.new.passed_as_block }
  scenario(:to_hash) { {}.merge(Converted.new) }
  scenario(:to_int) { [1, 2, 3].first(Converted.new) }
  scenario(:coerce) { 1 + Converted.new }
  scenario(:coerce_float) { 1.5 * Converted.new }
  scenario(:array_inspect) { [Converted.new].inspect }
  scenario(:array_join) { [Object, Splatted.new, Converted.new].join(' ') }
  scenario(:array_include) { Array.new(1) { Converted.new }.include?(:nothing) }
  scenario(:format) { format('%s', Converted.new) }
  scenario(:hash_key) { { Keyed.new => 1 }[1] }
  scenario(:hash_eql) { { SlowEquality.new => 1 }[SlowEquality.new] }
  scenario(:hash_default_proc) { Hash.new { |_hash, _key| Oracle.checkpoint }[1] }
  scenario(:hash_default_proc_fetch) { Hash.new { |_h, _k| Oracle.checkpoint }.values_at(1) }
  scenario(:array_uniq) { [SlowEquality.new, SlowEquality.new].uniq }
  scenario(:enumerable_map) { EachStops.new.map { |x| x } }
  scenario(:enumerable_sort_by) { Listed.new.sort_by { |x| Oracle.checkpoint || x } }
  scenario(:enumerable_inject) { Listed.new.inject { |a, b| Oracle.checkpoint || (a + b) } }
  scenario(:enumerable_each_with_object) do
    Listed.new.each_with_object([]) { |x, list| list << x << Oracle.checkpoint }
  end
  scenario(:enumerable_each_slice) { Listed.new.each_slice(2) { Oracle.checkpoint } }
  scenario(:enumerable_each_cons) { Listed.new.each_cons(2) { Oracle.checkpoint } }
  scenario(:enumerable_first) { EachStops.new.first }
  scenario(:enumerable_include) { EachStops.new.include?(1) }
  scenario(:enumerable_lazy) do
    Listed.new.lazy.map { |x| x }.select { |_x| Oracle.checkpoint || true }.first(2)
  end
  scenario(:enumerator_to_enum) { Listed.new.each_stopping.map { |x| x } }
  scenario(:enumerator_with_index) { Listed.new.map.with_index { |_x, _i| Oracle.checkpoint } }
  scenario(:enumerator_new) do
    Enumerator.new { |y| y << 1 << Oracle.checkpoint }.to_a
  end
  scenario(:comparable_sort) { [Ordered.new(2), Ordered.new(1)].sort }
  scenario(:comparable_max) { [Ordered.new(2), Ordered.new(1)].max }
  scenario(:comparable_clamp_range) { Ordered.new(2).clamp(Ordered.new(1), Ordered.new(3)) }
  scenario(:range_of_objects) { (Ordered.new(1)..Ordered.new(2)).each { nil } }
  scenario(:output_write) { Marshal.dump(1, Written.new) }
  scenario(:marshal_dump) { Marshal.dump(Marshaled.new) }
  scenario(:initialize_copy) { Cloned.new.dup }
  scenario(:initialize_clone) { Cloned.new.clone }
  scenario(:each_object) { ObjectSpace.each_object(Class) { Oracle.checkpoint } }
end
