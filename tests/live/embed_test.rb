# SPDX-License-Identifier: GPL-2.0-only
# frozen_string_literal: true

# A Ruby that another program loaded, in a thread that is not that program's first.

require_relative 'support'

class EmbedTest < LiveTest
  SECONDS = 1.5
  HZ = 1_999

  def setup
    super
    skip 'this Ruby is no library' unless ruby.library
    # It is compiled here, and has to be run with the C library there.
    skip 'that root has an older C library' if ruby.chroot? && !ruby.at_least?('3.2')
    missing 'no C compiler' unless system('cc', '--version', out: File::NULL, err: File::NULL)
    compile
  end

  def test_its_threads_have_stacks_and_the_program_has_none
    target = start_embedded
    samples = record(target, '-F', HZ).resolved
    said = target.wait_for('ready')
    refute_equal target.pid, said['main']
    assert_program(samples.select { |sample| sample.tid == target.pid })
    assert_thread(samples.select { |sample| sample.tid == said['main'] }, 'main', '<main>')
    assert_thread(samples.select { |sample| sample.tid == said['other'] }, 'other',
                  'block in <main>')
  end

  def test_dump_and_doctor
    target = start_embedded
    target.wait_for('waiting')
    threads = Rbpf.dump(target.pid).fetch('threads').to_h { |thread| [thread['tid'], thread] }
    assert_empty threads.fetch(target.pid).fetch('frames')
    stacks = threads.values.map { |thread| thread['frames'].map { |frame| frame['label'] } }
    assert_includes stacks, ['IO.select', 'Oracle.wait_for_test', '<main>']
    assert_equal 0, Rbpf.run('doctor', '-p', target.pid).code
    row = Rbpf.json('ps', '--json').find { |process| process['pid'] == target.pid }
    assert_equal ruby.version, row['ruby']
  end

  private

  def compile
    program = path('embed')
    source = File.join(Live::PROGRAMS, 'embed.c')
    assert system('cc', '-O1', '-o', program, source, '-ldl', '-pthread')
    @program = ruby.install(program)
  end

  def start_embedded
    start_command(ruby.run_command(@program, ruby.library, '--disable-gems',
                                   ruby.program('embedded.rb'), SECONDS.to_s))
  end

  def assert_program(samples)
    assert_operator samples.size, :>, SECONDS * HZ * 0.2
    assert_equal [['[native thread]']], samples.map { |s| s.frames.map(&:label) }.uniq
  end

  def assert_thread(samples, method, root)
    within = samples.select { |s| s.frames.any? { |f| f.label == "Embedded##{method}" } }
    assert_operator within.size, :>, 100
    within.each do |sample|
      labels = sample.frames.map(&:label)
      assert_equal ["block in Embedded##{method}", 'Array#each', "Embedded##{method}", root],
                   labels.last(4), labels.join(' < ')
      assert_empty labels.grep(/#(?:main|other)\z/) - labels.last(4)
    end
  end
end
