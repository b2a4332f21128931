# SPDX-License-Identifier: GPL-2.0-only
# frozen_string_literal: true

# What --idle takes for idle, compared with what loops of a program's own measure of themselves (tests/programs/pollers.rb).

require_relative 'support'

class IdleTest < LiveTest
  SECONDS = 1.5
  PART = 0.02
  SLACK = 10_000_000 # ns
  POLLERS = %w[SleepingPoller QueuePoller GemPoller].freeze

  def setup
    super
    target = start('pollers.rb', SECONDS)
    rbpf = attach([target], '--mode', 'states', '--waker', '--no-children')
    target.go
    target.wait_for('ready')
    assert_equal 0, rbpf.stop.code
    @said = target.wait_for('threads')['threads'].to_h { |thread| [thread['poller'], thread] }
    assert_equal POLLERS, @said.keys
    @said.each_value { |said| assert_operator said.values_at('idle', 'work').min, :>, SECONDS * 0.2e9, said }
  end

  def test_loops_of_the_program
    assert_idle POLLERS, 'SleepingPoller#run$|QueuePoller#fetch$|GemPoller#run$'
    # It waits in another method of the program.
    assert_idle %w[SleepingPoller GemPoller], 'Poller#run$'
    # The method of a gem.
    assert_idle %w[GemPoller], '^Waiting\.take$'
    assert_idle [], 'Job#work$'
    assert_idle []
  end

  # All views have it from one place.
  def test_views
    idle = ['--idle', 'Poller#(run|fetch)$']
    ns = recording.rows('--states', '-n', '0', *idle).sum { |row| row['states']['idle'] }
    assert_operator ns, :>, @said.values.sum { |said| said['idle'] } * 0.9
    assert_equal ns, recording.rows('--state', 'idle', '-n', '0', *idle).sum { |row| row['self_ns'] }
    assert_equal ns, recording.rows('--by', 'state', *idle).select { |row| row['state'] == 'idle' }.sum { |row| row['self_ns'] }
    assert_equal ns, recording.rows('--states', '--by', 'time', *idle).sum { |row| row['states']['idle'] }
    methods = recording.rows('--state', 'idle', '--app', '-n', '0', *idle).map { |row| row['label'] }
    assert_includes methods, 'QueuePoller#fetch'
    refute_includes methods.join(' '), 'Job#perform'
    folded = Rbpf.read('export', '-f', 'folded', '--event', 'wait', '-i', recording.file, *idle)
    assert_match(/QueuePoller#fetch;Thread::Queue#pop;(.*;)?\(idle: waits for something to do\) /, folded)
    assert_match(/Job#perform.*;Kernel#sleep;(.*;)?\(sleeps\) /, folded)
    wakers = [[], idle].map { |options| recording.rows_if_any('--waker', '--state', 'idle', '--include', 'Poller#feed', *options) }
    assert_equal [true, false], wakers.map(&:empty?)
    frames = [[], idle].map { |options| Rbpf.read('flame', '--color', 'state', *options, '-i', recording.file).scan('(idle: waits').size }
    assert_operator frames[0], :<, frames[1]
  end

  private

  # Of @pollers what they measured, of the others nothing; the work of all is none.
  def assert_idle(pollers, pattern = nil)
    options = pattern ? ['--idle', pattern] : []
    @said.each do |name, said|
      states = states_of(said['tid'], *options)
      unsure = states.values_at('gvl', 'wait-cpu').sum
      expected = pollers.include?(name) ? said['idle'] : 0
      # Before its Ruby begins and when it has ended a thread is idle, too.
      without = states_of(said['tid'])['idle']
      assert_operator without, :<, said['idle'] / 2, said
      assert_near expected, states['idle'] - without, unsure, "#{name}, #{pattern}: #{states}, #{said}"
      rest = states.values_at('lock', 'timer').sum
      assert_near said.values_at('idle', 'work').sum - expected, rest, unsure, "#{name}, #{pattern}: #{states}, #{said}"
    end
  end

  def states_of(tid, *options)
    recording.rows('--states', '-n', '0', '--tid', tid.to_s, *options)[0]['states']
  end

  def assert_near(expected, found, unsure, message)
    assert_in_delta expected, found, (expected * PART) + SLACK + unsure + stolen_ns, message
  end
end
