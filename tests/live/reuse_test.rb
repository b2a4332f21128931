# SPDX-License-Identifier: GPL-2.0-only
# frozen_string_literal: true

# Code that is made, dropped and made anew at the same addresses, some thousand times a second,
# while objects are moved: a sample must not get the name of what was there before, or of what came
# after. What rbpf cannot know for certain any more it has to show as unknown.

require_relative 'support'

class ReuseTest < LiveTest
  SECONDS = 2.5
  HZ = 1_999

  # Of the frames of such code how many may be unknown
  UNKNOWN = 0.6

  # Where more stacks than these are without a name, in the first second of a process and later, rbpf copies names as it takes
  # stacks (src/sample/lost_names.h); not for so few in a second.
  COPIED_FROM = [1.0 / 8, 1.0 / 50].freeze
  FEW = 8

  # A frame of the code under test: its number and its parent's, as its file's name has them.
  NUMBERS = /\Agen_(\d+)_of_(\d+)\.rb\z/.freeze

  def test_code_that_is_dropped_at_once
    assert_right_names(50, 'gc')
  end

  def test_code_that_lives_for_a_moment
    assert_right_names(600, 'gc')
  end

  # All is of one kind, and so the same but for its numbers.
  %w[method block lambda c_map].each do |kind|
    define_method("test_code_of_kind_#{kind}") do
      assert_right_names(50, 'gc', kind: kind, seconds: SECONDS / 2)
    end
  end

  def test_code_that_is_moved
    assert_right_names(100, 'compact')
  end

  if RubyInstall.under_test.at_least?('3.0')
    def test_code_that_is_moved_by_each_collection
      assert_right_names(100, 'auto')
    end
  end

  RubyInstall.under_test.jits.each do |name, options|
    define_method("test_code_that_is_moved_with_#{name}") do
      assert_right_names(100, 'compact', *options)
    end
  end

  # Each piece runs for 10 ms and is freed then, before rbpf would look by itself: it is woken for what is new.
  GONE_SOON = <<~'RUBY'
    def now
      Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID)
    end
    puts %({"ready": true})
    $stdout.flush
    (0..Float::INFINITY).each do |i|
      eval("def code#{i}(deadline)\nnil while now < deadline\nend")
      send("code#{i}", now + 0.01)
      Object.send(:remove_method, "code#{i}")
      GC.start
    end
  RUBY

  def test_code_that_is_gone_soon
    target = start_command(ruby.command('--disable-gems', '-e', GONE_SOON))
    target.wait_for('ready')
    file = path('rbpf.data')
    Rbpf.read('record', '-p', target.pid, '-F', 999, '-d', '4s', '-o', file)
    summary = Rbpf.json('report', '--json', '-i', file)['summary']
    assert_operator summary['samples'], :>, 200
    # On a busy machine rbpf, though woken, comes too late for some; then their names are copied.
    assert_operator summary['unresolved'], :<=, summary['samples'] * (crowded? ? 0.01 : 0.003)
    assert_equal 0, summary['counters']['names_copied'] unless crowded?
  end

  # Where rbpf comes late, again and again, names are gone: from then on they are copied.
  def test_names_that_get_lost
    target = start('reuse.rb', 2 * SECONDS, 50, 'gc', options: ['--disable-gems'])
    rbpf = attach([target], '-F', HZ)
    target.go
    until target.output.include?('"ready":')
      { STOP: 0.1, CONT: 0.05 }.each { |name, seconds| rbpf.signal(name) && sleep(seconds) }
    end
    target.wait_for('ready')
    assert_equal 0, rbpf.stop.code, rbpf.err
    assert_nothing_lost(recording)
    assert_operator recording.totals['counters']['names_copied'], :>, 100
  end

  private

  # The frames of one piece of code in a stack: from and to are the places of the first and the last
  # frame that tell its numbers.
  Piece = Struct.new(:id, :parent, :from, :to)

  def assert_right_names(kept, collector, *options, kind: nil, seconds: SECONDS)
    target = start('reuse.rb', seconds, kept, collector, *kind,
                   options: ['--disable-gems', *options])
    recording = record(target, '-F', HZ, short_lived_code: true)
    said = target.wait_for('lives')
    @lives = said['lives'].to_h { |id, parent, kind, from, to| [id, [parent, kind, from..to]] }
    @kinds = said['kinds']
    samples = within_lives(recording.samples)
    wrong = samples.filter_map { |s| problem(s) }
    assert_empty wrong.first(4), "#{wrong.size} of #{samples.size} samples are wrong"
    assert_copied_if_lost(recording, samples)
    assert_enough_known(samples, [kept, collector, *kind, *options].join(' '))
  end

  def within_lives(samples)
    from, to = @lives.each_value.map { |_, _, life| [life.begin, life.end] }.flatten.minmax
    samples.select { |sample| (from..to).cover?(sample.ts_ns) }
  end

  # What is wrong with a sample
  def problem(sample)
    frames = sample.frames.reject { |frame| frame.kind == 'gc' }
    found = pieces(frames)
    what = found.filter_map { |piece| problem_with(piece, sample.ts_ns) }.first ||
           found.filter_map { |piece| problem_with_frames(piece, frames) }.first ||
           found.each_cons(2).filter_map { |inner, outer| problem_between(inner, outer) }.first
    "#{what}: #{sample.frames.join(' < ')}" if what
  end

  # Those that are known, innermost first.
  def pieces(frames)
    frames.each_index.filter_map { |i| frames[i].path[NUMBERS] && [i, $1.to_i, $2.to_i] }
          .chunk_while { |a, b| a[1] == b[1] }
          .map { |same| Piece.new(*same[0].drop(1), same[0][0], same[-1][0]) }
  end

  def problem_with(piece, time)
    made_by, _, life = @lives[piece.id]
    return "#{piece.id} does not exist" unless life
    return "#{piece.id} is of #{made_by}" unless made_by == piece.parent

    "#{piece.id} lived from #{life.begin - time} to #{life.end - time} ns" unless life.cover?(time)
  end

  # The frames are those that Ruby said of another piece of that kind; unknown ones may be any. Of
  # the innermost piece the stack may be another: when it is about to be defined, to begin or to
  # end.
  def problem_with_frames(piece, frames)
    return unless frames.first(piece.from).any? { |f| f.label == 'Reuse.inside' || f.path[NUMBERS] }

    expected = expected_frames(piece)
    fits = (0..expected.size - 1 - (piece.to - piece.from)).any? do |above|
      first = piece.from - above
      first >= 0 && expected.zip(frames[first, expected.size]).all? { |e, g| g && as_said?(e, g) }
    end
    "#{piece.id} is #{expected.join(' < ')}" unless fits
  end

  def expected_frames(piece)
    numbers = format('%05d_of_%05d', piece.id, piece.parent)
    @kinds.fetch(@lives[piece.id][1]).map do |label, path, line|
      label, path = [label, path].map { |text| text.gsub('ID_of_PARENT', numbers) }
      Frame.new(nil, label, path, line + (piece.id * 10) + 1)
    end
  end

  # A C function, or what is shown as one, has the place of its caller, if that is known. A class
  # that is just being moved may not be known: then its methods have their plain name.
  def as_said?(frame, got)
    return true if got.kind == 'unknown'

    [frame.label, Labels.bare(frame.label)].include?(as_printed(got.label)) &&
      (frame.path == got.path && frame.line == got.line || got.path.match?(/\A(?:<internal:|\z)/))
  end

  # Next to each other there are three frames between them: those of the method that makes that
  # kind, of Reuse.spawn and of Reuse.inside. Farther apart there are pieces between them that are
  # unknown.
  def problem_between(inner, outer)
    ids = [inner.parent]
    ids << @lives[ids.last][0] until ids.last.zero?
    ids = ids.first(1) if outer.from - inner.to <= 4
    "#{inner.id} is of #{ids}, not of #{outer.id}" unless ids.include?(outer.id)
  end

  # The process is older than the recording: of itself it is no reason to copy names. A second may begin at any sample: if of
  # all more are lost than may be, then of one.
  def assert_copied_if_lost(recording, samples)
    begun = recording.samples.map(&:ts_ns).min
    lost = samples.group_by { |sample| (sample.ts_ns - begun) / 1_000_000_000 }.group_by { |second, _| second.zero? }
    told = lost.map do |first, seconds|
      without = seconds.sum { |_, all| all.count { |sample| sample.frames.any? { |frame| frame.kind == 'unknown' } } }
      n = seconds.sum { |_, all| all.size }
      [without > (n * COPIED_FROM[first ? 0 : 1]) + (FEW * seconds.size), "#{without} of #{n} stacks have no name"]
    end
    return if told.none?(&:first)

    assert_operator recording.totals['counters']['names_copied'], :>, 0, told.map(&:last).join(' and ')
  end

  # All that is on the stack between Reuse.run and the innermost Reuse.inside
  def assert_enough_known(samples, what)
    frames = samples.flat_map do |sample|
      sample.frames.drop_while { |frame| frame.label != 'Reuse.inside' }
            .select { |frame| frame.path[NUMBERS] || frame.kind == 'unknown' }
    end
    unknown = frames.count { |frame| frame.kind == 'unknown' }
    puts format('%s: %d samples, %d frames, %.1f %% unknown', what, samples.size, frames.size,
                100.0 * unknown / frames.size)
    assert_operator frames.size, :>, 300
    assert_operator unknown, :<, UNKNOWN * frames.size, 'unknown frames'
  end
end
