# SPDX-License-Identifier: GPL-2.0-only
# frozen_string_literal: true

# Which trace and span a sample is of: programs publish that as OTEP 4947 says, and note it themselves.

require 'zlib'
require_relative 'support'

class SpansTest < LiveTest
  HERTZ = 999
  SECONDS = 4
  RIGHT = 0.995
  # Until rbpf has looked for the variable: it does so at the first time that it keeps house.
  LEARNING_NS = 1.2e9

  Span = Struct.new(:tid, :from, :to, :ids)

  # How a library gets at its variable.
  MODELS = {
    'global_dynamic' => %w[-ftls-model=global-dynamic],
    'descriptors' => RUBY_PLATFORM.start_with?('x86_64') ? %w[-mtls-dialect=gnu2] : %w[-mtls-dialect=desc],
    'initial_exec' => %w[-ftls-model=initial-exec],
    # What it needs for none of its own: the dynamic linker says which module it is.
    'bound' => %w[-ftls-model=global-dynamic -Wl,-Bsymbolic],
  }.freeze

  MODELS.each do |name, options|
    define_method("test_#{name}") { check(options, 'change') }
  end

  def test_pointer_that_changes
    check(MODELS['descriptors'], 'swap')
  end

  # More than fits into what glibc has left of static TLS: each thread has it in a block of its own.
  def test_large_block
    check(MODELS['descriptors'] + %w[-DPADDING=65536], 'change')
  end

  def test_loaded_later
    check(MODELS['global_dynamic'], 'change', 'late', learning: 7.8e9, seconds: 10)
  end

  def test_forked
    # The child is looked at a second after the fork, when rbpf next keeps house.
    check(MODELS['descriptors'], 'swap', 'fork', learning: 2.8e9, seconds: 6)
  end

  # Each sample has a span of the program's, in pprof, too.
  def test_exports
    check(MODELS['initial_exec'], 'change')
    spans = recording.json['spans'].drop(1).map { |s| s.values_at('trace_id', 'span_id').join }
    assert_equal spans, spans.uniq
    assert_empty spans - @spans.map(&:ids)
    Rbpf.read('export', '-f', 'pprof', '-i', recording.file, '-o', path('spans.pb.gz'))
    text = Zlib.gunzip(File.binread(path('spans.pb.gz')))
    spans.each { |ids| assert_includes text, ids[0, 32] }
    assert_filtered
    assert_equal of_traces, Rbpf.json('report', '--by', 'trace', '--json', '-n', 0, '-i', recording.file)['rows'].to_h { |r| r.values_at('trace_id', 'self_ns') }
  end

  if RubyInstall.under_test.mn_threads?
    # Who has unlocked a Mutex is charged later, with the stack and the span that it had when it held it.
    def test_late_charges_of_a_lock
      target = start('otel/late_charge.rb', library(MODELS['descriptors']), SECONDS)
      rbpf = attach([target], '--mode', 'states', '-F', HERTZ)
      target.go
      said = target.wait_for('ready')
      assert_equal 0, rbpf.stop.code
      charged = charges_in('LateCharge#holds', recording.json['meta']['start_ns'] + LEARNING_NS)
      late = charged.select { |ts, _| said['after'].any? { |from, to| (from..to).cover?(ts) } }
      assert_operator late.size, :>, 20
      assert_equal [said['holding']], charged.map(&:last).uniq, charged.map(&:last).tally
    end
  end

  def test_none_without
    target = start('requests/like.rb', 0.5)
    recording = record(target, '-F', HERTZ)
    assert_empty recording.json['spans']
    assert_equal 0, recording.totals['counters']['thread_contexts_unread']
    said = Rbpf.run('report', '--filter', 'trace = 4bf92f3577b34da6a3ce929d0e0e4736', '-i', recording.file)
    assert_equal 6, said.code
    assert_match(/has no traces: no process in it published/, said.err)
  end

  LIES = "lies#{"\0" * 12}lies#{"\0" * 4}".unpack1('H*')

  # Pointers to anything, a size that lies, and a record that another thread changes while it is read: what is told is in
  # the process' memory, whole, and said to be valid there.
  def test_misbehaving
    target = start('otel/spans.rb', library(MODELS['descriptors']), 2, 'change', 'misbehave')
    record(target, '-F', HERTZ)
    told = samples.filter_map { |s| ids_of(s) }.tally
    # A busy machine leaves it a part of its CPU.
    assert_operator told.delete(LIES).to_i, :>, 20
    assert_operator told.size, :>, 20
    assert_empty(told.keys.reject { |ids| ids == ids[0, 2] * 24 })
    assert_operator recording.totals['counters']['thread_contexts_unread'], :>, 100
  end

  private

  def library(options)
    missing 'the library needs gcc' unless system('gcc', '--version', out: File::NULL)
    source = File.join(Live::PROGRAMS, 'otel/spans.c')
    built = system('gcc', '-O2', '-fPIC', '-shared', *options, '-o', path('spans.so'), source)
    missing "gcc with #{options.join(' ')}" unless built
    ruby.install(path('spans.so'))
  end

  def check(options, way, *more, learning: LEARNING_NS, seconds: SECONDS)
    target = start('otel/spans.rb', library(options), seconds, way, *more)
    record(target, '-F', HERTZ)
    @spans = target.wait_for('ready')['spans'].map { |span| Span.new(*span) }
    by_tid = @spans.sort_by(&:from).group_by(&:tid)
    begin_ns = recording.json['meta']['start_ns'] + learning
    seen = samples.select { |s| s['ts_ns'] > begin_ns }.filter_map { |s| compare(by_tid, s) }
    assert_operator seen.size, :>, 100 # some 2,000, of which a busy machine leaves a few hundred
    wrong = seen.reject { |right, said| said.nil? || right == said }
    assert_empty wrong.first(5), "#{wrong.size} of #{seen.size} are wrong"
    missed = seen.count { |right, said| right != said }
    assert_operator missed, :<=, seen.size * (1 - RIGHT)
  end

  # Of what was charged for a Mutex after @from_ns with this method on the stack, the times and spans.
  def charges_in(method, from_ns)
    json = Rbpf.json('export', '-f', 'json', '--stack', 'ruby', '--event', 'lock-caused', '-i', recording.file)
    json['samples'].filter_map do |s|
      next if s['ts_ns'] < from_ns || labels_of(json, s['stack']).none?(method)

      [s['ts_ns'], s['span'] ? json['spans'][s['span']].values_at('trace_id', 'span_id').join : 'none']
    end
  end

  def labels_of(json, stack)
    labels = []
    while (frame = json['stacks'][stack]['frame'])
      labels << json['frames'][frame]['label']
      stack = json['stacks'][stack]['parent']
    end
    labels
  end

  # By traces and spans of the recording.
  def assert_filtered
    all = samples.sum { |s| s['value'] }
    of = samples.group_by { |s| ids_of(s) }.transform_values { |list| list.sum { |s| s['value'] } }
    some = of.keys.compact.first(3)
    some.each { |ids| assert_equal of[ids], shown("span = #{ids[32..]} and trace = #{ids[0, 32].upcase}") }
    traces = some.map { |ids| ids[0, 32] }.uniq
    inside = of.sum { |ids, value| ids && traces.include?(ids[0, 32]) ? value : 0 }
    assert_equal inside, shown(traces.map { |id| "trace = #{id}" }.join(' or '))
    assert_equal all - inside, shown(traces.map { |id| "trace != #{id}" }.join(' and '))
  end

  # Time by trace, '' being that of none.
  def of_traces
    samples.group_by { |s| ids_of(s).to_s[0, 32] }.transform_values { |list| list.sum { |s| s['value'] } }
  end

  def shown(filter)
    Rbpf.json('report', '--filter', filter, '--json', '-i', recording.file)['summary']['selected_ns']
  end

  # What the program says of the sample, and what rbpf does; nil: the thread was changing it.
  def compare(by_tid, sample)
    list = by_tid[recording.threads[sample['thread']]['tid']] or return
    span = list.bsearch { |s| s.to >= sample['ts_ns'] }
    span && span.from <= sample['ts_ns'] ? [span.ids, ids_of(sample)] : nil
  end

  def ids_of(sample)
    sample['span'] && recording.json['spans'][sample['span']].values_at('trace_id', 'span_id').join
  end

  def samples
    recording.json['samples']
  end
end
