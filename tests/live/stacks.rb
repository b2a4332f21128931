# SPDX-License-Identifier: GPL-2.0-only
# frozen_string_literal: true

Frame = Struct.new(:kind, :label, :path, :line, :approximate) do
  # Of an object with these keys, as rbpf prints it.
  def self.from(object)
    new(object['kind'], object['label'], object['path'].to_s, object['line'].to_i,
        object['approximate'])
  end

  # Frames that Ruby's own backtraces have: neither machine code nor garbage collection.
  def ruby?
    %w[ruby cfunc unknown truncated].include?(kind)
  end

  def same?(other)
    label == other.label && path == other.path && line == other.line
  end

  # How many frames this one stands for, if it stands for some that were cut.
  def truncated
    label[/\A\[truncated (\d+) frames?\]\z/, 1]&.to_i
  end

  def to_s
    "#{label} #{path}:#{'~' if approximate}#{line}"
  end
end

# Comparing stacks, innermost frame first.
module Stacks
  module_function

  # What Ruby's own backtraces show: they end with the fiber that runs.
  def as_ruby_shows(frames)
    frames.take_while { |frame| frame.kind != 'fiber' }.select(&:ruby?)
  end

  # Says where got parts from expected; nil if they are the same.
  def difference(expected, got)
    at = expected.zip(got).index { |e, g| g.nil? || !e.same?(g) }
    at ||= expected.size if got.size > expected.size
    return unless at

    "#{got.size} frames instead of #{expected.size}; number #{at} is the first that differs\n" \
      "    expected  #{excerpt(expected, at)}\n" \
      "    got       #{excerpt(got, at)}"
  end

  # The same, but the middle of got may be cut out, if it says so and has the root.
  def difference_if_cut(expected, got)
    cut = got.index(&:truncated)
    return difference(expected, got) unless cut

    missing = got[cut].truncated
    return "the root is missing: #{got.size} frames, the last is #{got[-1]}" if cut == got.size - 1

    restored = got[0...cut] + (expected[cut, missing] || []) + got[(cut + 1)..]
    difference(expected, restored)&.prepend("with #{got[cut].label} at #{cut}: ")
  end

  def excerpt(stack, at)
    before = at.positive? ? "… > #{stack[at - 1]} > " : ''
    "#{before}#{(stack[at, 3] || []).join(' > ')}"
  end
end
