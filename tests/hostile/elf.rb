# SPDX-License-Identifier: GPL-2.0-only
# frozen_string_literal: true

# ELF files that say what they please. A file has one page of code at 0x1000, both in the file and as an
# address, which can be mapped and called: it spins for a moment and returns.

class HostileElf
  MACHINE = RbConfig::CONFIG['host_cpu'].start_with?('aarch64', 'arm64') ? 183 : 62
  CODE_AT = 0x1000
  CODE = if MACHINE == 62
           # mov $0x800000, %eax; 1: dec %eax; jnz 1b; ret
           [0xb8, 0, 0, 0x80, 0, 0xff, 0xc8, 0x75, 0xfc, 0xc3].pack('C*')
         else
           # mov x0, #0x80, lsl #16; 1: subs x0, x0, #1; b.ne 1b; ret
           [0xd2a01000, 0xf1000400, 0x54ffffe1, 0xd65f03c0].pack('V*')
         end

  PT_LOAD = 1
  PT_NOTE = 4
  SHT_PROGBITS = 1
  SHT_SYMTAB = 2
  SHT_STRTAB = 3
  SHT_RELA = 4
  SHT_NOTE = 7
  SHT_DYNSYM = 11

  Section = Struct.new(:name, :type, :flags, :addr, :offset, :size, :link, :info, :align, :entsize)

  # Fields of the header to be written over: { phnum: 65535, … }
  attr_reader :header, :sections, :segments, :blobs

  def initialize
    @header = {}
    @names = +"\0"
    @sections = [Section.new(0, 0, 0, 0, 0, 0, 0, 0, 0, 0)]
    # type, flags, offset, vaddr, filesz, memsz
    @segments = [[PT_LOAD, 5, 0, 0, 0x2000, 0x2000]]
    @blobs = [] # [offset, bytes]
    @at = 0x2000
    add('.text', SHT_PROGBITS, flags: 6, addr: CODE_AT, offset: CODE_AT, size: 0x1000)
  end

  # Puts bytes into the file and returns where they are.
  def put(bytes)
    at = @at
    @blobs << [at, bytes]
    @at = (@at + bytes.bytesize + 15) & ~15
    at
  end

  # Leaves a hole, which costs nothing, and returns where it is.
  def hole(size)
    at = @at
    @at += size
    at
  end

  # Returns the number of the section.
  def add(name, type, data: nil, flags: 0, addr: 0, offset: nil, size: nil, link: 0, info: 0, entsize: 0)
    offset ||= data ? put(data) : 0
    size ||= data ? data.bytesize : 0
    @sections << Section.new(@names.bytesize, type, flags, addr, offset, size, link, info, 8, entsize)
    @names << name.b << "\0"
    @sections.size - 1
  end

  # A table of symbols: [name, value, size]…, all of them functions in the code.
  def add_symbols(symbols, type: SHT_DYNSYM, name: '.dynsym')
    strings = +"\0".b
    entries = symbols.map do |symbol, value, size|
      at = strings.bytesize
      strings << symbol.b << "\0".b
      [at, 0x12, 0, 1, value, size].pack('VCCvQ<Q<')
    end
    link = add(".str#{name}", SHT_STRTAB, data: strings)
    add(name, type, data: ("\0" * 24).b + entries.join, link: link, entsize: 24)
  end

  # What rbpf takes for a Ruby.
  def ruby!
    add_symbols([['ruby_version', 0x1f00, 16], ['rb_during_gc', CODE_AT, 16], ['rb_cObject', 0x1f80, 8]])
    @blobs << [0x1f00, '3.1.2'.b]
    self
  end

  def write(path)
    shstr = add('.shstrtab', SHT_STRTAB, data: '')
    @sections[shstr].offset = put(@names)
    @sections[shstr].size = @names.bytesize
    table = put(@sections.map { |s| s.to_a.pack('VVQ<Q<Q<Q<VVQ<Q<') }.join)
    fields = { phoff: 64, shoff: table, phentsize: 56, phnum: @segments.size, shentsize: 64,
               shnum: @sections.size, shstrndx: shstr }.merge(@header)
    File.open(path, 'wb', 0o755) do |f|
      f.write(head(fields))
      f.write(@segments.map { |t, fl, o, v, fs, ms| [t, fl, o, v, v, fs, ms, 0x1000].pack('VVQ<Q<Q<Q<Q<Q<') }.join)
      [[CODE_AT, CODE], *@blobs].each do |at, bytes|
        f.seek(at)
        f.write(bytes)
      end
      f.truncate([f.size, @at].max)
    end
    path
  end

  private

  def head(fields)
    ident = "\x7fELF".b + [2, 1, 1, 0].pack('C4') + ("\0" * 8).b
    ident + [3, MACHINE, 1, CODE_AT, fields[:phoff], fields[:shoff], 0, 64, fields[:phentsize],
             fields[:phnum], fields[:shentsize], fields[:shnum], fields[:shstrndx]].pack('vvVQ<Q<Q<Vvvvvvv')
  end
end
