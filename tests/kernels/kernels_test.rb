# SPDX-License-Identifier: GPL-2.0-only
# frozen_string_literal: true

# Whether another kernel, or another machine, does all that recording is made of. Run by run.sh under
# emulation, where a tick may come late or never, and each costs a lot: the numbers are as good as that.

require_relative '../live/support'

class KernelsTest < LiveTest
  TOLERANCE = 0.15
  # What is below Burner#heavy, outwards.
  CALLERS = ['block in Burner#run', 'Burner#measure', 'Burner#run'].freeze

  def test_doctor
    result = Rbpf.run('doctor')
    assert_equal 0, result.code, result.out + result.err
    refute_match(/FAIL/, result.out)
  end

  def test_record_a_process
    target = start('burn.rb', 4)
    record(target, '-F', 99)
    assert_cpu_time(target.wait_for('spent'))
    heavy = stacks.select { |labels| labels[0] == 'Burner#heavy' }
    refute_empty heavy
    assert_equal [CALLERS], heavy.map { |labels| labels[1, 3] }.uniq
    assert_equal 'Burner#heavy', recording.rows.max_by { |row| row['self_ns'] }['label']
  end

  # To attach takes most of a second of the emulated machine's time, which the first method has no name for.
  def test_record_a_command
    command = ruby.command(ruby.program('short.rb'), '4')
    result = Rbpf.run('record', '-F', 99, '-o', path('rbpf.data'), '--as-root', '--', *command)
    assert_equal 0, result.code, result.err
    assert_nothing_lost(recording)
    %w[Short#first Short#last].each do |label|
      assert_operator recording.row(label)['total_ns'], :>, 0.5e9, label
    end
  end

  def test_children_and_threads
    target = start('family.rb', 0.5)
    record(target, '-F', 99)
    pids = %w[in_thread in_child in_grandchild].map { |name| pids_of("Family##{name}") }
    assert_equal [[target.pid], 1, 1], [pids[0], *pids[1..].map(&:size)]
    assert_equal pids[1], pids_of('Family#in_thread_of_child')
    assert_equal 3, pids.flatten.uniq.size
  end

  # Waits are exact, so they are as good here as elsewhere.
  def test_states
    targets = %w[sleep_ pipe gvl].to_h { |name| [name, start('states.rb', name, 3)] }
    rbpf = attach(targets.values, '--mode', 'states')
    targets.each_value(&:go)
    said = targets.transform_values { |target| target.wait_for('ready')['threads'][0] }
    assert_equal 0, rbpf.stop.code
    said.each do |name, thread|
      rows = recording.rows('--by', 'state', '--tid', thread['tid'].to_s)
      thread['waits'].each do |state, ns|
        found = rows.sum { |row| row['state'] == state ? row['self_ns'] : 0 }
        assert_in_delta ns, found, (ns * TOLERANCE) + 0.1e9, "#{name}: #{state}, #{rows}"
      end
    end
  end

  # How a thread came into the kernel. What an emulated timer owes comes in soft interrupts, which are in `system`.
  def test_page_faults
    names = { 'minor_fault' => ['minor-fault', 0.2], 'system_calls' => ['system', 0.7] }
    targets = names.to_h { |name, _| [name, start('states.rb', name, 3)] }
    rbpf = attach(targets.values, '--mode', 'states')
    targets.each_value(&:go)
    targets.each_value { |target| target.wait_for('ready') }
    assert_equal 0, rbpf.stop.code
    rows = recording.rows('--states', '--by', 'process').to_h { |row| row.values_at('pid', 'states') }
    names.each do |name, (state, least)|
      states = rows.fetch(targets[name].pid).slice('system', 'minor-fault')
      assert_operator states[state], :>, 0.1e9, "#{name}: #{states}"
      assert_operator states[state], :>, states.values.sum * least, "#{name}: #{states}"
    end
  end

  # Processes that come and go, by the clocks of CPUs. To attach to a script may take here as long as it
  # lives.
  def test_all_ruby
    { 'forks' => ['Comings#child', 4], 'scripts' => ['Comings.child', 1] }.each do |what, (label, least)|
      pids = record_all(what, 4)['pids']
      rows = recording.samples.group_by(&:pid)
      known = pids.select { |pid| rows.fetch(pid).any? { |s| s.frames.any? { |f| f.label == label } } }
      assert_operator known.size, :>=, least, what
    end
  end

  private

  def record_all(what, count)
    FileUtils.rm_f(path('rbpf.data'))
    @recording = nil
    target = start('comings.rb', what, count, 0.5, options: ['--disable-gems'])
    target.wait_for('waiting')
    rbpf = Rbpf::Running.new('record', '--comm', 'comings.rb|class Comings', '-o',
                             path('rbpf.data')).wait_attached
    target.go
    said = target.wait_for('ready')
    assert_equal 0, rbpf.stop.code
    said
  end

  def stacks
    recording.samples.map { |sample| sample.frames.select(&:ruby?).map(&:label) }
  end

  def pids_of(label)
    recording.samples.select { |s| s.frames.any? { |f| f.label == label } }.map(&:pid).uniq
  end

  def assert_cpu_time(said)
    kernel, sampled = recording.summary.values_at('cpu_kernel_ns', 'cpu_sampled_ns')
    assert_in_epsilon said['cpu_ns'], kernel, TOLERANCE
    assert_in_epsilon kernel, sampled, TOLERANCE
  end

  # More ticks than elsewhere come while a page is being brought in, which takes so much longer.
  def assert_nothing_lost(recording)
    totals = recording.totals
    assert_operator totals['samples'], :>, 0
    assert_equal 0, totals['lost'], 'lost samples'
    assert_operator totals['failed'], :<=, 2 + (totals['samples'] / 50), 'walks that failed'
  end
end
