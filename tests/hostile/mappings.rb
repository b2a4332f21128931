# SPDX-License-Identifier: GPL-2.0-only
# frozen_string_literal: true

# A Ruby that works in Object#hidden, with mappings that few have.
#
#   ruby mappings.rb N FILE [plain|long DIR|memfd|unmap]
#
#   plain   N of FILE, in parts, as code
#   long    N of a copy of FILE that has the longest name that there is, below DIR
#   memfd   N of files in memory, whose names hold escape sequences
#   unmap   another thread takes parts of libruby's headers away and maps them again

require 'fiddle'

module Map
  INT = Fiddle::TYPE_INT
  LONG = Fiddle::TYPE_LONG
  PTR = Fiddle::TYPE_VOIDP
  HANDLE = Fiddle::Handle::DEFAULT
  MMAP = Fiddle::Function.new(HANDLE['mmap'], [LONG, LONG, INT, INT, INT, LONG], LONG)
  MEMFD = Fiddle::Function.new(HANDLE['memfd_create'], [PTR, INT], INT)

  module_function

  def map(file, length, protection, at: 0, flags: 2, offset: 0)
    MMAP.call(at, length, protection, flags, file.fileno, offset)
  end

  def plain(count, file)
    File.open(file) { |f| count.times { |i| map(f, 4096, i.even? ? 5 : 1) } }
  end

  def long(count, file, dir)
    bytes = File.binread(file)
    Dir.chdir(dir)
    15.times do
      Dir.mkdir('x' * 250)
      Dir.chdir('x' * 250)
    end
    File.binwrite('file', bytes)
    plain(count, 'file')
  end

  def memfd(count, file)
    bytes = File.binread(file)
    count.times do |i|
      fd = MEMFD.call("\e[31m\u202E\u009b(deleted) #{i}", 0)
      io = IO.for_fd(fd, 'r+b')
      io.write(bytes)
      io.flush
      at = map(io, 8192, 5)
      Fiddle::Function.new(at + 0x1000, [], INT).call if i < 50
    end
  end

  # Its first page is needed by nobody once it is loaded, but by who reads the process.
  def unmap
    line = File.foreach('/proc/self/maps').find { |l| l =~ /libruby/ && l =~ / 00000000 / } || return
    at = line[/\A\h+/].hex
    file = File.open(line[%r{/.*}].chomp)
    Thread.new do
      loop do
        map(File.open('/dev/zero'), 4096, 1, at: at, flags: 0x12)
        sleep 0.0005
        map(file, 4096, 1, at: at, flags: 0x12)
        sleep 0.0005
      end
    end
  end
end

def hidden
  i = 0
  i += 1 while i < 100_000
end

count = ARGV[0].to_i
case ARGV[2]
when 'long' then Map.long(count, ARGV[1], ARGV[3])
when 'memfd' then Map.memfd(count, ARGV[1])
when 'unmap' then Map.unmap
else Map.plain(count, ARGV[1])
end
puts '{"ready":true}'
$stdout.flush
loop { hidden }
