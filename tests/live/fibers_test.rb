# SPDX-License-Identifier: GPL-2.0-only
# frozen_string_literal: true

# Fibers: the stack of the one that runs, then that of the one that resumed it, and so on. What
# tests/programs/fibers.rb says of itself is the truth.

require_relative 'support'

class FibersTest < LiveTest
  SPIN = 0.04 # s
  SECONDS = 0.8
  HZ = 1_999
  ENOUGH = 3

  # A fiber that is about to run, or has just run, may have no resumer yet, or any more.
  SELDOM = 0.05

  def test_stack_and_stacks_of_resumers
    target = start('fibers.rb', 'spin', SPIN)
    recording = record(target, '-F', HZ)
    truths = truths(target)
    assert_operator truths.size, :>, 15
    problems = truths.flat_map do |name, fibers|
      stacks = recording.resolved.filter_map { |sample| below_checkpoint(sample.frames, name) }
      next "#{name}: only #{stacks.size} samples" if stacks.size < ENOUGH

      stacks.uniq.filter_map { |stack| difference(name, fibers, stack) }.first(1)
    end
    assert problems.compact.empty?, problems.compact.join("\n")
  end

  def test_dump
    %w[three enumerator_next resumed_by_another_fiber].each do |name|
      target = start('fibers.rb', 'sleep', name)
      target.go
      target.wait_for('scenario')
      sleep 0.1 # until it waits
      thread = Rbpf.dump(target.pid).fetch('threads').find { |t| t['tid'] == target.pid }
      stack = fibers_of(thread.fetch('frames').map { |frame| Frame.from(frame) })
      stack[0].shift until stack[0].empty? || stack[0].shift.label == 'Scenarios.checkpoint'
      assert_nil difference(name, truths(target)[name], stack)
    end
  end

  def test_many_resumed_in_turn
    assert_consistent('resume') { |own, others| others.size == 1 && own.any? }
  end

  def test_many_that_resume_another
    assert_consistent('nested') { |own, others| others.size.between?(1, 2) && own.any? }
  end

  def test_many_that_run_once
    assert_consistent('short') { |own, others| others.size == 1 && own.any? }
  end

  def test_many_in_several_threads
    assert_consistent('threads') { |own, others| others.size == 1 && own.any? }
  end

  def test_many_enumerators
    assert_consistent('enumerators') { |own, others| others.size == 1 && own.any? }
  end

  # None of them has a resumer.
  def test_many_that_transfer
    assert_consistent('transfer') { |own, others| others.empty? && own.any? }
  end

  if RubyInstall.under_test.at_least?('3.0')
    def test_many_of_a_scheduler
      assert_consistent('scheduler') { |own, others| others.size == 1 && own.any? }
    end
  end

  RubyInstall.under_test.jits.each do |name, options|
    define_method("test_many_that_resume_another_with_#{name}") do
      assert_consistent('nested', options) { |own, others| others.size.between?(1, 2) && own.any? }
    end
  end

  private

  def truths(target)
    target.said.select { |object| object['scenario'] }
          .to_h { |object| object.values_at('scenario', 'fibers') }
  end

  # [frames, frames of the resumer, …]
  def fibers_of(frames)
    frames.reject { |f| f.kind == 'gc' }.slice_when { |a, b| [a, b].any? { |f| f.kind == 'fiber' } }
          .reject { |part| part[0].kind == 'fiber' }
  end

  def below_checkpoint(frames, name)
    at = frames.index { |frame| frame.label == "Oracle.spin_#{name}" } or return
    fibers_of(frames.drop(at + 2))
  end

  def difference(name, expected, got)
    expected = expected.map do |fiber|
      fiber.map { |label, path, line| Frame.new(nil, label, path.to_s, line.to_i) }
    end
    got = got.map do |fiber|
      fiber.map { |f| Frame.new(nil, as_printed(f.label), f.path, f.line) }
    end
    problem = expected.zip(got).each_with_index.filter_map do |(e, g), i|
      "fiber #{i}: #{Stacks.difference(e, g || [])}" if Stacks.difference(e, g || [])
    end
    problem << "#{got.size} fibers instead of #{expected.size}" if got.size != expected.size
    "#{name}: #{problem.first}" if problem.any?
  end

  # Each stack has frames of one number only, and the shape that the block asks for: it gets the
  # numbered frames of the running fiber and those of each fiber below. Those without are of the
  # program's main loop.
  def assert_consistent(kind, options = [], &shape)
    target = start('fibers.rb', kind, SECONDS, options: options)
    samples = record(target, '-F', HZ).resolved
    assert_operator target.wait_for('switches')['switches'], :>, SECONDS * 5_000
    samples.each { |sample| assert_one_number(sample.frames) }
    inside = samples.map { |sample| numbered_fibers(sample.frames) }
                    .select { |own, *| own.any? { |f| f.label.match?(/inner_|outer_|list_/) } }
    # The rest makes fibers and switches: what that takes, with its page faults, is a matter of the machine.
    assert_operator inside.size, :>, samples.size * 0.05
    assert_share_of_placeholders(samples)
    odd = inside.reject { |own, *others| shape.call(own, others) }
    few = odd.first(3).map { |fibers| fibers.map { |fiber| fiber.join(' < ') }.join(' | ') }
    assert_operator odd.size, :<, inside.size * SELDOM, few.join("\n")
  end

  def number(frame)
    frame.label[/_(\d+)\z/, 1]
  end

  def assert_one_number(frames)
    numbers = frames.filter_map { |frame| number(frame) }.uniq
    assert_operator numbers.size, :<=, 1, frames.join(' < ')
  end

  def numbered_fibers(frames)
    own, *others = fibers_of(frames)
    [own.to_a.select { |frame| number(frame) }, *others]
  end

  def assert_share_of_placeholders(samples)
    switching = samples.count { |s| s.frames.any? { |f| f.label == '[switching fibers]' } }
    assert_operator switching, :<, samples.size * SELDOM, 'samples while switching'
  end
end
