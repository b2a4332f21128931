# SPDX-License-Identifier: GPL-2.0-only
# frozen_string_literal: true

# Stacks of compiled code: each has to be one that the program can have, as Ruby itself says. The
# line of the innermost frame may be marked as approximate; all others have to be right.

require_relative 'support'

class JitTest < LiveTest
  SECONDS = 2
  HZ = 1_999
  # A line that begins or ends within this is another's, too.
  EDGE = 20_000 # ns

  # How many frames may be seen before they are written, where that is possible: see late_frames?
  LATE = 0.004

  # Called by instructions that TracePoint does not take for calls.
  UNTRACED = %w[Integer#to_s Integer#=== lambda RubyVM::FrozenCore.lambda].freeze

  # Called by a Hash for keys of different classes whose hashes happen to be alike: that differs from process
  # to process, so that the one that says the truth may not have called it.
  COMPARISONS = %w[Numeric#eql? Kernel#eql? String#eql?].freeze

  VARIANTS = { 'interpreter' => [] } # name => options
  RubyInstall.under_test.jits.each do |name, at_once|
    VARIANTS[name] = ["--#{name}"]
    VARIANTS["#{name}_from_the_first_call"] = at_once
  end
  if RubyInstall.under_test.jits['zjit']
    VARIANTS['zjit_from_the_second_call'] =
      %w[--zjit --zjit-num-profiles=1 --zjit-call-threshold=2]
  end
  VARIANTS.freeze

  VARIANTS.each do |name, options|
    define_method("test_#{name}") { assert_true_stacks(options) }
  end

  private

  def assert_true_stacks(options)
    truth = truths(options)
    target = start('jit.rb', 'run', SECONDS, options: ['--disable-gems', *options])
    recording = record(target, '-F', HZ)
    said = target.wait_for('ready')
    compiled = said['compiled']&.fetch('compiled_iseq_count', nil)
    # Before 3.3 a YJIT says nothing without --yjit-stats, nor does a ZJIT of every build.
    refute_nil compiled, 'what was compiled' if options.grep(/yjit/).any? && ruby.at_least?('3.3')
    assert_operator compiled, :>, 5 if compiled
    assert_only_innermost_approximate(recording.samples, options)
    assert_stacks(recording, truth)
    assert_lines(recording, said['spans'], options)
  end

  # Compiling nothing, but with the same methods of Ruby's own: some are others with a JIT.
  def truths(options)
    never = options.grep(/\A--.jit\z/).flat_map { |jit| [jit, "#{jit}-call-threshold=100000000"] }
    target = start('jit.rb', 'truth', options: ['--disable-gems', *never])
    said = target.wait_for('truth')
    @lines = said['lines']
    said['truth'].filter_map { |frames| from_run_all(frames, &:first) }
                 .each_with_object({}) do |frames, all|
      top = frames[0]
      (all[[top.first(2), *frames.drop(1)]] ||= []) << top[2]
    end
  end

  # Without what is below, which depends on the way it is started.
  def from_run_all(frames)
    at = frames.rindex { |frame| as_printed(yield(frame)) == as_printed('Jit#run_all') }
    frames[0..at] if at
  end

  def assert_only_innermost_approximate(samples, options)
    samples.each do |sample|
      frames = Stacks.as_ruby_shows(sample.frames)
      at = frames.each_index.select { |i| frames[i].approximate }
      assert_empty at - (late_callers? ? [0, 1] : [0]), "of a caller: #{frames.join(' < ')}"
      assert_empty at, frames.join(' < ') if options.empty?
    end
  end

  # 3.1's YJIT saves the line of a caller only in the course of a call.
  def late_callers?
    ruby.version.start_with?('3.1.')
  end

  # It, and all of 2.7, makes a frame the innermost one some instructions before that is written:
  # until then what is there is the frame that was there last, and may well be another method's.
  def late_frames?
    !ruby.at_least?('3.0') || late_callers?
  end

  def assert_stacks(recording, truth)
    stacks = recording.resolved.filter_map do |sample|
      from_run_all(Stacks.as_ruby_shows(sample.frames), &:label)
    end
    assert_operator stacks.size, :>, SECONDS * HZ * 0.5
    wrong = stacks.reject { |frames| true_stack?(frames, truth) }
    wrong -= without_class(wrong, truth, stacks.size)
    return if late_frames? && wrong.size <= 1 + (stacks.size * LATE)

    few = wrong.tally.sort_by { |_, n| -n }.first(6)
    assert_empty few.map { |frames, n| "#{n} x #{frames.join(' < ')}" },
                 "#{wrong.size} of #{stacks.size} stacks are none that the program can have"
  end

  def true_stack?(frames, truth)
    return true_stack?(frames.drop(1), truth) if UNTRACED.include?(frames[0].label) || comparison?(frames)

    top, *rest = frames.map { |frame| [as_printed(frame.label), frame.path, frame.line] }
    lines = truth[[top.first(2), *rest]] || lines_of_any_caller(frames, top, rest, truth)
    lines && (frames[0].approximate || lines.include?(top[2]) ||
              @lines.fetch(Labels.bare(top[0]), []).include?(top[2]))
  end

  def comparison?(frames)
    COMPARISONS.include?(frames[0].label) && frames[1]&.label == 'Jit#hashes'
  end

  # The same, whatever the line of a caller that is approximate.
  def lines_of_any_caller(frames, top, rest, truth)
    return unless frames.size > 1 && frames[1].approximate

    truth.find do |(first, second, *others), _|
      first == top.first(2) && second&.first(2) == rest[0].first(2) && others == rest.drop(1)
    end&.last
  end

  # While a block's variables are moved off the stack its method cannot be found, hence not its
  # class.
  def without_class(stacks, truth, of)
    @bare ||= truth.keys.to_h do |stack|
      [stack.map { |label, path, line| [Labels.bare(label), path, line] }, true]
    end
    found = stacks.select do |frames|
      top, *rest = frames.map { |frame| [Labels.bare(frame.label), frame.path, frame.line] }
      @bare[[[*top.first(2), nil], *rest]] && frames.any? { |frame| !frame.label.match?(/[#.<]/) }
    end
    found.size <= 1 + (of / 1_000) ? found : []
  end

  # Whether a line is shown when it runs. Next to it are the lines that look at the clock.
  def assert_lines(recording, spans, options)
    shown = lines_shown(recording.samples, spans)
    wrong = shown.reject { |line, frame| frame.line == line || frame.approximate }
    beside, far = wrong.partition { |line, frame| (frame.line - line).abs == 1 }
    assert_operator beside.size, :<=, shown.size * 0.01, beside.tally
    assert_empty far.map { |line, frame| "#{frame} instead of #{line}" }.tally,
                 "#{wrong.size} of #{shown.size} lines are wrong"
    right = shown.count { |line, frame| frame.line == line && !frame.approximate }
    assert_operator right, :>=, shown.size * 0.9 if options.empty?
  end

  # [[line that was running, frame that was shown]…]
  def lines_shown(samples, spans)
    shown = spans.flat_map do |line, from, to|
      samples.select { |sample| (from + EDGE..to - EDGE).cover?(sample.ts_ns) }
             .filter_map { |sample| line_shown(sample) }.map { |frame| [line, frame] }
    end
    assert_operator shown.size, :>, 50
    shown
  end

  def line_shown(sample)
    sample.frames.find { |f| as_printed(f.label) == as_printed('Jit::Phases#loop_on_one_line') }
  end
end
