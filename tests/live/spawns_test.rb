# SPDX-License-Identifier: GPL-2.0-only
# frozen_string_literal: true

# A Ruby that begins programs all the time. Its children live for a moment as a part of it and for another one as
# the program.

require_relative 'support'

# Other roots have no other programs.
if RubyInstall.under_test.default?
  class SpawnsTest < LiveTest
    SECONDS = 3

    # Of sampled CPU time. A thread that is to make room for rbpf stays on its CPU until it may be preempted, and what it
    # does there the kernel accounts to rbpf.
    ERROR = 0.1

    # Once a child's memory is the new program's it has no Ruby stack, and no native one, of which to fail to read.
    %w[system backticks fork_exec].each do |how|
      define_method("test_what_is_executed_by_#{how}") do
        record_spawns(how, '-F', 999)
        totals = recording.totals
        assert_operator totals['failed'], :<, totals['samples'] * 0.01
        executing = samples_in('[executing a program]')
        assert_operator executing.size, :>, totals['samples'] * 0.02
        assert_empty(executing.reject { |s| s.frames.one? }.map { |s| s.frames.join(' < ') })
        # Up to there its stack is that of its parent, whose memory it has, or a copy.
        parents = samples_in(/\A(Kernel#(system|`|exec|fork)|Process\.(fork|exec)|Object#fork)\z/)
        assert_operator parents.count { |s| s.pid != @target.pid }, :>, totals['samples'] * 0.01
      end
    end

    # With --all-ruby such a child is recorded until it executes a program that is no Ruby. What it has used by then the
    # kernel has not added up when it says so.
    def test_the_account_of_what_executes_another_program
      record_spawns('work_exec', '-F', 999, all: true)
      totals = recording.totals
      kernel = totals['cpu_kernel_ns']
      assert_operator kernel, :>, @said['children'] * @said['work_ns']
      assert_operator kernel, :<, @said['used_ns'], 'what was executed is not counted'
      assert_sampled(kernel, recording.samples.map(&:value), ERROR)
      assert_empty(samples_in('[no Ruby in process]'))
    end

    private

    def record_spawns(how, *options, all: false)
      @target = start('spawns.rb', how, SECONDS)
      @target.wait_for('waiting')
      rbpf = Rbpf::Running.new('record', *(all ? ['--comm', 'spawns.rb'] : ['-p', @target.pid]),
                               '-o', path('rbpf.data'), *options).wait_attached
      @target.go
      @said = @target.wait_for('ready', BUSY_PATIENCE)
      result = rbpf.stop
      assert_equal 0, result.code, result.err
      assert_equal 0, recording.totals['lost']
    end

    def samples_in(label)
      recording.samples.select { |sample| sample.frames.any? { |frame| label === frame.label } }
    end
  end
end
