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

  # What perf tells of the period of a clock that was changed is the kernel's own affair: src/engine/clock_events.c.
  def test_fewer_samples
    targets = Array.new(Etc.nprocessors) { start('burn.rb', 23) }
    record(targets, '--max-cost', '0.0001')
    assert_equal 24, recording.summary['lowest_hz']
    own = targets.sum { |target| target.wait_for('spent')['cpu_ns'] }
    assert_in_epsilon own, recording.summary['cpu_sampled_ns'], TOLERANCE
    often, seldom = recording.samples.map(&:value).partition { |value| value < 25e6 }
    assert_operator seldom.size, :>, 20
    assert_in_epsilon 4, seldom.sum.fdiv(seldom.size) / often.sum * often.size, 0.2
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

  # Waits of each kind, as the threads' own clocks and the kernel's account say. Each is in a process of its own, as it would be
  # in the way of others that want the same GVL. Emulation makes all of it slow, but not waits less exact: clocks and
  # recording are by the guest's time. On one CPU they differ by 0.05 %, but for fsync(): see LONG_CALLS. Of two emulated CPUs
  # one may take a while to notice that a thread was woken for it, which only then is queued by the kernel's account.
  STATES = %w[sleep_ pipe socket select_several select_sockets child mutex flock stopped fsync timeout held gvl].freeze
  STATE_SECONDS = 3
  STATE_TOLERANCE = 0.02
  # A thread is queued before the program runs that notes it: where another CPU wakes it, 0.5 ms of the guest's time before.
  STATE_SLACK = 10_000_000 * Etc.nprocessors # ns
  # A thread ends after it has asked how long it was queued, and all of them do so at once, on one CPU.
  ENDING = 300_000_000 # ns
  # Of the waits in long system calls, which the thread took for such, but was on a CPU: what the kernel accounted to another
  # thread (doc/states.md). On two CPUs that were up to 28 %.
  LONG_CALLS = 0.5

  def test_states
    target = start('states.rb', STATES.join(','), STATE_SECONDS)
    rbpf = attach([target], '--mode', 'states')
    target.go
    said = target.wait_for('ready', 5 * Live::PATIENCE)['threads']
    assert_equal 0, rbpf.stop.code
    assert_equal(STATES, said.map { |thread| thread['scenario'] })
    wrong = said.flat_map { |thread| wrong_states(thread) }
    assert_empty wrong, wrong.join("\n")
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

  # What is other than the thread said.
  def wrong_states(said)
    rows = recording.rows('--by', 'state', '--tid', said['tid'].to_s)
    found = rows.each_with_object(Hash.new(0)) { |row, sums| sums[row['state']] += row['self_ns'] }
    held = Hash.new(0).update(rows.select { |row| row['gvl_held'] == 1 }.to_h { |row| row.values_at('state', 'self_ns') })
    queued = said['queued']
    less = said['unsure'] + [found['wait-cpu'] - queued, 0].max
    # Of what it waits in, and what runs then, a page may have to come from the disk.
    less += found['fault']
    # What waited for something else goes on when it has got the GVL.
    less += found['gvl'] unless said['waits'].key?('gvl')
    less += said['waits']['disk'] * LONG_CALLS if said['waits'].key?('disk')
    wrong = said['waits'].reject { |state, ns| measured?(ns - less..ns, found[state]) }
    wrong.update(said['held'].reject { |state, ns| measured?(ns - less..ns, held[state]) })
    wrong['queued'] = queued unless measured?(queued..queued + ENDING, found['wait-cpu'])
    wrong.map { |what, ns| "#{said['scenario']}: #{what} #{ns}, not as in #{found}; it said #{said}" }
  end

  def measured?(range, found)
    slack = (range.end * STATE_TOLERANCE) + STATE_SLACK
    (range.begin - slack..range.end + slack).cover?(found)
  end

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
