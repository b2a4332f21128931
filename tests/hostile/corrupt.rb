# SPDX-License-Identifier: GPL-2.0-only
# frozen_string_literal: true

# A Ruby that lets a library change its memory (corrupt.c).
#
#   ruby corrupt.rb LIBRARY HOW AFTER_MS

require 'fiddle'

def deep(left, &block)
  return block.call if left.zero?

  [1].each { deep(left - 1, &block) }
end

corrupt = Fiddle::Function.new(Fiddle.dlopen(ARGV[0])['corrupt'], [Fiddle::TYPE_VOIDP, Fiddle::TYPE_INT], Fiddle::TYPE_VOID)
GC.disable
deep(5) { corrupt.call(ARGV[1], ARGV[2].to_i) }
