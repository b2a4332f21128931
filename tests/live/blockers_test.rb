# SPDX-License-Identifier: GPL-2.0-only
# frozen_string_literal: true

# Who makes threads wait: who holds a Mutex, a Monitor or the GVL meanwhile, and who ends their waits; compared with what the
# programs measure by their own clocks.

require_relative 'waiting'

class BlockersTest < LiveTest
  include Waiting

  TICK = 1e9 / 99 # ns, between two of a thread that runs

  # Who makes others wait for a Mutex or a Monitor: by the methods in which they hold it, as the threads' own clocks say.
  def test_holders_of_locks
    target = start('convoy.rb', SECONDS)
    record_states([target])
    said = target.wait_for('caused')
    found = recording.rows('--event', 'lock-caused').to_h { |row| [row['label'], row['total_ns']] }
    said['caused'].each do |method, (least, most)|
      # From 3.3 on who takes the lock before the one it was meant for may never be noted (doc/states.md); more often
      # where that one has to wait for a CPU, too.
      missed = RubyInstall.under_test.mn_threads? ? said['waited'] * (crowded? ? 0.04 : 0.02) : 0
      got = found.fetch("Convoy##{method}", 0)
      slack = (most * SHARE) + missed + SLACK + stolen_ns
      assert_includes least - slack..most + slack, got, "#{method}: #{got}, not #{said}; #{found}"
    end
    assert_operator recording.rows('--event', 'lock-caused').sum { |row| row['self_ns'] }, :<=, said['waited'] * 1.05
  end

  # From 3.3 on who gives something to a thread puts it into the queue for the GVL, and it sleeps on: the ticks of who has the
  # GVL tell when that was, to half of the time between two of them.
  if RubyInstall.under_test.mn_threads?
    def test_what_is_woken_while_another_has_the_gvl
      target = start('late.rb', SECONDS)
      record_states([target])
      said = target.wait_for('late')
      waits = 0
      said['late'].each do |tid, late|
        states = states_of(Integer(tid))
        gvl = sum(states, 'gvl')
        slack = (late * SHARE) + SLACK + stolen_ns + (said['times'][tid] * TICK / 4)
        assert_operator gvl, :<=, late + slack, "#{tid}: #{said}; #{states}"
        assert_operator gvl + sum(states, 'wait-cpu'), :>=, late - slack, "#{tid}: #{said}; #{states}"
        waits += gvl
      end
      burned = total_of(recording.rows('--event', 'gvl-caused'), 'Late#burn')
      assert_operator burned, :>, waits * 0.8, said.to_s
      assert_operator waits, :>, SECONDS * 0.2e9, said.to_s
    end
  end

  # Who neither has a sample while it holds the lock nor leaves its CPU is charged when it gives the lock away.
  def test_a_holder_between_its_samples
    target = start('deflates.rb', SECONDS)
    record_states([target], '-F', '1', '--no-children')
    said = target.wait_for('waited')
    rows = recording.rows('--event', 'lock-caused')
    # When it is woken it may have to wait for a CPU, with which nobody is charged.
    slack = (said['waited'] * SHARE) + SLACK + stolen_ns + sum(states_of(said['tid']), 'wait-cpu')
    told = [said, rows.first(4).map { |row| row.values_at('label', 'total_ns') }].inspect
    assert_operator said['waited'], :>, 4 * SLACK, told
    assert_in_delta said['waited'], total_of(rows, 'Deflates#deflates'), slack, told
  end

  # A wait of who holds it is told in parts, and so is what it makes others wait meanwhile.
  def test_one_that_sleeps_and_holds_a_lock_as_the_recording_ends
    check_holder('sleeps')
  end

  # At each of its samples what others have waited is known.
  def test_one_that_computes_and_holds_a_lock_as_the_recording_ends
    row = check_holder('computes')
    ticks = recording.rows('--event', 'cpu').find { |of| of['label'] == 'Holds.computes' }['total_samples']
    # As it begins, for some turns with the GVL, nobody waits yet.
    assert_operator row['total_samples'], :>=, ticks * 0.7
  end

  # The program hangs, and then somebody looks: nobody has seen it lock, nor who began to wait.
  %w[Mutex Monitor].each do |kind|
    define_method("test_a_#{kind}_that_is_held_before_the_recording") do
      target = start('held_before.rb', kind, SECONDS)
      target.wait_for('waiting')
      sleep 0.5
      begun = Live.now * 1e9
      rbpf = attach([target], '--mode', 'states')
      attached = Live.now * 1e9
      target.go
      said = target.wait_for('given')
      assert_equal 0, rbpf.stop.code
      rows = recording.rows('--event', 'lock-caused')
      least, most = [attached, begun].map { |from| (3 * (said['given'] - from)) + (2 * (said['given'] - said['wanted'])) }
      slack = (most * SHARE) + SLACK + stolen_ns
      told = [least, most, rows.first(4).map { |row| row.values_at('label', 'total_ns') }].inspect
      assert_includes least - slack..most + slack, total_of(rows, 'HeldBefore.holds'), told
      # After it was given away they have it one after the other, for some ms.
      assert_operator total_of(rows, 'HeldBefore.wants'), :<=, (most * SHARE) + (2 * SLACK) + stolen_ns, told
      assert_operator total_of(rows, '[no Ruby frame]'), :<=, SLACK, told
    end
  end

  # So that a look of a moment tells, too.
  def test_a_lock_that_is_held_all_the_time
    target = start('held_before.rb', 'Mutex', SECONDS)
    target.wait_for('waiting')
    rbpf = attach([target], '--mode', 'states')
    attached = Live.now * 1e9
    sleep 0.7
    least = 3 * ((Live.now * 1e9) - attached)
    assert_equal 0, rbpf.stop.code
    got = total_of(recording.rows('--event', 'lock-caused'), 'HeldBefore.holds')
    assert_operator got, :>=, least - SLACK - stolen_ns
  end

  # What is known of an object holds until another one may stand in its place.
  def test_holders_of_locks_that_come_and_go
    target = start('locks_anew.rb', SECONDS)
    record_states([target])
    said = target.wait_for('waited')
    assert_operator said['places'], :<, said['met'], said
    rows = recording.rows('--event', 'lock-caused')
    # On a busy machine others may be charged with some of it (doc/states.md); if the wrong object were looked at, that would
    # be two thirds.
    assert_in_delta said['waited'], total_of(rows, 'Anew#holds'), (said['waited'] / 4) + SLACK + stolen_ns, said
  end

  # Who has the GVL makes threads wait that begin, though they say already that they run. Up to 3.2 nothing tells of
  # a thread that begins; later they may be charged with what passed since the last tick of who gave it away (doc/states.md).
  if RubyInstall.under_test.mn_threads?
    def test_holders_of_the_gvl_as_threads_begin
      target = start('begins.rb', SECONDS)
      record_states([target])
      least, most = target.wait_for('waited')['waited']
      rows = recording.rows('--event', 'gvl-caused')
      gvl = recording.rows('--event', 'wait', '--filter', 'state = gvl', '-n', '0').sum { |row| row['self_ns'] }
      said = "#{gvl}, #{least} to #{most}: #{rows.first(4).map { |row| row.values_at('label', 'total_ns') }}"
      slack = (most * 2 * SHARE) + SLACK + stolen_ns
      assert_includes least - slack..most + slack, gvl, said
      assert_operator total_of(rows, 'Begins.works'), :>=, least * 0.7, said
      assert_operator rows.sum { |row| row['self_ns'] }, :<=, most * 1.1, said
    end
  end

  # CPU time as 3 to 1, and each is charged with what the other waited. On a busy machine who gives the GVL away may
  # lose its CPU while it has the pthread mutex that guards the GVL: to wait for that one is shown as for a lock.
  def test_shares_of_the_gvl
    target = start('shares.rb', 1)
    record_states([target])
    said = target.wait_for('threads')['threads']
    caused = recording.rows('--event', 'gvl-caused', '-n', '0')
    used = recording.rows('--event', 'cpu', '-n', '0')
    { 'three' => 'one', 'one' => 'three' }.each do |method, other|
      label = "Shares.#{method}"
      assert_cpu_ns said[method]['cpu'], total_of(used, label), SHARE, label
      queued, lock = %w[wait-cpu lock].map { |state| sum(states_of(said[other]['tid']), state) }
      waited = said[other]['off'] - queued
      assert_in_delta waited, total_of(caused, label), (waited * SHARE) + SLACK + (queued / 10) + lock + stolen_ns, label
    end
    assert_in_delta 3, said['three']['cpu'].fdiv(said['one']['cpu']), 0.1
  end

  # Who wants the GVL for longer than a turn gives it away and waits, but for when it began; others come back and wait, or have
  # given it away by themselves.
  BEGINS = 400_000_000 # ns: three others have their turns before

  def test_turns_with_the_gvl
    target = start('turns.rb', SECONDS)
    record_states([target])
    tids = target.wait_for('threads')['threads']
    rows = recording.report('--states', '-n', '0')['rows'].to_h { |row| [row['tid'], row] }
    waits = tids.transform_values { |tid| [rows[tid]['states']['gvl'], rows[tid]['gvl_turn_ns']] }
    assert_operator waits['compute'].reduce(:-), :<, BEGINS, waits.inspect
    %w[pass nap zip].each { |name| assert_operator waits[name][1], :<, waits[name][0] / 10, waits.inspect }
    %w[pass nap].each { |name| assert_operator waits[name][0], :>, SECONDS * 0.2e9, waits.inspect }
  end

  # Who ends the waits of a thread, and how long these were: by what the waker does there, or that it is none.
  WAKERS = {
    'pipe' => 'IO#syswrite', 'socket' => 'IO#write', 'queue' => 'block in Scenarios.queue', 'mutex' => 'block in Scenarios.mutex',
    'sleep_' => '[interrupt]'
  }.freeze

  def test_who_ends_waits
    targets = WAKERS.to_h { |name, _| [name, start('states.rb', name, SECONDS)] }
    record_states(targets.values, '--waker')
    rows = recording.rows('--waker', '-n', '0')
    wrong = WAKERS.filter_map do |name, label|
      said = targets[name].wait_for('threads')['threads'][0]
      of_it = label == '[interrupt]' ? recording.rows('--waker', '-n', '0', '--tid', said['tid'].to_s) : rows
      # A method may have several blocks; the one that waits wakes, too, but hardly ever.
      found = of_it.filter_map { |row| row['total_ns'] if row['label'] == label }.max || 0
      wrong_waker(name, said, found, of_it)
    end
    assert_empty wrong, wrong.join("\n")
  end

  # One that is not recorded is told by its name and pid.
  def test_others_that_end_waits
    target = start('states.rb', 'pipe', SECONDS)
    record_states([target], '--waker', '--no-children')
    said = target.wait_for('threads')['threads'][0]
    rows = recording.rows('--waker', '-n', '0', '--tid', said['tid'].to_s)
    others = rows.select { |row| row['label'].match?(/\A\[\S+ \d+\]\z/) }
    wrong = wrong_waker('pipe', said, others.sum { |row| row['total_ns'] }, rows)
    assert_nil wrong
    # The picture of it has them, too.
    assert_includes Rbpf.read('flame', '--waker', '-i', recording.file), "<title>#{others.max_by { |row| row['total_ns'] }['label']}\n"
  end

  # What hardly runs has no samples of CPU time, which are what is shown by default.
  def test_nothing_but_waits
    said = blocker = nil
    # A tick can come in the little that it computes; and as its thread begins, one may wait a moment for the GVL.
    5.times do
      target = start('states.rb', 'sleep_', SECONDS)
      record_states([target], '-F', '1', '--no-children')
      said, blocker = [[], ['--blocker']].map { |options| Rbpf.run('report', *options, '-i', recording.file) }
      break unless said.code.zero? || blocker.code.zero?
    end
    assert_equal Recording::NO_SAMPLES, said.code, said.err
    assert_match(/ holds no samples of event 'cpu'\n  hint: '--event wall' takes the waits, too; /, said.err)
    assert_operator total_of(recording.rows('--event', 'wall'), 'Kernel#sleep'), :>, SECONDS * 0.9e9
    assert_equal Recording::NO_SAMPLES, blocker.code
    assert_match(/ holds no wait for a GVL or a Mutex that another thread had$/, blocker.err)
  end

  private

  # The row of who holds the Mutex in @method, until after the recording.
  def check_holder(method)
    target = start('holds.rb', method, SECONDS)
    rbpf = attach([target], '--mode', 'states')
    target.go
    wanted = target.wait_for('wanted')['wanted']
    least = (Live.now * 1e9) - wanted
    assert_equal 0, rbpf.stop.code
    most = (Live.now * 1e9) - wanted
    row = recording.rows('--event', 'lock-caused').find { |of| of['label'] == "Holds.#{method}" }
    assert_includes least - SLACK - stolen_ns..most, row.to_h['total_ns']
    row
  end

  # @found: how long the waits were that were ended as they should have been.
  def wrong_waker(name, said, found, rows)
    expected = said['waits'].values.sum
    # It comes to the end of its wait a little later than it is woken: see wrong_states() of states_test.rb.
    queued = sum(states_of(said['tid']), 'wait-cpu')
    # One wait, or two, may have no waker (doc/states.md).
    slack = (expected * SHARE) + SLACK + stolen_ns
    return if (expected - queued - slack..expected + slack).cover?(found)

    "#{name}: #{found}, not #{expected}, #{queued} queued; #{rows.first(5).map { |row| row.values_at('label', 'total_ns') }}"
  end
end
