# SPDX-License-Identifier: GPL-2.0-only
# frozen_string_literal: true

# Processes that are gone before rbpf has looked at them: what their frames are called travels with
# the samples. To be certain that it looks too late, rbpf stands still while they live, on a machine that is busy.

require_relative 'support'

class BriefTest < LiveTest
  CHILDREN = 25
  SECONDS = 0.014 # of CPU time that each lives

  OWN = /\A(?:block in )?Brief::Of(\d+)[#.](?:work|again)_(\d+)\z/.freeze

  # A name that lies on a page that is not in memory at that moment cannot be copied in the kernel. That
  # is counted, and seldom. With the next sample it is tried again.
  NOT_IN_MEMORY = 0.08 # of the samples

  def setup
    super
    target = start('brief.rb', CHILDREN, SECONDS)
    rbpf = attach([target], '-F', 999)
    rbpf.signal(:STOP)
    beside_busy_loops { @pids = lives_of(target) }
    rbpf.signal(:CONT)
    result = rbpf.stop
    assert_equal 0, result.code, result.err
    assert_nothing_lost(recording, forks: CHILDREN)
    @samples = recording.samples.select { |sample| @pids.key?(sample.pid) }
  end

  def test_all_is_named_and_nothing_wrongly
    unresolved = @samples.select(&:unresolved?)
    faults = recording.summary['counters']['names_copied_in_part']
    assert_operator unresolved.size, :<=, faults.zero? ? 0 : NOT_IN_MEMORY * @samples.size,
                    "of #{@samples.size}, #{faults} names not in memory: " +
                    unresolved.first(3).map { |s| s.frames.join(' < ') }.inspect
    wrong = @samples.filter_map { |sample| problem(sample) }
    assert_empty wrong.first(3), "#{wrong.size} of #{@samples.size} samples are wrong"
  end

  def test_each_child_is_seen_in_its_own_code
    labels = @samples.group_by(&:pid).transform_values do |samples|
      samples.flat_map { |sample| sample.frames.map(&:label) }.uniq
    end
    @pids.each do |pid, n|
      seen = labels.fetch(pid)
      ["Brief::Of#{n}#work_#{n}", "block in Brief::Of#{n}#work_#{n}", "Brief::Of#{n}.again_#{n}",
       'Array#each'].each { |label| assert_includes seen, label, "child #{n}" }
    end
  end

  private

  def lives_of(target)
    target.go
    target.wait_for('ready', BUSY_PATIENCE)['pids'].to_h { |number, pid| [pid, Integer(number)] }
  end

  def problem(sample)
    number = @pids.fetch(sample.pid)
    bad = sample.frames.find { |frame| wrong?(frame, number) }
    "#{bad} in child #{number}: #{sample.frames.join(' < ')}" if bad
  end

  def wrong?(frame, number)
    numbers = frame.label.scan(/\d+/).map(&:to_i)
    if frame.label.match?(OWN)
      lines = ((1000 * number) + 1)..((1000 * number) + 11)
      return numbers != [number, number] || frame.path != "brief_#{number}.rb" ||
             !lines.cover?(frame.line)
    end
    frame.label.include?('Brief::') || (frame.path.include?('brief_') && frame.path != "brief_#{number}.rb")
  end
end
