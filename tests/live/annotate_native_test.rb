# SPDX-License-Identifier: GPL-2.0-only
# frozen_string_literal: true

# annotate --stack native: the instructions are those that objdump shows, the lines those of
# addr2line, and the numbers those of the samples, counted one by one. The work is
# tests/programs/hot.

require_relative 'support'

class AnnotateNativeTest < LiveTest
  FUNCTIONS = %w[hot_inner hot_outer].freeze
  NOTHING = /\A(nop|xchg|data16|cs)/.freeze # with which objdump begins what does nothing
  PATTERN = "^(#{FUNCTIONS.join('|')})$"

  def setup
    super
    %w[gcc objdump addr2line nm objcopy strip].each do |tool|
      missing "no #{tool}" unless system(tool, '--version', out: File::NULL)
    end
    File.chmod(0o755, @dir) # rbpf opens what all may read
    FileUtils.cp(File.join(Live::PROGRAMS, 'hot/hot.c'), path('hot.c'))
    build
    @library = ruby.install(path('hot.so'))
  end

  # What rbpf reads is there where the process had it only if that has no root of its own.
  def assert_records_hot(*options)
    skip 'a Ruby with a root of its own' unless @library == path('hot.so')
    target = start('hot/hot.rb', @library, 0.6, env: { 'RUBY_ABI_CHECK' => '0' })
    record(target, '-F', 999, *options)
  end

  def test_instructions_lines_and_samples
    assert_records_hot
    found = functions
    assert_equal FUNCTIONS, found.map { |function| function['label'] }.sort
    found.each do |function|
      assert_nil function['note']
      assert_equal function.values_at('start', 'end'), range(function['label'])
      assert_instructions(function)
      assert_lines(function)
    end
    assert_samples(found)
    assert_text(found)
  end

  # Calls have the time of what they call: that of hot_inner() is in hot_outer()'s one call of it.
  def test_calls
    assert_records_hot
    inner, outer = functions.sort_by { |function| function['label'] }
    calls = outer['instructions'].select { |row| row['instruction'].match?(/\A(call|bl\b)/) }
    assert_equal 1, calls.size
    assert_match(/ <hot_inner(@plt)?>\z/, calls[0]['instruction'])
    assert_operator calls[0]['total_ns'], :>, inner['instructions'].sum { |row| row['self_ns'] } / 2
    assert_operator calls[0]['self_ns'], :<, calls[0]['total_ns'] / 10
  end

  # Of an inlined function, too, with the code that it was inlined into.
  def test_inlined
    assert_records_hot('--inlines')
    found = functions('^(mix|hot_inner)$')
    assert_equal [%w[hot_inner], ['mix', 'hot_inner']],
                 found.map { |f| f.values_at('label', 'inlined_into').compact }.sort
    assert_samples(found)
  end

  def test_debug_file
    assert_records_hot
    before = functions
    Dir.chdir(@dir) do
      tool('objcopy', '--only-keep-debug', 'hot.so', 'hot.debug')
      tool('strip', 'hot.so')
      tool('objcopy', '--add-gnu-debuglink=hot.debug', 'hot.so')
      File.chmod(0o644, 'hot.debug', 'hot.so')
    end
    assert_equal before, functions
  end

  # Without the disassembler's library there still are lines.
  def test_without_disassembler
    assert_records_hot
    before = functions
    library = tool('ldconfig', '-p')[/^\s*libcapstone\.so\.\d+ .*=> (.*)$/, 1] || missing('no libcapstone')
    hidden = "mount --bind /dev/null #{library} && exec \"$0\" \"$@\""
    out = tool('unshare', '-m', 'sh', '-c', hidden, Live::RBPF, 'annotate', '-i', @recording.file,
               '--stack', 'native', '--json', PATTERN)
    now = JSON.parse(out)['functions']
    now.each { |function| assert_match(/\Athere is no disassembler \(libcapstone\.so/, function['note']) }
    assert_equal sums(before), sums(now)
    now.each do |function|
      lines = before.find { |f| f['label'] == function['label'] }['instructions']
                    .to_h { |row| [row['address'], row['line']] }
      exact = function['instructions'].select { |row| lines.key?(row['address']) }
      refute_empty exact
      exact.each { |row| assert_equal lines[row['address']], row['line'] }
    end
  end

  # As in a container: the files are where its root is, and links lead within that.
  def test_module_root
    assert_records_hot
    before = functions
    root = path('root')
    FileUtils.mkdir_p(File.join(root, @dir, 'v1'))
    FileUtils.mv(path('hot.so'), File.join(root, @dir, 'v1'))
    FileUtils.ln_s(File.join(@dir, 'v1/hot.so'), File.join(root, path('hot.so')))
    FileUtils.chown_R(65_534, 65_534, root)
    assert_equal before, functions(PATTERN, '--module-root', root)
    File.chmod(0o600, File.join(root, @dir, 'v1/hot.so'))
    note = functions(PATTERN, '--module-root', root)[0]['note']
    assert_match(/\Ait is not read/, note)
    assert_equal 'No such file or directory', functions[0]['note']
  end

  def test_another_file
    assert_records_hot
    before = functions
    build('-O1')
    assert_without_instructions(before, /\Athe file .* is another: its build id is \h{40}\z/)
    File.delete(path('hot.so'))
    assert_without_instructions(before, /\ANo such file or directory\z/)
    File.write(path('hot.so'), 'text')
    assert_without_instructions(before, /\Athe file .* is no program or library of this machine\z/)
    File.chmod(0o666, path('hot.so'))
    assert_without_instructions(before, /\Ait is not read/)
  end

  private

  def build(*options)
    options = ['-O2', '-g', *options]
    tool('gcc', *options, '-fPIC', '-shared', '-Wl,--build-id', '-o', path('hot.so'), path('hot.c'))
    File.chmod(0o644, path('hot.so'))
  end

  def tool(*command)
    out = IO.popen(command, &:read)
    assert_predicate Process.last_status, :success?, command.join(' ')
    out
  end

  def functions(pattern = PATTERN, *options)
    Rbpf.json('annotate', '-i', @recording.file, '--stack', 'native', '--json', *options,
              pattern)['functions']
  end

  # [from, to) as the table of symbols has it.
  def range(name)
    line = tool('nm', '-S', path('hot.so')).lines.find { |l| l.split[3] == name }
    start, size = line.split.first(2).map(&:hex)
    [start, start + size]
  end

  # objdump's as [address, mnemonic, registers]: their operands are written in other ways.
  def assert_instructions(function)
    expected = tool('objdump', '-d', '--no-show-raw-insn', "--start-address=#{function['start']}",
                    "--stop-address=#{function['end']}", path('hot.so'))
               .scan(/^\s+(\h+):\t(\S+)(.*)$/)
               .map { |address, name, rest| [address.hex, name, registers(rest)] }
    rows = function['instructions']
    assert_equal expected.map(&:first), rows.map { |row| row['address'] }
    expected.zip(rows) do |(_, name, registers), row|
      own, rest = row['instruction'].split(' ', 2)
      next if own.start_with?('nop') && name.match?(NOTHING)

      assert_includes ['', 'b', 'w', 'l', 'q'].map { |size| name + size }, own, row['instruction']
      assert_equal registers, registers(rest.to_s), row['instruction']
    end
    ends = rows.map { |row| row['address'] + row['size'] }
    assert_equal [*rows.drop(1).map { |row| row['address'] }, function['end']], ends
  end

  def registers(operands)
    operands.sub(/<.*/, '').scan(/%\w+|\b[xw]\d+\b/)
  end

  def assert_lines(function)
    rows = function['instructions']
    expected = tool('addr2line', '-e', path('hot.so'), *rows.map { |row| row['address'].to_s(16) })
               .lines.map { |line| line[/\A(.*?)(?: \(discriminator \d+\))?$/, 1] }
    assert_equal expected, rows.map { |row| "#{row['path']}:#{row['line']}" }
  end

  # Every row is what the samples say that have a frame of its function in it.
  def assert_samples(found)
    whole = Rbpf.json('export', '-f', 'json', '--stack', 'native', '-i', @recording.file)
    rows = Recording.new(@recording.file).report('--stack', 'native')['rows']
    found.each do |function|
      function['instructions'].each do |row|
        assert_equal(count(whole, function['label'], row),
                     row.values_at('samples', 'self_ns', 'total_samples', 'total_ns'), row.inspect)
      end
      row = rows.find { |r| r['label'] == function['label'] }
      sums = %w[samples self_ns].map { |key| function['instructions'].sum { |r| r[key] } }
      assert_equal row.values_at('samples', 'self_ns'), sums
      assert_operator sums[0], :>, 20
    end
  end

  def count(whole, label, row)
    sums = [0, 0, 0, 0]
    each_native_stack(whole) do |frames, value|
      there = frames.map do |f|
        f['label'] == label && (0...[row['size'], 1].max).cover?(f['address'] - row['address'])
      end
      sums[0, 2] = [sums[0] + 1, sums[1] + value] if there.first
      sums[2, 2] = [sums[2] + 1, sums[3] + value] if there.any?
    end
    sums
  end

  # The frames, innermost first, and the time of each sample.
  def each_native_stack(whole)
    @stacks ||= whole['samples'].map do |sample|
      frames = []
      stack = whole['stacks'][sample['stack']]
      while stack['frame']
        frames << whole['frames'][stack['frame']]
        stack = whole['stacks'][stack['parent']]
      end
      [frames.select { |f| %w[native kernel gap].include?(f['kind']) }, sample['value']]
    end
    @stacks.each { |frames, value| yield frames, value }
  end

  # As text: which instructions are shown, and which are marked; the lines, with their text, stand
  # above the instructions.
  def assert_text(found)
    all = found.flat_map { |function| function['instructions'] }
    assert_equal all.map { |row| row['address'] }, shown(1_000_000).keys
    used = all.reject { |row| row['total_samples'].zero? }
    assert_equal(used.map { |row| row.values_at('address', 'line') },
                 shown(0).map { |address, row| [address, row[:line]] })
    around = found.flat_map { |function| around(function['instructions'], 1) }
    got = shown(1)
    assert_equal around.map { |row| row['address'] }, got.keys
    around.each { |row| assert_equal row['instruction'], got[row['address']][:code] }
    assert_equal found.flat_map { |function| hot(function['instructions']) },
                 got.select { |_, row| row[:hot] }.keys
    around.each { |row| assert_equal row['line'], got[row['address']][:line] }
  end

  # The instructions that annotate prints as text, by their addresses.
  def shown(context)
    source = File.readlines(path('hot.c'), chomp: true)
    line = nil
    text = Rbpf.read('annotate', '-i', @recording.file, '--stack', 'native', '--source-root', '/',
                     '--context', context.to_s, PATTERN)
    text.each_line(chomp: true).with_object({}) do |row, result|
      case row
      when /^ +hot\.c:(\d+)(?:  (.*))?$/
        line = Integer($1)
        assert_equal source[line - 1].strip, $2.to_s.strip
      when /^(##)? .* (\h+)      (\S.*)$/
        result[$2.hex] = { hot: !$1.nil?, code: $3, line: line }
      when /^ +\.\.\.$/
        line = nil
      end
    end
  end

  def around(rows, context)
    rows.each_index.select do |i|
      rows[[i - context, 0].max..(i + context)].any? { |row| row['total_samples'].positive? }
    end.map { |i| rows[i] }
  end

  def hot(rows)
    hottest = rows.map { |row| row['self_ns'] }.max
    rows.select { |row| row['self_ns'] >= hottest - (hottest / 4) }.map { |row| row['address'] }
  end

  def assert_without_instructions(before, note)
    now = functions
    assert_equal before.map { |f| f['label'] }, now.map { |f| f['label'] }
    now.each { |function| assert_match note, function['note'] }
    now.each { |function| assert(function['instructions'].all? { |row| row['instruction'].empty? }) }
    assert_equal sums(before), sums(now)
  end

  def sums(functions)
    functions.map { |function| function['instructions'].sum { |row| row['self_ns'] } }
  end
end
