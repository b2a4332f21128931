# frozen_string_literal: true

# Code that is made, dropped and made anew at the same addresses: no sample may get the name of what
# was there before, or of what came after.

require_relative 'support'

class ReuseTest < LiveTest
  METHODS = 1_500

  def test_no_sample_has_the_name_of_other_code
    target = start('reuse.rb', METHODS)
    recording = record(target, '-F', 999, short_lived_code: true)
    spans = target.wait_for('spans')['spans'].to_h { |name, line, from, to| [name, [line, from..to]] }
    seen = recording.samples.filter_map { |sample| named_frame(sample) }
    assert_operator seen.size, :>, METHODS / 4
    wrong = seen.reject { |sample, frame| fits?(sample, frame, spans) }
    assert_empty(wrong.first(5).map { |sample, frame| "#{frame} at #{sample.ts_ns}" },
                 "#{wrong.size} of #{seen.size} samples have a wrong name")
    assert_operator recording.totals['unresolved'], :<, 0.05 * recording.totals['samples']
  end

  private

  def named_frame(sample)
    frame = sample.frames.find { |f| f.label.start_with?('Reuse#gen_') }
    [sample, frame] if frame
  end

  def fits?(sample, frame, spans)
    name = frame.label.delete_prefix('Reuse#')
    line, span = spans.fetch(name)
    frame.path == "#{name}.rb" && (line..line + 3).cover?(frame.line) && span.cover?(sample.ts_ns)
  end
end
