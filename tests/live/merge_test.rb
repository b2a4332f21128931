# SPDX-License-Identifier: GPL-2.0-only
# frozen_string_literal: true

# Ruby's frames and those of C have to stand in the order in which they called each other. The
# programs of tests/programs/mixed keep account of that themselves.
#
#   MIXED_SEED=N     the ways that are taken; another each time if not set
#   MIXED_LEAVES=N   how many stacks; 300 if not set, 150 with other Rubies than the one in PATH

require_relative 'merged'

class MergeTest < MergedTest
  SEED = Integer(ENV.fetch('MIXED_SEED') { rand(1 << 30) })
  LEAVES = Integer(ENV.fetch('MIXED_LEAVES') { RubyInstall.under_test.default? ? 300 : 150 })
  LEAF = 5_000_000 # ns
  HZ = 1_999

  # A sample is of the moment when the tick came, its time is a little later.
  MARGIN = 100_000 # ns

  # A tick now and then comes while a page of the stack is only being brought in.
  SELDOM = 0.01

  ALLOCATES = /newobj_of|ary_new|str_new/

  CFLAGS = %w[-O2 -fPIC -shared -nostdlib -fno-optimize-sibling-calls -fno-stack-protector
              -Wno-dangling-pointer].freeze

  # One leaf: what was active, of the running fiber and of those that wait for it.
  Truth = Struct.new(:tid, :from, :to, :stacks) do
    def cover?(sample)
      sample.tid == tid && sample.ts_ns.between?(from + MARGIN, to - MARGIN)
    end
  end

  def test_each_way
    assert_merged('enumerate')
  end

  def test_main_thread
    assert_merged('main')
  end

  def test_thread
    assert_merged('thread')
  end

  # A collection stands between what allocates and the collector's functions, of which a stripped build
  # has no names.
  def test_collection
    target = start('gc.rb', 'allocate', 2)
    record(target, '-F', HZ)
    collections = recording.samples.filter_map { |sample| around_collection(sample.frames.reverse) }
    assert_operator collections.size, :>, 100
    caused = collections.count { |outside, _| outside.last(3).any? { |f| f.label.match?(ALLOCATES) } }
    # No function between a new Array and the collector has a name in a stripped 2.7.
    most = ruby.at_least?('3.0') ? 0.7 : 0.3
    assert_operator caused, :>, collections.size * most, shown(collections.first.first.last(5))
    odd = collections.find { |_, inside| inside.any? { |f| f.label.match?(ALLOCATES) } }
    assert_nil odd, odd && shown(odd.flatten)
  end

  RubyInstall.under_test.jits.each do |name, options|
    define_method("test_each_way_with_#{name}") do
      assert_merged('enumerate', options)
      assert_compiled
    end

    define_method("test_main_thread_with_#{name}") do
      assert_merged('main', options)
      assert_compiled
    end
  end

  private

  # The frames outside of a collection, and those inside of it, of a stack that has all.
  def around_collection(frames)
    return if frames.any?(&:missing?)

    before, inside = frames.partition.with_index { |_, i| frames[0..i].none? { |f| f.kind == 'gc' } }
    [before, inside] unless inside.empty?
  end

  def library
    missing 'the extension needs gcc' unless system('gcc', '--version', out: File::NULL)
    source = File.join(Live::PROGRAMS, 'mixed/mixed.c')
    assert system('gcc', *CFLAGS, '-o', path('mixed.so'), source), 'mixed.so is not built'
    ruby.install(path('mixed.so'))
  end

  def assert_merged(kind, options = [])
    target = start('mixed/mixed.rb', kind, library, LEAVES, LEAF, SEED,
                   options: options, env: { 'RUBY_ABI_CHECK' => '0' })
    record(target, '-F', HZ)
    truths = truths(target)
    by_truth = samples_by_truth(truths)
    compared = problems = 0
    first = nil # of them
    truths.each_with_index do |truth, i|
      whole = by_truth[truth].reject { |sample| gap?(sample) }
      compared += whole.size
      found = whole.filter_map { |sample| difference(truth, sample) }
      problems += found.size
      first ||= found.first && "leaf #{i}: #{found.first}"
    end
    assert_enough(truths, by_truth, compared)
    assert_equal 0, problems, "seed #{SEED}: of #{compared} samples; #{first}"
  end

  def truths(target)
    target.said.select { |object| object['leaf'] }.map do |object|
      Truth.new(*object.values_at('tid', 'from_ns', 'to_ns', 'leaf'))
    end
  end

  def samples_by_truth(truths)
    by_truth = truths.to_h { |truth| [truth, []] }.compare_by_identity
    samples = recording.samples.sort_by(&:ts_ns)
    truths.each do |truth|
      at = samples.bsearch_index { |sample| sample.ts_ns >= truth.from + MARGIN } or next
      samples[at..].take_while { |sample| sample.ts_ns <= truth.to }
                   .each { |sample| by_truth[truth] << sample if truth.cover?(sample) }
    end
    by_truth
  end

  def gap?(sample)
    sample.frames.any?(&:missing?)
  end

  def assert_enough(truths, by_truth, compared)
    all = by_truth.values.sum(&:size)
    assert_operator all, :>, truths.size * LEAF * HZ / 1e9 / 2, 'samples in leaves'
    gaps = by_truth.values.flatten.select { |sample| gap?(sample) }
    assert_operator all - compared, :<=, 1 + (all * SELDOM),
                    "seed #{SEED}: gaps: #{gaps.first && shown(gaps.first.frames.reverse)}"
    none = by_truth.count { |_, samples| samples.empty? }
    assert_operator none, :<=, truths.size * 0.02, 'leaves without samples'
  end

  def assert_compiled
    assert_operator recording.compiled.size, :>, recording.samples.size / 10, 'samples of compiled code'
  end

  # Says where the sample parts from the truth; nil if it does not.
  def difference(truth, sample)
    fibers = fibers_of(sample)
    if fibers.size != truth.stacks.size
      return "#{fibers.size} fibers instead of #{truth.stacks.size}: " \
             "#{shown(sample.frames.reverse)}"
    end

    expected = truth.stacks.map { |stack| expand(stack) }
    difference_of_running(expected.shift, fibers.shift) || difference_of_waiting(expected, fibers)
  end

  def difference_of_running(expected, frames)
    got = entries(frames)
    more = got.drop(expected.size)
    same = got.first(expected.size) == expected && aside?(expected, more)
    return odd_function(frames) if same

    at = expected.zip(got).index { |e, g| e != g } || expected.size
    "number #{at} is the first that differs\n  expected #{excerpt(expected, at)}\n  " \
      "got      #{excerpt(got, at)}\n  of #{shown(frames)}"
  end

  # Of fibers that wait there may be no native frames, but none that are wrong.
  def difference_of_waiting(expected, fibers)
    expected.zip(fibers).each_with_index.filter_map do |(e, frames), i|
      got = entries(frames)
      next if got == e || got == e.select { |kind, _| kind == 'ruby' }

      "fiber #{i + 1}:\n  expected #{e}\n  got      #{got}"
    end.first
  end

  # What a truth of the program says, as entries() says it.
  def expand(stack)
    stack.flat_map do |kind, name, function|
      case kind
      when 'c' then [['c', name]]
      when 'cfunc' then [['ruby', name], ['c', function]]
      else [['ruby', name]]
      end
    end
  end

  # The frames that a truth is about; those of the program's start are not.
  def entries(frames)
    list = frames.filter_map do |frame|
      if frame.ruby?
        ['ruby', frame.label] unless Labels.clause?(frame.label)
      elsif frame.of?('mixed.so') && !by_the_linker?(frame)
        ['c', frame.label]
      end
    end
    start = list.index(['ruby', 'Mixer#start'])
    start ? list.drop(start) : list
  end

  # The linker's stubs, by which functions of other files are called.
  def by_the_linker?(frame)
    frame.nameless? || frame.label.end_with?('@plt')
  end

  # A leaf of Ruby reads its clock, and says when it begins and ends: a thread that is preempted there says so late.
  def aside?(expected, more)
    return more.empty? unless expected.last.last.include?('leaf_of_ruby')

    %w[cpu_ns leaf_begins leaf_ends].any? do |name|
      more == [['ruby', "Mixed.#{name}"], ['c', "mixed_#{name}"]].first(more.size)
    end
  end

  # The C function of a method stands right on the method's frame, and says that it is the same.
  def odd_function(frames)
    frames.each_cons(2) do |method, function|
      next unless method.kind == 'cfunc' && method.label.start_with?('Mixed.')
      # While it is only being called, or has returned.
      next if %w[Mixed.cpu_ns Mixed.leaf_begins Mixed.leaf_ends].include?(method.label)

      fits = function.label == method.label.sub('Mixed.', 'mixed_') && function.internal
      return "#{method} is followed by #{function}" unless fits
    end
    nil
  end

  def excerpt(entries, at)
    ((at.positive? ? ['…'] : []) + (entries[[at - 1, 0].max, 4] || []).map(&:last)).join(' > ')
  end
end
