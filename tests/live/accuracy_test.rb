# SPDX-License-Identifier: GPL-2.0-only
# frozen_string_literal: true

# Whether the numbers are right: against the program's own clocks and the kernel's account.

require_relative 'support'

class AccuracyTest < LiveTest
  # Sampled time against measured time. At 2,000 samples the clocks agree far better than that.
  TOLERANCE = 0.02
  # The perf event's clock counts a part of each context switch and of interrupts that the program's own
  # does not: 2.5 % for a process that has a tenth of a CPU and is switched every few milliseconds.
  SHARED_TOLERANCE = 0.05
  # A process that ran for less of the time had to share its CPU.
  ALONE = 0.9
  # self_error_ns bounds 95 % of the cases; twice that practically all of them, so that a failure
  # means something.
  ERRORS = 2

  def test_one_thread_at_999_hz
    assert_accurate([burn(2.4)], 999)
  end

  def test_four_threads_at_999_hz
    assert_accurate([burn(2.4, 4)], 999)
  end

  # 99 Hz is the default, and what most recordings are made with. Two processes use two CPUs.
  if RubyInstall.under_test.default?
    def test_two_processes_at_99_hz
      assert_accurate([burn(11.5), burn(11.5)], 99)
    end
  end

  # After twenty seconds there are fewer samples, each of which stands for more; and what the clocks have had of their periods
  # by then counts.
  if RubyInstall.under_test.default?
    def test_fewer_samples_where_they_are_too_dear
      targets = Array.new(Etc.nprocessors) { |i| burn(31, 1 + (i * 2)) }
      recording = record(targets, '--max-cost', '0.0001')
      stolen = stolen_ns
      summary = recording.summary
      assert_equal [99, 24], summary.values_at('frequency', 'lowest_hz')
      own = targets.sum { |target| target.wait_for('spent')['cpu_ns'] }
      assert_in_epsilon own, summary['cpu_sampled_ns'], SHARED_TOLERANCE + (stolen / own), "sampled against the program's clock"
      often, seldom = recording.samples.map(&:value).partition { |value| value < 25e6 }
      assert_operator seldom.sum, :>, 0.1 * own
      assert_in_epsilon 4, seldom.sum.fdiv(seldom.size) / often.sum * often.size, 0.1, 'what samples stand for'
      assert_includes Rbpf.read('report', '-i', recording.file), ' at 24 to 99 Hz (cpu)'
    end
  end

  # Half of each period of the sampling clock in one method, half in another.
  def test_a_program_in_step_with_the_clock
    target = start('lockstep.rb', 3, 99)
    recording = record(target, '-F', 99)
    target.wait_for('spent')['spent'].each do |label, ns|
      row = recording.row(label)
      sampled = row ? row['total_ns'] : 0
      assert_cpu_ns ns, sampled, 0.3, label # 150 samples: five standard deviations
    end
  end

  def test_garbage_collection_has_its_callers
    target = start('churn.rb', 1.5)
    recording = record(target, '-F', 999)
    stacks = recording.samples.map { |sample| sample.frames.select(&:ruby?).map(&:label) }
    within = stacks.count { |labels| (labels & %w[Churn#allocate Churn#collect]).any? }
    assert_operator within, :>=, 0.95 * stacks.size, 'samples with what caused collections'
    collecting = stacks.count { |labels| labels.include?('Churn#collect') }
    assert_operator collecting, :>, 0.2 * stacks.size, 'samples below GC.start'
  end

  private

  def burn(seconds, threads = 1)
    start('burn.rb', seconds, threads)
  end

  def assert_accurate(targets, frequency)
    recording = record(targets, '-F', frequency)
    stolen = stolen_ns
    said = targets.map { |target| target.wait_for('spent') }
    summary = recording.summary
    assert_operator summary['samples'], :>=, 2_000
    own = said.sum { |truth| truth['cpu_ns'] }
    kernel, sampled = summary.values_at('cpu_kernel_ns', 'cpu_sampled_ns')
    shared = said.any? { |truth| truth['cpu_ns'] <= ALONE * truth['wall_ns'] }
    tolerance = shared ? SHARED_TOLERANCE : TOLERANCE
    tolerance += stolen / own
    assert_in_epsilon own, kernel, tolerance, "the kernel's account against the program's clock"
    assert_in_epsilon kernel, sampled, tolerance, "sampled against the kernel's account"
    assert_in_epsilon own, sampled, tolerance, "sampled against the program's clock"
    assert_equal sampled, recording.samples.sum(&:value)
    # Each clock's period is up to a tenth longer or shorter than was asked for.
    assert_in_epsilon own * frequency / 1e9, summary['samples'], 0.13 + tolerance, 'samples at that frequency'
    in_kernel = recording.json['samples'].count { |sample| sample['flags'].include?('kernel') }
    assert_operator in_kernel, :<, summary['samples'] * 0.2, 'it burns CPU in user mode'
    spent = said.map { |truth| truth['spent'] }.inject { |a, b| a.merge(b) { |_, x, y| x + y } }
    spent.each { |label, ns| assert_row(recording, label, ns, stolen + (shared ? ns * SHARED_TOLERANCE : 0)) }
  end

  # @counted_ns: what the perf event's clock may have counted, and the program's not.
  def assert_row(recording, label, spent_ns, counted_ns)
    row = recording.row(label) or flunk "no row #{label}"
    error = row['self_error_ns']
    assert_operator error, :>, 0
    assert_operator error, :<, 0.25 * spent_ns, "#{label}: an error that says nothing"
    %w[self_ns total_ns].each do |time|
      assert_in_delta spent_ns, row[time], (ERRORS * error) + counted_ns, "#{time} of #{label}, error #{error}"
    end
  end
end
