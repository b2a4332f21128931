# SPDX-License-Identifier: GPL-2.0-only
# frozen_string_literal: true

# Threads and children that begin while a process is recorded.

require_relative 'support'

class FamilyTest < LiveTest
  METHODS = %w[in_thread in_renamed_thread in_thread_of_thread in_child in_grandchild
               in_thread_of_child].freeze

  def setup
    super
    @target = start('family.rb', 0.15)
    @recording = record(@target, '-F', 999)
  end

  def test_new_threads_are_sampled_under_their_names
    # The kernel keeps 15 bytes of a name. 2.7 does not cut a longer one, and so does not set it.
    long, plain = threads_of('Family#in_thread').map { |name| name[0, 14] }.sort
    assert_match(ruby.at_least?('3.0') ? /\Aa name of more\z/ : /\Afamily\.rb:\d+\z/, long)
    assert_equal 'plain worker', plain
    assert_equal 2, threads_of('Family#in_thread').size
    assert_equal ['renamed'], threads_of('Family#in_renamed_thread')
    assert_equal ['inner'], threads_of('Family#in_thread_of_thread')
    assert_equal ['of child'], threads_of('Family#in_thread_of_child')
  end

  def test_children_are_sampled
    pids = %w[in_thread in_child in_grandchild].to_h { |name| [name, pids_of("Family##{name}")] }
    assert_equal [@target.pid], pids['in_thread']
    assert_equal 1, pids['in_child'].size
    assert_equal 1, pids['in_grandchild'].size
    assert_equal pids['in_child'], pids_of('Family#in_thread_of_child')
    assert_equal 3, pids.values.flatten.uniq.size
    assert_equal 3, @recording.summary['processes']
  end

  def test_each_gets_the_cpu_time_it_used
    (METHODS - %w[in_thread]).each do |name|
      assert_in_epsilon 0.15e9, @recording.row("Family##{name}")['total_ns'], 0.15, name
    end
    assert_in_epsilon 0.30e9, @recording.row('Family#in_thread')['total_ns'], 0.1
  end

  def test_rows_by_thread_and_process
    threads = @recording.rows('--by', 'thread')
    assert_includes threads.map { |row| row['thread'] }, 'plain worker'
    assert_equal threads.sum { |row| row['self_ns'] }, @recording.summary['cpu_sampled_ns']
    processes = @recording.rows('--by', 'process')
    assert_equal 3, processes.size
    assert_equal processes.sum { |row| row['self_ns'] }, @recording.summary['cpu_sampled_ns']
  end

  # Its threads are, also those that begin later.
  def test_no_follow
    @recording = nil
    FileUtils.rm_f(path('rbpf.data'))
    target = start('family.rb', 0.15)
    recording = record(target, '-F', 999, '--no-follow')
    seen = recording.samples.flat_map { |sample| sample.frames.map(&:label) }.uniq
    assert_equal %w[in_thread in_renamed_thread in_thread_of_thread].map { |name| "Family##{name}" }.sort,
                 seen.grep(/\AFamily#in_/).sort
    assert_equal [target.pid], recording.samples.map(&:pid).uniq
    assert_equal 1, recording.summary['processes']
    assert_in_epsilon recording.totals['cpu_kernel_ns'], recording.totals['cpu_sampled_ns'], 0.1
  end

  private

  def samples_of(label)
    @recording.samples.select { |sample| sample.frames.any? { |frame| frame.label == label } }
  end

  def threads_of(label)
    samples_of(label).map(&:thread).uniq
  end

  def pids_of(label)
    samples_of(label).map(&:pid).uniq
  end
end
