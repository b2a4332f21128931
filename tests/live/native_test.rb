# SPDX-License-Identifier: GPL-2.0-only
# frozen_string_literal: true

# Native stacks are whole, down to where the thread or the fiber began, and have what is known to
# have been done, on the Ruby method that did it. The work is tests/programs/native.rb.

require_relative 'merged'

class NativeTest < MergedTest
  SECONDS = 0.8
  HZ = 999

  # Samples that may be cut: a page of the stack was only being brought in, a library only being
  # loaded.
  CUT = 0.01

  # YJIT's code has no unwind table: how many words it has pushed is guessed in the innermost frame.
  CUT_COMPILED = 0.02

  # More of them may be where a library has functions written in assembler that say nothing about
  # how they are left, as GMP does; switching fibers is one such function of Ruby.
  CUT_MORE = { 'bignum' => 0.7, 'fibers' => 0.03, 'enumerators' => 0.03 }.freeze

  # What has to stand right on some method, in which share of all samples at least: the method, the
  # file, the function as far as it has a name.
  EXPECTED = {
    'deflate' => [[/Zlib.*\.deflate\z/, 'libz.', /deflate|longest_match|adler|crc|fill|tr_/, 0.5]],
    'inflate' => [[/Zlib.*\.inflate\z/, 'libz.', /inflate|adler|crc/, 0.3]],
    'digest' => [[/Digest#(update|<<)\z/, 'libcrypto.', /sha256|SHA256|EVP|[Dd]igest/, 0.5]],
    'json' => [[/JSON.*[#.]pars/, 'parser.so', //, 0.1], [/JSON|to_json/, 'generator.so', //, 0.1]],
    'oj' => [[/Oj/, 'oj.so', //, 0.2]],
    'nokogiri' => [[/Nokogiri/, 'libxml2.', //, 0.2]],
    'regexp' => [[/\AString#(scan|gsub)\z/, :ruby, //, 0.7]],
    'strings' => [[/\A(String|Array)#\w+/, :ruby, //, 0.5]],
    'sort' => [[/#sort_by\z/, :ruby, //, 0.5]],
    'calls' => [[/\AHash#each\z/, :ruby, //, 0.7]],
    'bignum' => [[/\AInteger#/, :any, //, 0.5]],
    'files' => [[/\AIO#write\z/, :ruby, //, 0.03], [/\AIO#write\z/, 'libc', /write/, 0.015]],
    'pipes' => [[/\AIO#(write|readpartial)\z/, :ruby, //, 0.2]],
    'threads' => [[/\AHash#each\z/, :ruby, //, 0.3]],
    'gc' => [[/\A(Array\.new|Array#initialize|Class#new)\z/, :ruby, //, 0.1]],
    'fibers' => [[/\AHash#each\z/, :ruby, //, 0.3]],
    'enumerators' => [[/#each/, :ruby, //, 0.1]],
    'exceptions' => [[/\AHash#each\z/, :ruby, //, 0.3]],
    'require' => [[/\AKernel#require\z/, :ruby, //, 0.5]],
    'evaluate' => [[/\AKernel#eval\z/, :ruby, //, 0.5]]
  }.freeze

  # What does not depend on the Ruby is done with one only; the others do some of it, those with a
  # JIT compiler by that, and old ones a little. NATIVE_ALL=1: all do all of it.
  DEFAULT = RubyInstall.under_test.default? || ENV.key?('NATIVE_ALL')
  JIT, JIT_OPTIONS = RubyInstall.under_test.jits.first
  SOME = %w[deflate digest json regexp strings sort files threads exceptions require].freeze
  FEW = %w[deflate sort calls].freeze
  PLAIN = if DEFAULT then EXPECTED.keys
          elsif RubyInstall.under_test.at_least?('3.1') then JIT ? [] : SOME
          else FEW
          end
  COMPILED = DEFAULT ? %w[sort calls json fibers exceptions] : SOME

  PLAIN.each do |kind|
    define_method("test_#{kind}") { assert_native(kind) }
  end

  if JIT
    COMPILED.each do |kind|
      define_method("test_#{kind}_with_#{JIT}") { assert_native(kind, JIT_OPTIONS) }
    end
  end

  RubyInstall.under_test.jits.each do |name, options|
    next if name == 'zjit' && !RubyInstall.under_test.at_least?('4.1') # 4.0's leaves no mark

    define_method("test_code_of_#{name}") do
      assert_native('sort', options)
      compiled = samples.count { |sample| sample.frames.any?(&:jit) }
      assert_operator compiled, :>, samples.size / 10, 'samples of compiled code'
    end
  end

  # Five methods deep, each but the innermost sorts by calling the next.
  def test_c_calls_ruby_calls_c
    record_work('sort')
    deep = samples.select { |s| s.frames.count { |f| f.label.end_with?('#sort_by') } >= 5 }
    assert_operator deep.size, :>, samples.size / 4
    odd = deep.reject do |sample|
      parts = between(sample.frames.reverse, /#sort_by\z/, /\Ablock/)
      parts.size >= 4 && parts.all? { |part| part.any?(&:native?) }
    end
    assert_operator odd.size, :<=, deep.size * CUT, shown(odd.first&.frames.to_a.reverse)
  end

  if DEFAULT
    def test_main_thread_from_its_start
      record_work('calls')
      main = samples.select { |sample| sample.tid == sample.pid }
      without = main.map { |sample| sample.frames.reverse.take_while { |frame| !frame.ruby? } }
                    .reject { |frames| frames.any? { |frame| frame.label == 'ruby_run_node' } }
      assert_operator main.size, :>, samples.size / 2
      assert_operator without.size, :<=, main.size * CUT, shown(without.first || [])
    end

    def test_kernel
      record_work('files', [], '--kernel')
      in_kernel = samples.select { |s| s.frames.any? { |f| f.kind == 'kernel' } }
      assert_operator in_kernel.size, :>, samples.size / 10
      in_kernel.each do |sample|
        kinds = sample.frames.map { |f| f.kind == 'kernel' }
        assert_equal kinds.sort_by { |kernel| kernel ? 0 : 1 }, kinds, shown(sample.frames.reverse)
      end
      writes = in_kernel.count { |sample| writes?(sample.frames.reverse) }
      # A file system can take ten times as long to open the file, which cuts what it had.
      assert_operator writes, :>, in_kernel.size / 30, in_kernel.first&.frames&.join(' < ')
    end

    def test_kernel_is_left_out
      record_work('files')
      refute_empty samples
      assert_empty(recording.frames.select { |frame| frame.kind == 'kernel' })
    end

    def test_no_native
      record_work('sort', [], '--no-native')
      refute_empty samples
      assert_empty(recording.frames.select { |frame| %w[native kernel gap].include?(frame.kind) })
    end
  end

  # Where the VM would go on after an exception, by the registers that setjmp() saved.
  def test_goes_on_behind_a_gap
    record_work('bignum')
    cut = samples.map { |sample| fibers_of(sample).first }.select { |frames| frames.any? { |f| f.kind == 'gap' } }
    assert_operator cut.size, :>=, samples.size / 10, 'samples in functions that say nothing about how they are left'
    whole = cut.count { |frames| begins?(frames.find { |f| !f.native? || f.module }, false) }
    assert_operator whole, :>=, cut.size * 0.95, cut.first && shown(cut.first)
  end

  private

  def record_work(kind, options = [], *more)
    target = start('native.rb', kind, SECONDS, options: options)
    why = target.wait_for('waiting')['missing']
    ruby.default? ? missing(why) : skip(why) if why
    # Code is thrown away sooner than it can be named.
    brief = %w[evaluate require].include?(kind)
    record(target, '-F', HZ, *more, short_lived_code: brief)
    @said = target.wait_for('ready')
  end

  # Those taken while it worked.
  def samples
    @samples ||= begin
      from, to = @said['span']
      recording.samples.select { |sample| sample.ts_ns.between?(from, to) }
    end
  end

  def assert_native(kind, options = [])
    record_work(kind, options)
    assert_operator samples.size, :>, SECONDS * HZ / 10
    assert_whole(kind, options.empty? ? CUT : CUT_COMPILED)
    assert_called_natively(kind)
    EXPECTED.fetch(kind).each { |expected| assert_there(*expected) } if options.empty?
    assert_names
  end

  # ---- completeness

  def assert_whole(kind, share)
    cut = samples.filter_map { |sample| why_cut(sample, kind) }
    assert_operator cut.size, :<=, [samples.size * CUT_MORE.fetch(kind, share), 1].max,
                    "#{kind}: #{cut.size} of #{samples.size} are cut, as #{cut.first}"
  end

  # nil if it is whole.
  def why_cut(sample, kind)
    running, *waiting = fibers_of(sample)
    # Before a thread is one of Ruby's, and when it is no more, that is said at the root.
    outermost = running.find { |f| !f.native? || f.module }
    return unless outermost # it is ending, and has no stack any more

    why = if running.none?(&:native?) then 'no native frames'
          elsif running.any? { |f| f.kind == 'gap' } then 'a gap'
          elsif !outermost.native? then "#{outermost} at the root"
          elsif !begins?(outermost, waiting.any? || %w[fibers enumerators].include?(kind))
            "#{outermost} (#{outermost.address}) at the root"
          end
    why && "#{why}: #{shown(running)}"
  end

  LIBC = /\A(libc|libpthread|ld)[-.]|\Ald-linux/.freeze
  STARTS = /\A(_start|__libc_start_main|__libc_start_call_main|_?_?clone3?|start_thread)/.freeze
  RUBY = /\A(libruby|ruby)/.freeze

  # Whether a thread begins there, or, if that can be, a fiber.
  def begins?(frame, in_fiber)
    file = File.basename(frame.module.to_s)
    if file.match?(LIBC)
      frame.nameless? || frame.label.match?(STARTS)
    elsif in_fiber && file.match?(RUBY) && fiber_start?(frame)
      true
    else
      # The executable may be stripped.
      file.match?(RUBY) && entry?(frame)
    end
  end

  def fiber_start?(frame)
    frame.nameless? || frame.label.match?(/fiber|cont|coroutine/)
  end

  def entry?(frame)
    return true if frame.label == '_start'

    path = file_of(frame) or return false
    entry = File.binread(path, 8, 24).unpack1('Q<')
    frame.address.between?(entry, entry + 64)
  end

  # Where we find the file of a frame.
  def file_of(frame)
    [ruby.outside(frame.module), frame.module].find { |path| File.file?(path) }
  end

  # ---- what is where

  # A C function that called Ruby is there itself, between the frames.
  def assert_called_natively(kind)
    all = without = 0
    first = nil
    samples.each do |sample|
      # The one stands between them, beyond the other there may be none.
      next if sample.frames.any? { |f| %w[gc gap].include?(f.kind) }

      fibers_of(sample).first(1).each do |frames|
        bare = frames.slice_when { |_, b| b.ruby? }.each_cons(2).select do |part, inner|
          part[0].kind == 'cfunc' && inner[0].ruby?
        end
        all += bare.size
        none = bare.select { |part, _| part.none?(&:native?) }
        without += none.size
        first ||= none.first && "#{none.first.flatten.first(2).join(' > ')} in #{shown(frames)}"
      end
    end
    assert_operator without, :<=, 1 + (all * CUT_MORE.fetch(kind, CUT)),
                    "of #{all}, C functions that are not there: #{first}"
  end

  # [frames between one of outer and the next of Ruby inside of it, if that is one of inner, …];
  # outermost first.
  def between(frames, outer, inner)
    at = frames.each_index.select { |i| frames[i].ruby? }
    pairs = at.each_cons(2).select { |a, _| frames[a].label.match?(outer) }
    # Some methods call another one of C first: sort_by calls each.
    pairs.filter_map do |a, b|
      b = at.find { |i| i > a && frames[i].kind == 'ruby' } || b
      frames[(a + 1)...b] if frames[b].label.match?(inner)
    end
  end

  def assert_there(method, file, name, share)
    with = samples.count { |sample| there?(sample.frames.reverse, method, file, name) }
    assert_operator with, :>=, samples.size * share,
                    "#{file} #{name.inspect} on #{method.inspect} in #{with} of #{samples.size}, " \
                    "not in #{other(method)}"
  end

  # A sample that has the method, to be shown.
  def other(method)
    one = samples.find { |s| s.frames.any? { |f| f.label.match?(method) } } || samples.first
    shown(one.frames.reverse)
  end

  def there?(frames, method, file, name)
    frames.slice_when { |_, b| b.ruby? }.any? do |called, *native|
      called.label.match?(method) && native.any? { |frame| fits?(frame, file, name) }
    end
  end

  def fits?(frame, file, name)
    return false unless frame.native?

    here = case file
           when :any then true
           when :ruby then File.basename(frame.module.to_s).match?(RUBY)
           else frame.of?(file)
           end
    here && (frame.nameless? || frame.label.match?(name))
  end

  # Small pieces are kept until the file is closed, or the buffer full.
  WRITERS = /\A(IO#write|IO#close|IO\.open|File\.open)\z/.freeze
  SYSTEM_CALLS = /\A(ksys|vfs|__x64_sys|__arm64_sys)_/.freeze

  # IO#write > … > write of the C library > … > the kernel's
  def writes?(frames)
    at = frames.index { |f| f.kind == 'cfunc' && f.label.match?(WRITERS) }
    inside = at ? frames.drop(at + 1) : []
    inside.any?(&:native?) &&
      inside.any? { |f| f.kind == 'kernel' && f.label.match?(SYSTEM_CALLS) }
  end

  # ---- names

  # nm as an oracle: what a library exports is named, and nothing else gets that name.
  def assert_names
    named = 0
    odd = recording.frames.select(&:native?).filter_map do |frame|
      functions = exported(frame) or next
      named += 1 unless frame.nameless?
      "#{frame} at #{frame.address}" unless rightly_named?(frame, functions)
    end
    assert_operator named, :>, 0, 'frames of libraries with a name'
    assert_empty odd.first(5)
  end

  # By nm, or by a name that is not exported, or by none, but not where it is an exported one's.
  def rightly_named?(frame, functions)
    at = functions[:ranges].select { |range, _| range.cover?(frame.address) }.map(&:last)
    return at.empty? if frame.nameless? || frame.label.end_with?('@plt')

    own = frame.label.sub(/@.*/, '')
    functions[:names].include?(own) ? at.include?(own) : true
  end

  # {names: of functions, ranges: [[addresses, name]…]} of the library that a frame is of.
  def exported(frame)
    path = frame.module && File.basename(frame.module).include?('.so') && file_of(frame) or return
    (@exported ||= {})[path] ||= begin
      lines = IO.popen(['nm', '-D', '-S', '--defined-only', path], err: File::NULL, &:readlines)
      ranges = lines.filter_map do |line|
        _, value, size, name = *line.match(/\A(\h+) (\h+) [TtWwi] (\S+)/)
        [value.hex...(value.hex + size.hex), name.sub(/@.*/, '')] if size && size.hex.positive?
      end
      { names: ranges.map(&:last).uniq, ranges: ranges }
    end
  end
end
