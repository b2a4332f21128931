# frozen_string_literal: true

# Whether the numbers are right: against the program's own clocks and the kernel's account.

require_relative 'support'

class AccuracyTest < LiveTest
  # Sampled time against measured time. At 2,000 samples the clocks agree far better than that.
  TOLERANCE = 0.02
  # self_error_ns bounds 95 % of the cases; twice that practically all of them, so that a failure
  # means something.
  ERRORS = 2

  def test_one_thread_at_999_hz
    assert_accurate(burn(2.4), 999)
  end

  def test_four_threads_at_999_hz
    assert_accurate(burn(2.4, 4), 999)
  end

  # 99 Hz is the default, and what most recordings are made with. Two processes make use of two CPUs.
  if RubyInstall.under_test.default?
    def test_two_processes_at_99_hz
      assert_accurate([burn(10.5), burn(10.5)].flatten, 99)
    end
  end

  def test_garbage_collection_has_its_callers
    target = start('churn.rb', 1.5)
    recording = record(target, '-F', 999)
    stacks = recording.samples.map { |sample| sample.frames.select(&:ruby?).map(&:label) }
    within = stacks.count { |labels| (labels & %w[Churn#allocate Churn#collect]).any? }
    assert_operator within, :>=, 0.95 * stacks.size, 'samples with the method that caused collections'
    collecting = stacks.count { |labels| labels.include?('Churn#collect') }
    assert_operator collecting, :>, 0.2 * stacks.size, 'samples below GC.start'
  end

  private

  def burn(seconds, threads = 1)
    [start('burn.rb', seconds, threads)]
  end

  def assert_accurate(targets, frequency)
    recording = record_all(targets, '-F', frequency)
    said = targets.map { |target| target.wait_for('spent') }
    summary = recording.summary
    assert_operator summary['samples'], :>=, 2_000
    own = said.sum { |truth| truth['cpu_ns'] }
    assert_in_epsilon own, summary['cpu_kernel_ns'], TOLERANCE, "the kernel's account against the program's"
    assert_in_epsilon summary['cpu_kernel_ns'], summary['cpu_sampled_ns'], TOLERANCE, 'sampled against kernel'
    assert_in_epsilon own, summary['cpu_sampled_ns'], TOLERANCE, "sampled against the program's clock"
    assert_equal summary['cpu_sampled_ns'], recording.samples.sum(&:weight_ns)
    spent = said.map { |truth| truth['spent'] }.inject { |a, b| a.merge(b) { |_, x, y| x + y } }
    spent.each { |label, ns| assert_row(recording, label, ns) }
  end

  def assert_row(recording, label, spent_ns)
    row = recording.row(label) or flunk "no row #{label}"
    error = row['self_error_ns']
    assert_operator error, :>, 0
    assert_operator error, :<, 0.25 * spent_ns, "#{label}: an error that says nothing"
    off = ->(ns) { "#{label}: #{ns} ns instead of #{spent_ns}, more than #{ERRORS} × #{error} off" }
    assert_in_delta spent_ns, row['self_ns'], ERRORS * error, off[row['self_ns']]
    assert_in_delta spent_ns, row['total_ns'], ERRORS * error, off[row['total_ns']]
  end

  def record_all(targets, *options)
    return record(targets[0], *options) if targets.size == 1

    targets.each { |target| target.wait_for('waiting') }
    rbpf = Rbpf::Running.new('record', '-p', targets.map(&:pid).join(','), '-o', path('rbpf.data'), *options)
    rbpf.wait_attached
    targets.each(&:go)
    targets.each { |target| target.wait_for('ready') }
    recorded = rbpf.stop
    assert_equal 0, recorded.code, recorded.err
    Recording.new(path('rbpf.data')).tap { |recording| assert_sane_recording(recording) }
  end
end
