# SPDX-License-Identifier: GPL-2.0-only
# frozen_string_literal: true

# Rubies that no table of versions knows, or knows wrongly. --layout-from is an option for tests:
# which sources rbpf may learn the layout of a Ruby from.

require_relative 'oracle'
require_relative 'support'

class DiscoverTest < LiveTest
  # Without the table, each way on its own that has to do.
  WITHOUT_TABLE = %w[code,dwarf,search code,search search].freeze

  # What a Ruby is made to say that it is: another whose structs differ, but whose labels do not.
  LIES = { '2.7' => '3.0', '3.0' => '3.1', '3.1' => '3.3', '3.2' => '3.3', '3.3' => '3.1',
           '3.4' => '4.0', '4.0' => '3.4', '4.1' => '3.4' }.freeze

  def test_stacks_are_the_same_without_the_table
    target = start('oracle.rb', 'sleep', options: Oracle.options)
    target.wait_for('ready')
    expected = dump(target).fetch('threads')
    assert_operator expected.size, :>, 300
    WITHOUT_TABLE.each do |sources|
      threads = dump(target, sources).fetch('threads')
      assert_equal expected.map { |t| t['tid'] }, threads.map { |t| t['tid'] }, sources
      whole = facts(target, sources).key?('fiber.prev')
      different = expected.zip(threads).reject { |a, b| shown(a, whole) == shown(b, whole) }
      assert_empty(different.first(1), "#{sources}: #{different.size} stacks differ")
    end
  end

  def test_facts_are_the_same_without_the_table
    target = start('heartbeat.rb')
    target.wait_for('waiting')
    known = facts(target)
    assert_operator known.size, :>, 20
    WITHOUT_TABLE.each do |sources|
      found = facts(target, sources)
      assert_operator found.size, :>, 15, sources
      assert_agrees(known, found, sources)
    end
  end

  # Each with what it does not know, if that can be proven.
  def test_each_source_agrees
    target = start('heartbeat.rb')
    target.wait_for('waiting')
    known = facts(target)
    assert_operator known.size, :>, 20
    %w[code dwarf table].each do |source|
      found = facts(target, "#{source},search")
      assert_operator found.size, :>, 15, source
      assert_agrees(known, found, source)
    end
  end

  def test_a_version_that_is_a_lie
    start_liar
    result = Rbpf.run('dump', '--layout-from', 'table', '-p', @liar.pid)
    assert_equal 3, result.code, result.err
    assert_match(/self-check failed at '[^']+'/, result.err)
    assert_match(/\b#{Regexp.escape(lie)}\b/, result.err)
    result = Rbpf.run('record', '--layout-from', 'table', '-p', @liar.pid, '-d', '1s',
                      '-o', path('rbpf.data'))
    assert_equal 3, result.code, result.err
    refute_path_exists path('rbpf.data')
  end

  def test_a_version_that_is_a_lie_is_found_all_the_same
    start_liar
    thread = dump(@liar).fetch('threads').find { |t| t['tid'] == @liar.pid }
    frames = thread.fetch('frames').map { |frame| Frame.from(frame) }
    expected = Oracle.expected(Oracle.truths(@liar).first, 'main', ruby)
    assert_nil Stacks.difference(expected, Stacks.as_ruby_shows(frames))
  end

  private

  def dump(target, sources = nil)
    Rbpf.json('dump', *option(sources), '-p', target.pid.to_s, '--json')
  end

  def option(sources)
    sources ? ['--layout-from', sources] : []
  end

  # The frames; those of the fiber that runs if it cannot be known who resumed it.
  def shown(thread, whole)
    frames = thread['frames']
    whole ? frames : frames.take_while { |frame| frame['kind'] != 'fiber' }
  end

  # {name => value}, of those that are known. A value is a number, or none.
  def facts(target, sources = nil)
    rows = Rbpf.json('doctor', *option(sources), '-p', target.pid.to_s, '--json')
    rows.select { |row| row['name'].start_with?('  ') }
        .to_h { |row| [row['name'].strip, row['detail'].sub(/, by \w+\z/, '')] }
        .reject { |_, value| value == 'unknown' }
  end

  def assert_agrees(known, found, sources)
    other = found.reject { |name, value| known[name] == value }
    assert_empty other.to_h { |name, value| [name, "#{value} instead of #{known[name]}"] }, sources
  end

  def lie
    ruby.version.sub(/\A\d+\.\d+/) { |minor| LIES.fetch(minor) }
  end

  # Starts a Ruby whose file says that it is another version.
  def start_liar
    file = ruby.outside(ruby.library || ruby.binary)
    patched = path(`readelf -dW #{file}`[/\(SONAME\).*\[(.*)\]/, 1] || 'ruby')
    FileUtils.cp(file, patched)
    say_version(patched)
    copy = ruby.install(patched)
    program = [*Oracle.options, ruby.program('main/class_body.rb')]
    argv = ruby.library ? ruby.command(*program) : ruby.run_command(copy, *program)
    @liar = start_command(argv, env: { 'LD_LIBRARY_PATH' => File.dirname(copy) })
    @liar.wait_for('ready')
    assert_includes File.read("/proc/#{@liar.pid}/maps").scan(%r{/.*}), ruby.outside(copy)
  end

  def say_version(file)
    address = `nm -D --defined-only #{file}`[/^(\h+) \w ruby_version$/, 1]
    address or missing 'nm of binutils'
    content = File.binread(file)
    at = offset(file, address.hex)
    assert_equal "#{ruby.version}\0", content[at, ruby.version.size + 1]
    content[at, lie.size] = lie
    File.binwrite(file, content)
  end

  # Where in the file is what will be at an address?
  def offset(file, address)
    `readelf -lW #{file}`.scan(/^ +LOAD +0x(\h+) 0x(\h+) 0x\h+ 0x(\h+)/).each do |load|
      from, to, size = load.map(&:hex)
      return from + address - to if (to...to + size).cover?(address)
    end
    flunk "#{address} is in no segment of #{file}"
  end
end
