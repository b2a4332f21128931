# SPDX-License-Identifier: GPL-2.0-only
# frozen_string_literal: true

# Garbage collection stands on top of the stack that caused it, and of no other, for as long as Ruby
# says that it takes.

require_relative 'support'

class GcTest < LiveTest
  SECONDS = 2
  HZ = 1_999

  # Calling a function allocates a little, too, and so collects now and then.
  SELDOM = 0.1

  COLLECTION = '(garbage collection)'
  PHASES = %w[(marking) (sweeping) (compacting)].freeze

  def test_allocation
    said = run_program('allocate')
    assert_on_top_of(gc_samples.reject { |s| begins_a_call?(s) },
                     /\A(?:block in )?Allocating#allocate\z/)
    assert_operator phase('(marking)'), :>, 0
    assert_operator phase('(sweeping)'), :>, 0
    # The profiler of 2.7 and 3.0 leaves out what is swept later.
    assert_time(said) if ruby.at_least?('3.1')
  end

  def test_gc_start
    said = run_program('start')
    assert_on_top_of(gc_samples, 'Starting#start')
    assert_operator gc_samples.size, :>, samples.size / 4
    assert_operator phase('(marking)') + phase('(sweeping)'), :>, gc_samples.size * 0.9
    assert_time(said)
    under = samples.select { |s| s.frames.any? { |f| f.label == 'GC.start' } }
    assert_operator gc_samples.size, :>=, under.size * 0.9, 'all that GC.start does'
  end

  # To be the running one is what a thread says of itself as it begins, and nobody corrects that in a child
  # which the thread did not come with: who collects there must not be told by it. Only the owner of the GVL tells,
  # and where it is not known, that is said.
  def test_a_child_that_is_forked_as_threads_begin
    said = run_program('child')
    assert_on_top_of(gc_samples, 'Starting#start') unless ruby.altered? && gc_samples.empty?
    assert_time(said)
  end

  def test_gc_compact
    run_program('compact')
    assert_on_top_of(gc_samples, 'Compacting#start')
    assert_operator gc_samples.size, :>, samples.size / 4
  end

  def test_other_threads_do_not_collect
    said = run_program('threads')
    by_thread = { 'Allocating#run' => true, 'Counting#run' => false }
    by_thread['WithoutLock#run'] = false if said['without_lock']
    by_thread.each do |label, collects|
      own = samples.select { |s| of?(s, label) }
      own.reject! { |s| begins_a_call?(s) }
      assert_operator own.size, :>, 20, label
      gc = own.select { |s| gc?(s) }
      said = "#{label}: #{gc.size} of #{own.size}, as #{gc.first&.frames&.join(' < ')}"
      assert_equal collects, gc.size > own.size * SELDOM, said
    end
    assert_on_top_of(gc_samples.select { |s| of?(s, 'Allocating#run') },
                     /\A(?:block in )?Allocating#allocate\z/)
  end

  if RubyInstall.under_test.ractors?
    def test_other_ractors_do_not_collect
      assert_one_ractor_collects('ractors')
    end

    # 4.1: each collects its own objects.
    def test_ractors_that_begin_later_do_not_collect
      assert_one_ractor_collects('alone')
    end
  end

  def test_nothing_is_collected
    said = run_program('none')
    assert_equal 0, said['collections']
    assert_empty gc_samples
    assert_empty(recording.frames.select { |frame| frame.kind == 'gc' })
  end

  RubyInstall.under_test.jits.each do |name, options|
    define_method("test_allocation_with_#{name}") do
      said = run_program('allocate', options: options)
      assert_on_top_of(gc_samples.reject { |s| begins_a_call?(s) },
                     /\A(?:block in )?Allocating#allocate\z/)
      assert_time(said)
    end
  end

  private

  def of?(sample, label)
    sample.frames.any? { |frame| frame.label == label }
  end

  # What it takes to call a function without the lock allocates, before it and after, and may collect then.
  def begins_a_call?(sample)
    sample.frames.any? { |frame| frame.label.match?(/\AFiddle(?:::Pointer|\.last_error=)/) }
  end

  def run_program(kind, **options)
    target = start('gc.rb', kind, SECONDS, **options)
    # While it is being moved, code cannot always be told.
    record(target, '-F', HZ, short_lived_code: kind == 'compact')
    @said = target.wait_for('ready')
  end

  def assert_one_ractor_collects(kind)
    said = run_program(kind)
    # What began both may collect for a moment, too.
    assert_on_top_of(gc_samples.select { |s| of?(s, 'Allocating#run') }, /\A(?:block in )?Allocating#allocate\z/)
    assert_said(said, gc_samples)
    counting = recording.samples.select { |s| of?(s, 'Counting#run') }
    assert_operator counting.size, :>, 100
    assert_operator counting.count { |s| gc?(s) }, :<=, counting.size * 0.01
  end

  # Those taken while the workers ran.
  def samples
    @samples ||= begin
      from, to = @said['span']
      recording.samples.select { |sample| (from..to).cover?(sample.ts_ns) }
    end
  end

  def gc?(sample)
    sample.frames.any? { |frame| frame.kind == 'gc' }
  end

  def gc_samples
    @gc_samples ||= samples.select { |sample| gc?(sample) }
  end

  def phase(name)
    gc_samples.count { |sample| sample.frames[0].label == name }
  end

  # The frames of collections are the innermost ones, and not far below is what caused them.
  def assert_on_top_of(gc_samples, cause)
    known = gc_samples.reject(&:unresolved?)
    assert_operator known.size, :>, gc_samples.size / 2, 'collections on stacks that are known'
    known.each do |sample|
      gc, below = sample.frames.partition { |frame| frame.kind == 'gc' }
      labels = gc.map(&:label)
      assert_equal gc, sample.frames.first(gc.size)
      assert_equal COLLECTION, labels.last
      assert_includes [[], *PHASES.map { |phase| [phase] }], labels[0...-1]
      assert below.first(6).any? { |frame| cause === frame.label }, below.join(' < ')
    end
  end

  def assert_time(said)
    all = recording.samples.select { |sample| gc?(sample) }
    sampled = all.sum(&:value)
    assert_equal sampled, recording.totals['gc_ns']
    assert_equal sampled, recording.report('--gc')['gc']['ns'].to_i # null if all is unknown
    assert_said(said, all)
  end

  # n samples of w ns are right by sqrt(n) * w; five times that is practically never exceeded.
  def assert_said(said, gc)
    sampled = gc.sum(&:value)
    unknown = recording.totals['gc_unknown_ns']
    assert_equal 0, unknown unless ruby.altered?
    error = (5 * Math.sqrt(gc.size) * 1e9 / HZ) + (0.03 * said['gc_ns']) + stolen_ns
    assert_includes (sampled - error)..(sampled + unknown + error), said['gc_ns'],
                    "#{said['collections']} collections"
  end
end
