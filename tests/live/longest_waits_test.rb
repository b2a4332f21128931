# SPDX-License-Identifier: GPL-2.0-only
# frozen_string_literal: true

# The longest single waits are those that a program knows as such: as long as its clock says, when it says, in the method
# (tests/programs/longest_waits.rb).

require_relative 'support'

class LongestWaitsTest < LiveTest
  # From when the program reads its clock until it waits, and from the end of its wait until it reads it again.
  CLOCKS = 20_000_000 # ns
  # Of what was waited for the GVL, in which others are charged when they are found to have it.
  CHARGED = 0.8

  def test_they_are_those_that_the_program_knows
    said = record_program('longest_waits.rb', '--no-children')
    wanted = said['waits'].sort_by { |_, _, from, to| from - to }
    list = waits('--tid', said['tid'], '-n', wanted.size)
    assert_equal(wanted.map { |method, state, *| [state, said['name'], "Waits.#{method}"] },
                 list.map { |one| one.values_at('state', 'thread', 'label') })
    wanted.zip(list) { |one, found| assert_times(one, found) }
    assert_hint(said, list[0])
  end

  # It waits when the recording begins, and when it ends.
  def test_what_goes_beyond_the_recording_says_so
    rbpf = attach([start('longest_waits.rb')], '--mode', 'states')
    sleep 0.5
    rbpf.stop
    list = waits('--state', 'wait')
    longest = list.max_by { |one| one['length_ns'] }
    assert_equal [true, true], longest.values_at('began_before', 'went_on')
    assert_match(/^ *≥\d/, Rbpf.read('report', '--waits', '--state', 'wait', '-i', recording.file))
  end

  # Two threads compute: each waits for the other one.
  def test_who_had_the_gvl
    threads = record_program('shares.rb', 1)['threads'].values.map { |thread| thread['tid'] }
    list = waits('--state', 'gvl', '--tid', threads.join(','), '-n', '5')
    assert_equal 5, list.size
    list.each do |one|
      assert_equal threads - [one['tid']], [one['held_by_tid']], one
      assert_operator one['held_by_ns'], :>, (one['length_ns'] * CHARGED) - stolen_ns, one
      assert_operator one['held_by_ns'], :<=, one['length_ns'], one
    end
  end

  private

  def record_program(name, *arguments)
    options, arguments = arguments.partition { |argument| argument.to_s.start_with?('--') }
    target = start(name, *arguments)
    rbpf = attach([target], '--mode', 'states', *options)
    target.go
    said = target.wait_for('ready')
    assert_equal 0, rbpf.stop.code
    said
  end

  # All frames are those of the program's own code.
  def waits(*options)
    recording.report('--waits', '--app', *options)['waits']
  end

  def assert_times(one, found)
    _, _, from, to = one
    slack = CLOCKS + stolen_ns
    assert_in_delta from, recording.json['meta']['start_ns'] + found['from_ns'], slack, one
    assert_in_delta to - from, found['length_ns'], slack, one
    refute found['began_before'] || found['went_on'], found
  end

  # It draws the thread that waited.
  def assert_hint(said, first)
    text = Rbpf.read('report', '--waits', '--tid', said['tid'].to_s, '-i', recording.file)
    command = text[/around the first one: rbpf (.*) > wait.html$/, 1].split
    assert_includes Rbpf.read(*command), said['name']
    rows = Rbpf.json('report', '--json', '--by', 'state', '--tid', said['tid'].to_s, *command.drop(1))['rows']
    assert_operator rows.find { |row| row['state'] == first['state'] }['longest_wait_ns'], :>=, first['length_ns']
  end
end
