# SPDX-License-Identifier: GPL-2.0-only
# frozen_string_literal: true

# Threads that run C code without the global VM lock while others have it. Ruby 2.7 has one
# execution context for all threads, that of the one that had the lock last: it must not be taken
# for theirs.

require_relative 'support'

class GvlTest < LiveTest
  SECONDS = 2
  HZ = 1_999
  # Of all threads of a kind, on a CPU: how long that takes depends on who else wants one, and on the lock.
  SEEN = 0.2 # s
  UNTIL_KILLED = 100 # s

  def test_without_the_lock_a_thread_has_its_own_stack
    target = start('gvl.rb', SECONDS)
    assert_own_stacks(record(target, '-F', HZ), target)
  end

  # Whose execution context is the first that rbpf sees?
  def test_attached_while_they_run
    target = start('gvl.rb', UNTIL_KILLED)
    target.go
    kinds = target.wait_for('tids')['tids'].group_by { |number, _| number.to_i.even? }.values.map { |tids| tids.map(&:last) }
    rbpf = Rbpf::Running.new('record', '-p', target.pid, '-F', HZ, '-o', path('rbpf.data')).wait_attached
    before = kinds.map { |tids| on_cpu(target, tids) }
    Live.wait_until('both kinds to run', pid: target.pid) do
      kinds.zip(before).all? { |tids, was| on_cpu(target, tids) - was > SEEN }
    end
    assert_equal 0, rbpf.stop.code, rbpf.err
    assert_own_in_dump(target)
    assert_sane_recording(recording)
    assert_own_stacks(recording, target)
  end

  if RubyInstall.under_test.mn_threads?
    # Such a thread gets a native thread of its own for that time, or another goes on with another.
    def test_on_shared_native_threads
      target = start('gvl.rb', SECONDS, env: { 'RUBY_MN_THREADS' => '1' })
      assert_own_stacks(record(target, '-F', HZ), target, shared: true)
    end
  end

  private

  # How long these threads have been on a CPU, by the kernel's account, in s.
  def on_cpu(target, tids)
    tids.sum { |tid| File.read("/proc/#{target.pid}/task/#{tid}/schedstat").to_i } / 1e9
  end

  def assert_own_stacks(recording, target, shared: false)
    numbers = target.wait_for('tids')['tids'].invert
    # From 3.4 on zlib comes back for the lock so often that its threads have little time, but for what each compresses at first.
    %w[ruby zlib].each do |kind|
      samples = recording.samples.select { |s| s.frames.any? { |f| f.label.include?(".#{kind}_") } }
      assert_operator samples.size, :>=, 50, kind
      samples.each { |sample| assert_own(sample, shared ? nil : numbers) }
    end
    assert_most_named(recording.samples.select { |s| numbers.key?(s.tid) }) unless shared
    assert_compressing(recording.samples)
  end

  def assert_own_in_dump(target)
    numbers = target.wait_for('tids')['tids'].invert
    own = Array.new(10) { Rbpf.dump(target.pid).fetch('threads') }.flatten.count do |thread|
      labels = thread.fetch('frames').map { |frame| frame['label'] }
      found = labels.filter_map { |label| label[/_(\d+)\z/, 1] }.uniq
      assert_includes [[], [numbers[thread['tid']]]], found, labels.join(' < ')
      found.any?
    end
    assert_operator own, :>=, 10, 'threads that were seen in their own methods'
  end

  def assert_own(sample, numbers)
    found = sample.frames.filter_map { |frame| frame.label[/_(\d+)\z/, 1] }.uniq
    assert_equal 1, found.size, sample.frames.join(' < ')
    assert_equal numbers[sample.tid], found[0], sample.frames.join(' < ') if numbers
  end

  # All that these threads do is to run those methods.
  def assert_most_named(samples)
    without = samples.reject { |s| s.frames.any? { |f| f.label.match?(/_\d+\z/) } }
    assert_operator without.size, :<, samples.size * 0.02,
                    without.map { |s| s.frames.first(3).join(' < ') }.tally
  end

  def assert_compressing(samples)
    deflating = samples.select { |s| s.frames.any? { |f| f.label.include?('.compress_') } }
    top = deflating.count { |s| s.frames[0].label.start_with?('Zlib::Deflate.deflate') }
    assert_operator top, :>, deflating.size * 0.7
  end
end
