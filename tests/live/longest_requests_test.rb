# SPDX-License-Identifier: GPL-2.0-only
# frozen_string_literal: true

# The longest single requests are those that a program knows as such, as long as it says, then when it says and on that
# thread, and slept for as long (tests/programs/requests/longest.rb).

require_relative 'support'

class LongestRequestsTest < LiveTest
  HERTZ = 199
  SECONDS = 6
  LISTED = 7
  PART = 0.03
  # Of a clock, which is up to a tenth longer than was asked for: what is before a first tick, or after a last one.
  PERIOD = 1.1e9 / HERTZ # ns

  Served = Struct.new(:tid, :thread, :name, :from, :to, :asleep, :cpu) do
    def length
      to - from
    end
  end

  def test_the_longest_are_those_that_the_program_knows
    record_lengths('--mode', 'states')
    list = recording.report('--requests', '-n', LISTED)['longest']
    assert_equal LISTED, list.size
    served = list.map { |one| served_as(one) }
    assert_equal served.uniq, served
    # Those of about the same length may change places.
    @served.first(LISTED).zip(served) { |want, found| assert_near want.length, found.length, want, 'in its place' }
    list.zip(served) { |one, found| assert_one(one, found) }
    assert_hint(list.first)
  end

  # When a request slept before its first tick nothing tells so.
  def test_of_cpu_time_lengths_are_lower_bounds
    record_lengths
    list = recording.report('--requests')['longest']
    assert_operator list.size, :>, LISTED
    list.each do |one|
      found = served_as(one)
      assert_operator one['length_ns'], :<=, found.length + stolen_ns
      assert_equal 0, one['length_most_ns']
      # Those are listed that chance gave two ticks.
      assert_in_delta found.cpu, one['self_ns'], (found.cpu * PART) + (2 * PERIOD) + stolen_ns, "CPU time: #{found}"
    end
  end

  private

  def record_lengths(*options)
    target = start('requests/longest.rb', SECONDS)
    rbpf = attach([target], '-F', HERTZ, *options)
    target.go
    said = target.wait_for('ready')
    assert_equal 0, rbpf.stop.code
    @served = said['served'].map { |line| Served.new(*line) }.sort_by { |s| -s.length }
  end

  # What the program says of it: it was there in the middle of its time.
  def served_as(one)
    middle = recording.json['meta']['start_ns'] + one['from_ns'] + (one['length_ns'] / 2)
    found = @served.find { |s| s.tid == one['tid'] && s.from <= middle && s.to >= middle }
    assert found, "none was there then: #{one}"
    found
  end

  def assert_one(one, found)
    assert_equal [found.name, found.thread], one.values_at('request', 'thread')
    refute one['begin_unknown'] || one['end_unknown'], one
    assert_near found.length, found.length.clamp(one['length_ns'], one['length_most_ns']), found, 'bounds'
    assert_near found.length, one['length_ns'], found, 'length'
    # It begins with a wait, which is exact.
    assert_in_delta found.from, recording.json['meta']['start_ns'] + one['from_ns'], found.length * PART, "begin: #{found}"
    assert_in_delta found.asleep, one['states']['timer'], found.asleep * PART, "slept: #{found}"
  end

  def assert_near(expected, found, served, what)
    assert_in_delta expected, found, (served.length * PART) + PERIOD + stolen_ns, "#{what}: #{served}"
  end

  # It draws what the request did, and nothing else.
  def assert_hint(first)
    said = Rbpf.read('report', '--requests', '-i', recording.file)
    command = said[/the first one: rbpf (.*) > longest.svg$/, 1].split
    assert_includes command, first['tid'].to_s
    rows = Rbpf.json('report', '--requests', '--json', *command.drop(1))['requests']
    assert_equal first['self_ns'], rows.sum { |row| row['self_ns'] }
    assert_equal([first['request']], rows.map { |row| row['request'] })
  end
end
