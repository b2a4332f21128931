# SPDX-License-Identifier: GPL-2.0-only
# frozen_string_literal: true

# How labels of different Ruby versions relate.
#
# rbpf prints every label as Ruby 3.4 does: "block in Foo#bar". Rubies up to 3.3 print "block in
# bar" and cannot be asked for the class. But 3.4 runs the same programs, and its stacks are the same
# but for two things, so its labels, recorded in tests/programs/oracle.labels.json by
# update_labels.rb, say what rbpf has to print on every version:
#
#  * Up to 3.3 the body of a rescue or ensure clause has a frame of its own above its method's.
#    3.4 prints one frame for both, and for clauses within clauses. rbpf shows the frames a version
#    has: "rescue in Foo#bar", then "Foo#bar".
#  * The plain part of the label, and the path and line of each frame, are always those that the
#    running version prints. Labels.qualify refuses a record that does not fit them.
module Labels
  # "rescue in block in foo" is a clause of "block in foo".
  CLAUSES = /\A(?:(?:rescue|ensure) in )*/.freeze
  BLOCKS = /\A(?:block (?:\(\d+ levels\) )?in )?/.freeze
  # A path of constants before "#" or ".": what 3.4 adds to the name of a method.
  OWNER = /\A\p{Upper}[\p{Word}]*(?:::\p{Upper}[\p{Word}]*)*[#.](?=.|\z)/.freeze

  class Misfit < StandardError; end

  module_function

  # A label of 3.4 as 3.3 would print it.
  def plain(label)
    blocks = label[BLOCKS]
    blocks + label[blocks.size..].sub(OWNER, '')
  end

  # The same for a label that may have a clause.
  def bare(label)
    clauses = label[CLAUSES]
    clauses + plain(label.delete_prefix(clauses))
  end

  # The labels rbpf has to print for a stack of which a Ruby up to 3.3 printed printed, and of which
  # 3.4 printed recorded. Both innermost first.
  def qualify(printed, recorded)
    rest = printed.dup
    expected = recorded.each_with_object([]) do |label, frames|
      loop do
        frames << take(rest, label)
        break unless clause?(frames.last)
      end
    end
    raise Misfit, "#{rest.inspect} left over" unless rest.empty?

    expected
  end

  def clause?(label)
    label.match?(/\A(?:rescue|ensure) in /)
  end

  # Takes the next frame off printed, which must be label's own or a clause of it.
  def take(printed, label)
    got = printed.shift or raise Misfit, "no frame left for #{label.inspect}"
    clauses = got[CLAUSES]
    return clauses + label if got == clauses + plain(label)

    raise Misfit, "#{got.inspect} printed where 3.4 has #{label.inspect}"
  end
end
