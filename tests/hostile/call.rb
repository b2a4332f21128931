# SPDX-License-Identifier: GPL-2.0-only
# frozen_string_literal: true

# Maps files as code and calls what is at 0x1000 in each, one after the other, until it is killed.
#
#   ruby call.rb FILE…      each file's first two pages
#   ruby call.rb --anonymous FILE      a copy of them, which belongs to no file, as a JIT compiler's code
#   ruby call.rb --load FILE SYMBOL      dlopen() it, and call that

require 'fiddle'

def map(file)
  mmap = Fiddle::Function.new(Fiddle::Handle::DEFAULT['mmap'],
                              [Fiddle::TYPE_VOIDP, Fiddle::TYPE_SIZE_T, Fiddle::TYPE_INT, Fiddle::TYPE_INT,
                               Fiddle::TYPE_INT, Fiddle::TYPE_LONG], Fiddle::TYPE_LONG)
  File.open(file, 'rb') { |f| mmap.call(nil, 0x2000, 5, 2, f.fileno, 0) + 0x1000 }
end

def copy(file)
  mmap = Fiddle::Function.new(Fiddle::Handle::DEFAULT['mmap'],
                              [Fiddle::TYPE_VOIDP, Fiddle::TYPE_SIZE_T, Fiddle::TYPE_INT, Fiddle::TYPE_INT,
                               Fiddle::TYPE_INT, Fiddle::TYPE_LONG], Fiddle::TYPE_LONG)
  mmap.call(nil, 0x2000, 7, 0x22, -1, 0).tap { |at| Fiddle::Pointer.new(at)[0, 0x2000] = File.binread(file, 0x2000) } + 0x1000
end

addresses = case ARGV[0]
            when '--load' then [Fiddle.dlopen(ARGV[1])[ARGV[2]].to_i]
            when '--anonymous' then [copy(ARGV[1])]
            else ARGV.map { |file| map(file) }
            end
functions = addresses.map { |address| Fiddle::Function.new(address, [], Fiddle::TYPE_INT) }
puts '{"ready":true}'
$stdout.flush
loop { functions.each(&:call) }
