# SPDX-License-Identifier: GPL-2.0-only
# frozen_string_literal: true

# Ractors, threads on shared native threads, and threads that come and go: no sample has frames of
# another thread than its own. Each has methods of its own, whose names end with its number.

require_relative 'support'

class RactorTest < LiveTest
  SECONDS = 1.5
  HZ = 1_999

  MN = { 'RUBY_MN_THREADS' => '1', 'RUBY_MAX_CPU' => '3' }.freeze

  def test_threads
    assert_each_of_its_own('threads', 24)
  end

  def test_threads_that_come_and_go
    assert_each_of_its_own('short', 100)
  end

  if RubyInstall.under_test.ractors?
    # From 3.3 on threads of Ractors share native threads.
    def test_ractors
      assert_each_of_its_own('ractors', 9, shared: ruby.mn_threads?)
    end
  end

  if RubyInstall.under_test.mn_threads?
    def test_many_threads_on_few_native_ones
      native = assert_each_of_its_own('threads', 24, shared: true, env: MN)
      assert_operator native, :<, 24, 'they share native threads'
    end

    def test_threads_that_come_and_go_on_few_native_ones
      assert_each_of_its_own('short', 100, shared: true, env: MN)
    end

    def test_ractors_on_few_native_threads
      assert_each_of_its_own('ractors', 9, shared: true, env: MN)
    end
  end

  RubyInstall.under_test.jits.each do |name, options|
    define_method("test_threads_that_come_and_go_with_#{name}") do
      assert_each_of_its_own('short', 100, options: options)
    end

    define_method("test_ractors_with_#{name}") do
      assert_each_of_its_own('ractors', 9, shared: ruby.mn_threads?, options: options)
    end
  end

  private

  # Returns on how many native threads they ran.
  def assert_each_of_its_own(kind, threads, shared: false, options: [], env: {})
    target = start('ractors.rb', kind, SECONDS, options: options, env: env)
    recording = record(target, '-F', HZ)
    assert_operator target.wait_for('threads')['threads'], :>=, threads
    numbered = recording.resolved.select { |sample| numbers(sample).any? }
    assert_operator numbered.size, :>, recording.samples.size * 0.5
    assert_equal [target.pid], numbered.map(&:pid).uniq
    numbered.each { |sample| assert_one_number(sample) }
    by_tid = numbered.group_by(&:tid)
    by_tid.each_value { |samples| assert_one_after_another(samples) } unless shared
    assert_few_placeholders(recording.samples)
    by_tid.size
  end

  # A native thread that is not shared can get another Ruby thread only when the one has ended.
  def assert_one_after_another(samples)
    had = samples.sort_by(&:ts_ns).map { |sample| numbers(sample)[0] }.chunk_while { |a, b| a == b }
    assert_equal had.map(&:first), had.map(&:first).uniq, "numbers on thread #{samples[0].tid}"
  end

  def numbers(sample)
    sample.frames.filter_map { |frame| frame.label[/_(\d+)\z/, 1] }.uniq
  end

  # Of one thread only, and down to where that begins.
  def assert_one_number(sample)
    labels = sample.frames.map(&:label)
    found = numbers(sample)
    assert_equal 1, found.size, sample.frames.join(' < ')
    root = sample.frames.reverse.find { |frame| frame.kind == 'ruby' }.label
    assert_match(/\A(?:block in Numbered\.(?:start|ractor_\d+|short_\d+)|<main>)\z/, root,
                 labels.join(' < '))
  end

  def assert_few_placeholders(samples)
    odd = samples.select { |s| s.frames.any? { |f| f.label.match?(/\A\[(?:stack|switching)/) } }
    assert_operator odd.size, :<=, samples.size * 0.02, odd.map { |s| s.frames[0].label }.tally
  end
end
