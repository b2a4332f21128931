# SPDX-License-Identifier: GPL-2.0-only
# frozen_string_literal: true

# Which request a sample is of: programs note when which of their threads served what, and each sample is compared with
# that.

require_relative 'merged'

class RequestsTest < LiveTest
  HERTZ = 999
  SECONDS = 4
  RIGHT = 0.995
  # Of few samples, as a busy machine leaves, the rest is less than one request has: so many may be unknown in any case.
  UNKNOWN_IN_ANY_CASE = 10
  UNKNOWN = '[unknown request]'
  # Until rbpf has seen the frames that tell a request: each of them, as it first comes; on a busy machine that of some
  # names is later.
  LEARNING_NS = 1.0e9
  # Between the frame that tells a request and the program's note of it.
  MARGIN_NS = 2e6

  # What tells requests, but not which: around the routes of these frameworks.
  OUTER = %w[Shop Grape::Endpoint].freeze

  # Whose class is in a local variable: all of it is unknown where compiled code keeps that in a register.
  OF_LOCALS = %w[ThumbnailWorker ArchiveJob].freeze

  Served = Struct.new(:tid, :from, :to, :name)

  RULES = File.expand_path('../../src/request/rules.txt', __dir__)
  # Those of PACKAGES alone.
  REAL = %w[rake rspec minitest].freeze

  # Frames as those of frameworks, on each Ruby: of all that have rules.
  def test_frames_like_those_of_frameworks
    check('like.rb', wrong: { '?' => [UNKNOWN] }, names: 19)
    file = recording.file
    ruled = File.readlines(RULES).grep_v(/^#|^$/).map { |line| line[/^\S+/] }.uniq
    assert_empty ruled - REAL - recording.json['requests'].map { |r| r['framework'] }
    by = Rbpf.json('report', '--by', 'request', '--json', file)['rows'].to_h { |r| [r.values_at('request', 'framework'), r['total_ns']] }
    compared = Rbpf.json('diff', '--by', 'request', '--json', file, file)['rows']
    assert_equal by, compared.to_h { |r| [r.values_at('request', 'framework'), r['before_ns']] }
    assert_equal([0.0], compared.map { |r| r['delta'].to_f }.uniq)
  end

  # Compiled code keeps the receiver in the frame, but a local variable, which has a part of the name, may be in a
  # register: that part is unknown then.
  RubyInstall.under_test.jits.each do |name, at_once|
    { name => ["--#{name}"], "#{name}_from_the_first_call" => at_once }.each do |variant, options|
      define_method("test_frames_with_#{variant}") do
        check('like.rb', wrong: { '?' => [UNKNOWN] }, names: 19, compiled: options)
        assert_compiled unless name == 'zjit' && !ruby.at_least?('4.1') # 4.0's leaves no mark
      end
    end
  end

  PACKAGES = 'ruby-actionpack ruby-activejob ruby-sinatra ruby-sidekiq rake ruby-rspec-core ruby-minitest'
  GEMS = %w[actionpack activejob sinatra sidekiq rake rspec-core minitest].freeze

  # The frameworks themselves. A gem is installed for the Ruby in PATH, so with that alone.
  if RubyInstall.under_test.default?
    def test_frameworks
      gone = GEMS.select { |name| Gem::Specification.find_all_by_name(name).empty? }
      missing "#{gone.join(', ')} (Debian packages #{PACKAGES})" unless gone.empty?
      # A task that another one needs counts as the one that was asked for.
      check('frameworks.rb', wrong: { 'rake seed' => ['rake seed', 'rake all'] }, names: 11, command: ruby.command('-W0'))
    end
  end

  # A rule of one's own; of a longer String the first 48 bytes.
  def test_rules_of_a_file
    File.write(path('my.rules'), "log RequestLog.work requests/log.rb - local:0 \"log %t\"\n")
    right = Hash.new { |_, name| ["log #{name.size > 48 ? "#{name[0, 48]}..." : name}"] }
    check('like.rb', '--request-rules', path('my.rules'), wrong: right, names: 19)
    assert_includes(recording.json['requests'].map { |r| r['framework'] }, 'log')
  end

  # Method and path of a request that a server alone tells, without what tells one object from the other.
  def test_paths
    right = { '?' => [UNKNOWN], 'Puma request' => ['GET /orders/:id/items'], 'Falcon request' => ['GET /health'],
              'Unicorn request' => ['POST /a-long-path-that/has/more/than/:id/bytes/:id/...'],
              'ShowBook' => ['ShowBook DELETE /books/:id'] }
    check('like.rb', '--request-paths', wrong: right, names: 19)
    refute_match(/secret|elsewhere|\d{3}/, recording.json['requests'].map { |r| r['name'] }.join(' '))
  end

  def test_none_without
    target = start('requests/like.rb', 0.5)
    recording = record(target, '-F', HERTZ, '--no-requests')
    assert_empty recording.json['requests']
    assert_empty recording.samples.map(&:request).compact
  end

  # A process that is forked has the frames of its parent, and is forked for one request only: its first samples may come
  # before rbpf has told the BPF programs so, and on a busy machine it ends before its classes are read. None is wrong.
  def test_forked
    check('forks.rb', names: 2, enough: 15, right: 0.1, brief: true)
    assert_operator recording.json['processes'].size, :>, 20
  end

  private

  # @wrong: what is right for a name that the program gives, other than that.
  def check(program, *options, wrong: {}, names: 1, enough: 50, right: RIGHT, command: ruby.command, brief: false, compiled: [])
    target = start_command([*command, *compiled, ruby.program("requests/#{program}"), SECONDS.to_s])
    recording = brief ? record_brief(target, *options) : record(target, '-F', HERTZ, *options)
    served = read_log(target)
    @right = wrong
    samples = recording.samples.select { |s| s.ts_ns > recording.samples.first.ts_ns + LEARNING_NS }
    within = samples.group_by { |sample| serving(served, sample) }
    outside = within.delete(nil) || []
    assert_operator within.size, :>, enough
    learned = served.values.flatten.group_by(&:name).transform_values { |list| list.map(&:to).min }
    within = within.reject { |request, _| request.from < learned[request.name] }
    assert_samples(within, right, partly: compiled.any?)
    assert_operator within.keys.map(&:name).uniq.size, :>=, names
    assert_outside(outside, served)
  end

  # Of processes that end while their memory is only being brought in, some walks fail.
  def record_brief(target, *options)
    rbpf = attach([target], '-F', HERTZ, *options)
    target.go
    target.wait_for('ready')
    assert_equal 0, rbpf.stop.code
    recording
  end

  # That the Ruby was told to compile says nothing: these samples have compiled code on their stacks.
  def assert_compiled
    merged = MergedRecording.new(recording.file)
    assert_operator merged.compiled.size, :>, merged.samples.size / 10, 'samples of compiled code'
  end

  def read_log(target)
    target.wait_for('ready')['served'].map { |line| Served.new(*line) }.sort_by(&:from).group_by(&:tid)
  end

  def serving(served, sample)
    (served[sample.tid] || []).bsearch { |s| s.to >= sample.ts_ns }.then { |s| s if s && s.from <= sample.ts_ns }
  end

  # @partly: names of which only the class could be read are right, too.
  def assert_samples(within, share, partly: false)
    all = within.sum { |_, samples| samples.size }
    seen = within.flat_map { |request, samples| samples.map { |s| [expected(request.name), s.request] } }
    other = seen.reject { |right, said| right.include?(said) }
    said = other.tally.sort_by(&:last).last(10).inspect
    assert(other.all? { |right, name| name == UNKNOWN || partial?(right, name) }, said)
    other = other.reject { |right, name| partial?(right, name) || (name == UNKNOWN && (right & OF_LOCALS).any?) } if partly
    assert_operator other.size, :<=, [all * (1 - share), UNKNOWN_IN_ANY_CASE].max, said
  end

  # Not all of it could be told.
  def partial?(right, name)
    name&.include?('[unknown]') && right.any? { |text| text&.start_with?(name[/\A[^\[]+/].to_s) }
  end

  def expected(name)
    return @right[name] if @right.key?(name) || @right.default_proc
    return [nil] if name == '-'

    [name]
  end

  # What is of no request by the program's notes is of none, or of the one right before or after.
  def assert_outside(outside, served)
    wrong = outside.reject do |sample|
      list = served[sample.tid] || []
      after = list.bsearch_index { |s| s.from >= sample.ts_ns } || list.size
      near = list[[after - 1, 0].max..after].flat_map { |s| [*expected(s.name), s.name] }
      # Its frame may be there, but not what its name is made of.
      near.concat(near.grep(String).map { |name| name.sub(/#.*/, '#[unknown]') })
      [nil, UNKNOWN, *OUTER, *near].include?(sample.request)
    end
    assert_empty(wrong.map { |s| s.to_h.slice(:tid, :ts_ns, :request) }.first(5))
  end
end
