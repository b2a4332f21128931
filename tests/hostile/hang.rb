# SPDX-License-Identifier: GPL-2.0-only
# frozen_string_literal: true

# A Ruby that works, and lets who reads it wait for a file (hang.c). With HOW "exec" it executes another
# program after that many ms, which waits for the file to be closed.
#
#   ruby hang.rb LIBRARY HOW FILE [AFTER_MS]

require 'fiddle'

def work
  i = 0
  i += 1 while i < 100_000
end

library, how, path, after = ARGV
file = File.open(path) if how == 'exec'
unless file
  hang = Fiddle::Function.new(Fiddle.dlopen(library)['hang'], [Fiddle::TYPE_VOIDP, Fiddle::TYPE_VOIDP], Fiddle::TYPE_VOID)
  # Nothing of what the other threads would do then.
  GC.disable
end
$stdout.syswrite("{\"ready\":true}\n")
hang&.call(how, path)
till = Process.clock_gettime(Process::CLOCK_MONOTONIC) + (after.to_i / 1000.0)
work until file && Process.clock_gettime(Process::CLOCK_MONOTONIC) > till
exec('sleep', '1000')
