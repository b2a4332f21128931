# SPDX-License-Identifier: GPL-2.0-only
# frozen_string_literal: true

# varied.rb DEPTH: stacks of that many frames, nearly each another one, as a program has that does many different
# things: from one frame to the next there are as many ways as there are methods. Outer frames stay longer than inner
# ones: each method calls two others.

METHODS = 16

METHODS.times do |number|
  ways = Array.new(METHODS) { |i| "when #{i} then step#{i}(left - 1)" }.join("\n")
  call = "case rand(#{METHODS})\n#{ways}\nend\n"
  eval("def step#{number}(left)\nreturn leaf if left.zero?\n#{call}#{call}end", TOPLEVEL_BINDING, "step#{number}.rb")
end

def leaf
  i = 0
  i += 1 while i < 200
end

# <main>, loop, its block and leaf are frames too.
depth = Integer(ARGV.fetch(0)) - 4
loop { step0(depth) }
