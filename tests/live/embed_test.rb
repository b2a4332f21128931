# SPDX-License-Identifier: GPL-2.0-only
# frozen_string_literal: true

# A Ruby that another program has loaded, be it in its first thread or in another, shows the stacks
# that Ruby itself says (see oracle_test.rb); that program's own threads show none, ever.

require_relative 'oracle'
require_relative 'support'

class EmbedTest < LiveTest
  SPIN = 0.005 # s
  HZ = 1_999

  # A scenario without a sample says something about the machine: it was taken away for so long.
  SELDOM = 0.02

  # Threads of the program that never run Ruby, by their names.
  STRANGERS = %w[stranger visitor].freeze

  # A Ruby that is no library cannot be loaded: nothing to test then, and nothing that is missing.
  if RubyInstall.under_test.library
    %w[first other].each do |where|
      define_method("test_dump_of_a_ruby_in_the_#{where}_thread") { assert_dumps(where) }
      define_method("test_record_of_a_ruby_in_the_#{where}_thread") { assert_recording(where) }
    end
  end

  # Nobody executes a Ruby: that the library is mapped tells.
  if RubyInstall.under_test.library
    def test_record_of_all_rubies_while_a_program_loads_one
      rbpf = Rbpf::Running.new('record', '--comm', 'embed', '-F', 499, '-o', path('rbpf.data')).wait_attached
      target = start_embedded('first', 'heartbeat.rb')
      target.wait_for('waiting')
      sleep 1
      result = rbpf.stop
      assert_equal 0, result.code, result.err
      assert_includes recording.json['processes'].map { |p| p.values_at('pid', 'ruby') }, [target.pid, ruby.version]
      seen = recording.samples_with('Heartbeat#beat').size
      assert_operator seen, :>, 10
    end
  end

  def setup
    super
    compile
  end

  private

  # It is compiled here, and has to be run with the C library that Ruby has. A root may have an
  # older glibc, which lacks the versions of most functions for threads and for loading that ours
  # has since 2.34: hence it is linked with the root's. What little it takes from our headers is
  # the same in all of them.
  def compile
    compiler = musl? ? 'musl-gcc' : 'cc'
    missing "no #{compiler}" unless system(compiler, '--version', out: File::NULL, err: File::NULL)
    source = File.join(Live::PROGRAMS, 'embed.c')
    assert system(compiler, '-O1', '-o', path('embed'), source, *libraries)
    @program = ruby.install(path('embed'))
  end

  def musl?
    IO.popen(ruby.command('-e', 'print RUBY_PLATFORM'), &:read).end_with?('-musl')
  end

  def libraries
    return %w[-ldl -pthread] unless ruby.chroot?

    # Those libraries need private parts of the loader, which comes with them.
    ['-nodefaultlibs', '-Wl,--allow-shlib-undefined',
     *%w[libpthread.so.0 libdl.so.2 libc.so.6].map { |name| library(name) }]
  end

  def library(name)
    Dir[File.join(ruby.root, 'usr/lib{,/*}', name)].first || missing("no #{name} in #{ruby.root}")
  end

  def start_embedded(where, program, *arguments, options: [])
    start_command(ruby.run_command(@program, where, ruby.library, *options, ruby.program(program),
                                   *arguments.map(&:to_s)))
  end

  def assert_dumps(where)
    Oracle::MAIN_PROGRAMS.each do |name|
      target = start_embedded(where, "main/#{name}.rb")
      target.wait_for('ready')
      assert_dump(target, Oracle.truths(target).first, where)
      target.dispose
    end
  end

  def assert_dump(target, truth, where)
    assert_equal where == 'first', truth.tid == target.pid
    threads = Rbpf.dump(target.pid).fetch('threads')
    stacks = threads.to_h do |thread|
      [thread['tid'], thread['frames'].map { |frame| Frame.from(frame) }]
    end
    difference = Stacks.difference(Oracle.expected(truth, 'main', ruby),
                                   Stacks.as_ruby_shows(stacks.fetch(truth.tid)))
    assert_nil difference, truth.name
    assert_empty stacks.fetch(target.pid) unless where == 'first'
    strangers = threads.select { |thread| STRANGERS.include?(thread['name']) }
    assert_equal STRANGERS, strangers.map { |thread| thread['name'] }.sort
    strangers.each { |thread| assert_empty stacks.fetch(thread['tid']), thread['name'] }
  end

  def assert_recording(where)
    target = start_embedded(where, 'oracle.rb', 'spin', SPIN, options: Oracle.options)
    samples = record(target, '-F', HZ).samples
    strangers, others = samples.partition { |sample| STRANGERS.include?(sample.thread) }
    assert_strangers(strangers)
    assert_scenarios(target, others.reject(&:unresolved?), where)
  end

  def assert_strangers(samples)
    samples = samples.group_by(&:thread)
    assert_equal STRANGERS, samples.keys.sort
    samples.each do |name, list|
      assert_operator list.size, :>, 200, name
      assert_equal [['[native thread]']], list.map { |s| s.frames.map(&:label) }.uniq, name
    end
  end

  # All samples of scenarios are of the one thread that runs Ruby.
  def assert_scenarios(target, samples, where)
    held = held_samples(samples)
    truths = Oracle.truths(target)
    assert_operator truths.size, :>, 300
    tid = truths[0].tid
    assert_equal where == 'first', tid == target.pid
    problems = truths.filter_map { |truth| problem(truth, held.fetch(truth.name, []), tid) }
    assert problems.empty?, "#{problems.size} of #{truths.size} scenarios:\n#{problems.join("\n")}"
    assert_operator truths.count { |truth| !held.key?(truth.name) }, :<, truths.size * SELDOM
  end

  # {scenario => [[tid, stack from the checkpoint outwards]…]}
  def held_samples(samples)
    held = Hash.new { |hash, key| hash[key] = [] }
    samples.each do |sample|
      frames = Stacks.as_ruby_shows(sample.frames)
      scenario = frames.filter_map { |f| f.label[/\AOracle\.spin_(\w+)\z/, 1] }.first or next
      held[scenario] << [sample.tid, frames.drop_while { |f| f.label != 'Oracle.checkpoint' }]
    end
    held
  end

  def problem(truth, held, tid)
    expected = Oracle.expected(truth, 'spin', ruby)
    found = held.uniq.filter_map do |on, stack|
      next "on thread #{on} instead of #{tid}" if on != tid

      deep = truth.name.match?(Oracle::DEEP)
      deep ? Stacks.difference_if_cut(expected, stack) : Stacks.difference(expected, stack)
    end.first
    "#{truth.name}: #{found}" if found
  end
end
