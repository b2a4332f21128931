# SPDX-License-Identifier: GPL-2.0-only
# frozen_string_literal: true

# Code that is made, dropped and made anew at the same addresses: a sample must not get the name of
# what was there before, or of what came after.

require_relative 'support'

class ReuseTest < LiveTest
  METHODS = 1_500
  # rbpf looks at a stack it has seen before again after about this long. Until then a method that
  # has another's addresses, to the byte, can be taken for it: seldom, and not for longer.
  EPOCH = 1.5e9 # ns
  SELDOM = 0.01

  # Dropped within some 25 to 50 ms, before anyone has looked at all of it: what rbpf does not know
  # it must not guess.
  def test_code_that_is_dropped_at_once
    named, = assert_right_names(50)
    assert_operator named, :>, 0.1
  end

  # Dropped within some 0.3 to 0.6 s: time enough to name it.
  def test_code_that_lives_for_a_moment
    named, wrong = assert_right_names(600)
    assert_operator named, :>, 0.75
    assert_equal 0, wrong
  end

  private

  # Returns what share of the samples has the name of such a method, and how many have a wrong one.
  def assert_right_names(kept)
    target = start('reuse.rb', METHODS, kept)
    recording = record(target, '-F', 999, short_lived_code: true)
    said = target.wait_for('spans')['spans']
    spans = said.to_h { |name, line, from, to| [name, [line, from..to]] }
    during = spans.values.first[1].begin..spans.values.last[1].end
    samples = recording.samples.select { |sample| during.cover?(sample.ts_ns) }
    seen = samples.filter_map { |sample| named_frame(sample) }
    wrong = seen.reject { |sample, frame| fits?(sample, frame, spans) }
    message = "#{wrong.size} of #{seen.size} samples have a wrong name:\n" +
              wrong.first(5).map { |sample, frame| explain(sample, frame, spans) }.join("\n")
    assert_operator wrong.size, :<=, SELDOM * seen.size, message
    assert(wrong.all? { |sample, frame| soon?(sample, frame, spans) }, message)
    [seen.size.fdiv(samples.size), wrong.size]
  end

  def named_frame(sample)
    frame = sample.frames.find { |f| f.label.start_with?('Reuse#gen_') }
    [sample, frame] if frame
  end

  def name_of(frame)
    frame.label.delete_prefix('Reuse#')
  end

  def fits?(sample, frame, spans)
    name = name_of(frame)
    line, span = spans.fetch(name)
    frame.path == "#{name}.rb" && (line..line + 3).cover?(frame.line) && span.cover?(sample.ts_ns)
  end

  def soon?(sample, frame, spans)
    _, span = spans.fetch(name_of(frame))
    (sample.ts_ns - span.begin).abs < EPOCH
  end

  def explain(sample, frame, spans)
    _, span = spans.fetch(name_of(frame))
    ran, = spans.find { |_, (_, s)| s.cover?(sample.ts_ns) }
    since = (sample.ts_ns - span.begin) / 1_000
    "#{frame} where #{ran || 'none'} was running, #{since} µs after it began"
  end
end
