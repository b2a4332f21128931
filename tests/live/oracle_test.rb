# SPDX-License-Identifier: GPL-2.0-only
# frozen_string_literal: true

# Ruby itself is the oracle: for some 350 states of a program (tests/programs/oracle.rb) rbpf has to
# show exactly the stack that Ruby shows, each frame with its label, path and line of execution.

require_relative 'oracle'
require_relative 'support'

class OracleTest < LiveTest
  # CPU time that each scenario burns, and how often that is sampled.
  SPIN = 0.01 # s
  HZ = 1_999
  # A stack of thousands of frames is among them. Where the collector is not known, each sample of it sends them all.
  RING = '64M'
  # Enough samples of a scenario to compare something, however noisy the machine.
  ENOUGH = 3

  def test_dump_of_sleeping_threads
    assert_dump_matches
  end

  def test_dump_of_main_thread
    Oracle.main_programs(ruby).each do |name, argv|
      target = start_command(argv)
      target.wait_for('ready')
      truth = Oracle.truths(target).first
      thread = Rbpf.dump(target.pid).fetch('threads').find { |t| t['tid'] == target.pid }
      expected = Oracle.expected(truth, 'main', ruby)
      assert_nil Stacks.difference(expected, frames_of(thread)), name
    end
  end

  def test_record_of_main_thread
    assert_samples_match('spin')
  end

  def test_record_of_threads_at_once
    assert_samples_match('threads')
  end

  # Every frame is one of compiled code.
  RubyInstall.under_test.jits.each do |name, options|
    define_method("test_dump_of_sleeping_threads_with_#{name}") do
      assert_dump_matches(*options)
    end

    define_method("test_record_of_main_thread_with_#{name}") do
      assert_samples_match('spin', *options)
    end

    define_method("test_record_of_threads_at_once_with_#{name}") do
      assert_samples_match('threads', *options)
    end
  end

  # Many Ruby threads on few native ones, and on now this, now that. Ruby 3.4.11 itself crashes so in four of ten runs,
  # also when nobody looks at it, and in more of them on a busy machine.
  CRASHES = 12
  if RubyInstall.under_test.mn_threads?
    def test_record_of_threads_on_shared_native_threads
      tries ||= 0
      assert_samples_match('threads', env: { 'RUBY_MN_THREADS' => '1' })
    rescue RuntimeError => e
      raise unless e.message.include?('SIGSEGV') && (tries += 1) < CRASHES

      retry
    end
  end

  private

  # ZJIT's code has a native frame for each method, and some scenarios are deep.
  ROOM = { 'RUBY_THREAD_MACHINE_STACK_SIZE' => (8 << 20).to_s }.freeze

  def start_oracle(*arguments, options: [], env: {})
    start('oracle.rb', *arguments, options: Oracle.options + options, env: ROOM.merge(env))
  end

  def frames_of(dumped_thread)
    Stacks.as_ruby_shows(dumped_thread.fetch('frames').map { |frame| Frame.from(frame) })
  end

  def assert_dump_matches(*options)
    target = start_oracle('sleep', options: options)
    target.wait_for('ready')
    threads = Rbpf.dump(target.pid).fetch('threads').to_h { |thread| [thread.fetch('tid'), thread] }
    each_truth(target, 'sleep') do |truth, expected|
      thread = threads.fetch(truth.tid) { next 'its thread is not in the dump' }
      compare(truth, expected, frames_of(thread))
    end
  end

  # Every sample taken within a checkpoint has to have the scenario's frames below it, and be of the
  # scenario's thread.
  def assert_samples_match(mode, *options, env: {})
    target = start_oracle(mode, SPIN, options: options, env: env)
    recording = record(target, '-F', HZ, '--ring', RING)
    held = held_samples(recording, target.pid)
    each_truth(target, mode) do |truth, expected|
      tids, stacks = held.fetch(truth.name, []).transpose
      next "only #{stacks.to_a.size} samples" if stacks.to_a.size < ENOUGH
      next "on threads #{tids.uniq}" if env.empty? && tids.uniq != [truth.tid]

      stacks.uniq.filter_map { |stack| compare(truth, expected, stack) }.first
    end
  end

  # {scenario => [[tid, stack from the checkpoint outwards]…]}
  def held_samples(recording, pid)
    held = Hash.new { |hash, key| hash[key] = [] }
    recording.resolved.each do |sample|
      frames = Stacks.as_ruby_shows(sample.frames)
      scenario = frames.filter_map { |f| f.label[/\AOracle\.spin_(\w+)\z/, 1] }.first or next
      assert_equal pid, sample.pid
      held[scenario] << [sample.tid, frames.drop_while { |f| f.label != 'Oracle.checkpoint' }]
    end
    held
  end

  # Calls the block with each scenario and what it should look like; fails with all it returns.
  def each_truth(target, mode)
    truths = Oracle.truths(target)
    assert_operator truths.size, :>, 300
    problems = truths.filter_map do |truth|
      self.assertions += 1
      problem = yield truth, Oracle.expected(truth, mode, ruby)
      "#{truth.name}: #{problem}" if problem
    end
    assert problems.empty?, "#{problems.size} of #{truths.size} scenarios:\n#{problems.join("\n")}"
  end

  def compare(truth, expected, got)
    if truth.name.match?(Oracle::DEEP)
      Stacks.difference_if_cut(expected, got)
    else
      Stacks.difference(expected, got)
    end
  end
end
