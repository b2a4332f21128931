# SPDX-License-Identifier: GPL-2.0-only
# frozen_string_literal: true

# Files of targets: what they map, and what rbpf looks for because of them.

require_relative 'elf'
require_relative 'support'

class HostileFilesTest < HostileTest
  def elf(name)
    made = HostileElf.new
    yield made if block_given?
    made.write(lair(name))
  end

  # A Ruby that runs the code of these files.
  def run_code_of(*files)
    attacker('call.rb', *files)
  end

  # A library with debug information of functions inlined into each other.
  def inlined_library
    functions = (0...200).map do |i|
      levels = (1..12).map do |d|
        inner = d == 1 ? 'x * 7' : "f#{i}_#{d - 1}(x + #{d})"
        "static inline __attribute__((always_inline)) int f#{i}_#{d}(int x) { s += x ^ #{i}; return #{inner} + s; }"
      end
      levels.join("\n")
    end
    calls = (0...200).map { |i| "x += f#{i}_12(x);" }
    source = path('inlined.c')
    File.write(source, "static volatile int s;\n#{functions.join("\n")}\n" \
                       "int run(void) { int x = 1; for (int k = 0; k < 2000; k++) { #{calls.join(' ')} } return x; }\n")
    lair('inlined.so').tap do |to|
      assert system('gcc', '-g', '-O2', '-shared', '-fPIC', '-w', '-o', to, source)
    end
  end

  def test_many_inlined_functions
    attacker('call.rb', '--load', inlined_library, 'run')
    besiege('--all-ruby', '--inlines', asan: true)
  end

  # What a file holds is gone while it is read.
  def test_file_that_is_truncated_while_it_is_read
    elf('shrinks') do |e|
      e.add_symbols((0...40_000).map { |i| ["function_#{i}", 0x1000, 4] }, name: '.dynsym.first')
      e.ruby!
    end
    6.times { attacker('change.c', 'truncate', lair('shrinks')) }
    10.times { run_rbpf('ps') }
    besiege
  end

  def test_library_that_changes_while_it_is_read
    elf('changes') do |e|
      e.ruby!
      e.add_symbols((0...20_000).map { |i| ["function_#{i}", 0x1000 + (i % 4000), 4] }, type: 2, name: '.symtab')
    end
    attacker('change.c', 'scribble', lair('changes'))
    8.times { run_rbpf('ps', asan: true) }
    besiege('--all-ruby', '--inlines', asan: true)
  end

  # ---- headers that lie ----

  LIES = {
    phnum: ->(e) { e.header[:phnum] = 65_535 },
    phnum_extended: lambda do |e|
      e.header[:phnum] = 65_535
      e.sections[0].info = 0xffffffff
    end,
    phentsize: ->(e) { e.header[:phentsize] = 1 },
    phoff: ->(e) { e.header[:phoff] = 2**64 - 8 },
    shoff: ->(e) { e.header[:shoff] = 2**64 - 64 },
    shoff_end: ->(e) { e.header[:shoff] = 0x2fff },
    shnum_extended: lambda do |e|
      e.header[:shnum] = 0
      e.sections[0].size = 2**63
    end,
    shnum: ->(e) { e.header[:shnum] = 65_535 },
    shstrndx: ->(e) { e.header[:shstrndx] = 0xffff },
    shentsize: ->(e) { e.header[:shentsize] = 0 },
    segments_overlap: ->(e) { 60.times { |i| e.segments << [1, 5, i, 0x1000 - i, 0x2000, 2**63] } },
    segment_wraps: ->(e) { e.segments << [1, 5, 0x1000, 2**64 - 0x1000, 0x2000, 0x2000] },
    memsz: ->(e) { e.segments[0][5] = 2**64 - 1 },
    note: lambda do |e|
      at = e.put([4, 0xfffffff0, 3, 'GNU'].pack('VVVa4'))
      e.segments << [4, 4, at, at, 0xffffffff, 0xffffffff]
      e.add('.note.gnu.build-id', 7, data: [0xffffffff, 0xffffffff, 3].pack('V3'), size: 2**32)
    end,
    symbol_sizes: lambda do |e|
      e.add_symbols((0...1000).map { |i| ["s#{i}", i * 3, 2**64 - 1 - i] }, type: 2, name: '.symtab')
    end,
    strings_without_end: lambda do |e|
      strings = e.add('.strtab', 3, data: 'x' * 100_000)
      e.add('.symtab', 2, data: [0, 0x12, 0, 1, 0x1000, 16].pack('VCCvQ<Q<') * 1000, link: strings, entsize: 24)
    end,
    links_in_a_circle: lambda do |e|
      e.add('.symtab', 2, data: "\1" * 2400, link: e.sections.size, entsize: 24)
      e.add('.rela.plt', 4, data: "\7" * 2400, link: e.sections.size, info: e.sections.size, entsize: 24)
    end,
    entsize: ->(e) { e.add('.symtab', 2, data: "\1" * 2400, link: 2, entsize: 1) },
    compressed: lambda do |e|
      e.add('.debug_info', 1, flags: 0x800, data: [1, 0, 2**40, 1].pack('VVQ<Q<') + ("\0" * 64))
      e.add('.symtab', 2, flags: 0x800, data: [1, 0, 2**62, 1].pack('VVQ<Q<') + ("\0" * 64), entsize: 24)
    end,
    eh_frame: lambda do |e|
      cie = [12, 0, 1].pack('VVC') + "zR\0\1\x78\x10\1\x1b".b
      e.add('.eh_frame', 1, addr: 0x2000, data: cie + ([0xffffffff, 2**63, 0, 0].pack('VQ<VV') * 2000))
    end,
    eh_frame_long: lambda do |e|
      cie = [20, 0, 1].pack('VVC') + "zPLR\0\1\x78\x10\1\x9b\0\0\0\0\x1b".b
      e.add('.eh_frame', 1, addr: 0x2000, data: cie + ([16, 24, 0xffffff00, 0x7fffffff, 0x0e0a0b0c].pack('V5') * 5000))
    end
  }.freeze

  def test_headers_that_lie
    files = LIES.map do |name, lie|
      elf(name.to_s) do |e|
        e.ruby! if name.hash.even?
        lie.call(e)
      end
    end
    run_code_of(*files)
    besiege('--all-ruby', '--inlines', '--kernel', asan: true)
    run_rbpf('ps', asan: true)
  end

  # The same, each as the library that the process is taken for a Ruby by.
  def test_fake_rubies_with_headers_that_lie
    LIES.each do |name, lie|
      file = elf("lib#{name}.so") do |e|
        e.ruby!
        lie.call(e)
      end
      attacker('hold.c', file)
    end
    run_rbpf('ps', asan: true)
    besiege(asan: true, duration: 1)
  end

  MUTANTS = 24

  def test_bytes_flipped_in_debug_information
    library = File.binread(inlined_library)
    random = Random.new(7)
    files = (0...MUTANTS).map do |i|
      bytes = library.dup
      (20 + (i * 40)).times { bytes.setbyte(0x2000 + random.rand(bytes.bytesize - 0x2000), random.rand(256)) }
      bytes[0x1000, HostileElf::CODE.bytesize] = HostileElf::CODE
      lair("mutant#{i}").tap { |to| File.binwrite(to, bytes) }
    end
    run_code_of(*files)
    besiege('--all-ruby', '--inlines', asan: true)
  end

  # ---- files that take memory or time ----

  # The relocations of many sections, all the same bytes, or none: a sparse file.
  def test_many_sections_of_relocations
    file = elf('relocations') do |e|
      symbols = e.add_symbols([['x' * 2000, 0x1000, 8]])
      kind = HostileElf::MACHINE == 62 ? 7 : 1026
      data = e.put([0x1f00, (1 << 32) | kind, 0].pack('Q<Q<q<') * 50_000)
      2_000.times { e.add('.rela', 4, offset: data, size: 24 * 50_000, link: symbols, entsize: 24) }
      e.add('.plt', 1, data: "\xff\x25\0\0\0\0".ljust(16, "\x90") * 64, addr: 0x2000)
    end
    run_code_of(file)
    besiege
  end

  def test_many_sections_of_symbols
    file = elf('symbols') do |e|
      strings = e.add('.strtab', 3, data: "\0#{'name' * 100}\0")
      data = e.put((0...20_000).map { |i| [1, 0x12, 0, 1, 0x1000 + i, 4].pack('VCCvQ<Q<') }.join)
      60_000.times do |i|
        e.add('.s', i.even? ? 2 : 11, offset: data, size: 24 * 20_000, link: strings, entsize: 24)
      end
    end
    run_code_of(file)
    besiege_and_stop
  end

  def test_many_sections_of_notes_and_dynamic_symbols
    file = elf('notes') do |e|
      data = e.put([4, 4, 9, 'GNU', 'abcd'].pack('VVVa4a4') * 50_000)
      dynamic = e.put([1, 1].pack('Q<Q<') * 50_000)
      20_000.times do
        e.add('.note', 7, offset: data, size: 20 * 50_000)
        e.add('.dynamic', 6, offset: dynamic, size: 16 * 50_000, link: 1, entsize: 16)
      end
    end
    run_code_of(file)
    besiege_and_stop
  end

  def test_large_holes_for_sections
    file = elf('holes') do |e|
      at = e.hole(200 << 20)
      { '.symtab' => 2, '.dynsym' => 11, '.eh_frame' => 1, '.strtab' => 3, '.debug_info' => 1, '.debug_line' => 1,
        '.debug_abbrev' => 1, '.gnu_debugdata' => 1, '.rela.plt' => 4, '.note' => 7 }.each do |name, type|
        e.add(name, type, offset: at, size: 200 << 20, link: 2, entsize: 24, addr: 0x3000)
      end
    end
    run_code_of(file)
    besiege('--all-ruby', '--inlines')
  end

  # Each is honest by itself.
  def test_many_files_with_many_symbols
    names = (0...60_000).map { |i| ["a_function_with_a_name_that_is_not_short_#{i}", 0x1000 + (i % 0x1000), 1] }
    files = (0...24).map { |k| elf("large#{k}") { |e| e.add_symbols(names, type: 2, name: ".symtab#{k}") } }
    run_code_of(*files)
    besiege
  end

  def test_compressed_bomb_as_debugdata
    xz = IO.popen(%w[xz -9e --stdout], 'r+b') do |io|
      writer = Thread.new { 2_000.times { io.write("\0" * (1 << 20)) } && io.close_write }
      io.read.tap { writer.join }
    end
    file = elf('bomb') { |e| e.add('.gnu_debugdata', 1, data: xz) }
    run_code_of(file)
    besiege
  end

  def test_mangled_names_that_grow
    bomb = "_Z1f#{'I1AI' * 60}#{(0..40).map { |i| "S#{i.to_s(36).upcase}_" }.join * 40}"
    twice = "_Z3fooI#{'St4pairI' * 30}#{'iiE' * 30}vE"
    backs = "_ZN#{'1a' * 400}#{'IS_S0_S1_S2_E' * 400}Ev"
    rust = "_RNvC6_123foo#{'RR' * 4000}B2_"
    names = [bomb, twice, backs, rust, "_Z#{'P' * 12_000}i", "_ZN#{'N' * 12_000}"]
    file = elf('mangled') { |e| e.add_symbols([[names.first, 0x1000, 4096]], type: 2, name: '.symtab') }
    others = names.drop(1).map.with_index do |name, i|
      elf("mangled#{i}") { |e| e.add_symbols([[name, 0x1000, 4096]], type: 2, name: '.symtab') }
    end
    run_code_of(file, *others)
    besiege(asan: true)
  end

  # ---- files that rbpf is led to ----

  def trap_fifo(at)
    File.mkfifo(at, 0o666)
    File.chmod(0o666, at)
    File.chown(ATTACKER, ATTACKER, at)
    at
  end

  # Yields, during which nobody may open any of these files.
  def assert_not_opened(*files)
    watcher = attacker('watch.c', *files, uid: nil)
    yield
    sleep 0.1
    assert_empty watcher.output.lines.grep(/opened/).uniq
  end

  def linked(name, link)
    elf(name) { |e| e.add('.gnu_debuglink', 1, data: "#{link}\0".b.ljust((link.bytesize + 4) & ~3, "\0") + [1].pack('V')) }
  end

  def test_debug_links_to_what_is_no_file
    names = %w[a b c d]
    fifos = [trap_fifo(lair('one.debug')), trap_fifo(path('two.debug')), trap_fifo(lair('four.debug'))]
    File.symlink(path('two.debug'), lair('link.debug'))
    Dir.mkdir(lair('.debug'))
    files = names.zip(['one.debug', '../two.debug', 'link.debug', lair('four.debug')]).map { |n, l| linked(n, l) }
    run_code_of(*files)
    assert_not_opened(*fifos) { besiege('--all-ruby', '--inlines') }
  end

  # That two names lead to the same, and whether it is a file at the time, changes all the while.
  def test_debug_link_that_is_raced
    file = linked('raced', 'raced.debug')
    File.write(path('secret'), 'x' * 4096, perm: 0o600)
    attacker('race.c', lair('raced.debug'), path('secret'), lair('other'))
    run_code_of(file)
    besiege('--all-ruby', '--inlines')
  end

  def test_perf_map_that_is_a_fifo
    target = run_code_of('--anonymous', elf('plain'))
    fifo = trap_fifo("/tmp/perf-#{target.pid}.map")
    at_end { FileUtils.rm_f(fifo) }
    assert_not_opened(fifo) { besiege }
  end

  # A terminal that the first process of a session opens without O_NOCTTY becomes that session's.
  def test_perf_map_that_is_a_terminal
    target = attacker('pty.c', Hostile.program('call.rb'), elf('plain'), uid: nil)
    besiege(in_session: true)
    refute @rbpf.terminal?, 'rbpf has a controlling terminal'
    refute_includes target.output, 'opened', 'somebody opened the terminal'
  end

  # That is the user's own right, but not to have root read it.
  def test_perf_map_of_somebody_else
    target = run_code_of('--anonymous', elf('plain'))
    file = "/tmp/perf-#{target.pid}.map"
    File.write(file, "0 7fffffffffff the_secret_of_somebody_else\n", perm: 0o600)
    File.chown(HONEST, HONEST, file)
    at_end { FileUtils.rm_f(file) }
    besiege
    refute_includes Rbpf.read('export', '-f', 'json', '-i', path('rbpf.data')), 'the_secret_of_somebody_else'
  end

  def test_large_perf_maps
    targets = (0...6).map { |i| run_code_of('--anonymous', elf("plain#{i}")) }
    targets.each do |target|
      file = "/tmp/perf-#{target.pid}.map"
      at_end { FileUtils.rm_f(file) }
      File.open(file, 'w') do |f|
        f.chown(ATTACKER, ATTACKER)
        200_000.times { |i| f.puts("#{(0x7f0000000000 + (i * 16)).to_s(16)} 10 compiled_by_somebody_#{'x' * 40}_#{i}") }
        f.truncate(1 << 30)
      end
    end
    besiege
  end

  def test_perf_map_that_is_raced
    target = run_code_of('--anonymous', elf('plain'))
    name = "/tmp/perf-#{target.pid}.map"
    File.write(path('secret'), "0 7fffffffffff the_secret\n", perm: 0o600)
    at_end { FileUtils.rm_f(name) }
    attacker('race.c', name, path('secret'), lair('other'), uid: ATTACKER)
    besiege
    refute_includes Rbpf.read('export', '-f', 'json', '-i', path('rbpf.data')), 'the_secret'
  end

  # A file system whose server never answers.
  %w[lookup getattr read].each do |how|
    define_method("test_file_system_that_hangs_at_#{how}") do
      missing 'no /dev/fuse' unless File.exist?('/dev/fuse')
      attacker('fuse.c', how, '/tmp', 'ruby', Hostile.program('call.rb'), elf('plain'), uid: nil)
      besiege
      besiege_and_stop
    end
  end
end
