# SPDX-License-Identifier: GPL-2.0-only
# frozen_string_literal: true

# A Ruby that begins programs all the time. Its children live for a moment as a part of it and for another one as
# the program.

require_relative 'support'

# Other roots have no other programs.
if RubyInstall.under_test.default?
  class SpawnsTest < LiveTest
    SECONDS = 3

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

    private

    def record_spawns(how, *options)
      @target = start('spawns.rb', how, SECONDS)
      rbpf = attach([@target], *options)
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
