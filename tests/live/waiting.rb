# SPDX-License-Identifier: GPL-2.0-only
# frozen_string_literal: true

# What the tests of time off the CPU share: recordings of it, and sums of what these have.

require_relative 'support'

module Waiting
  SECONDS = 1.5
  # Of what is charged to those who hold something or wake a thread, which is known when they are found to do so.
  SHARE = 0.05

  # Around what is measured: reading clocks, /proc, and getting the GVL back.
  SLACK = 25_000_000 # ns

  private

  # Calls the block when the targets have begun.
  def record_states(targets, *options)
    options << '--no-children' if options.empty?
    rbpf = attach(targets, '--mode', 'states', *options)
    targets.each(&:go)
    yield if block_given?
    targets.each { |target| target.wait_for('ready') }
    said = rbpf.stop
    assert_equal 0, said.code, said.err
    # What only waits may have used too little CPU time for a sample of it.
    assert_equal 0, recording.report('--event', 'wait')['summary']['lost']
    said
  end

  def total_of(rows, label)
    rows.find { |row| row['label'] == label }.to_h.fetch('total_ns', 0)
  end

  # Whether the GVL was held or not.
  def sum(found, state)
    found[[state, false]] + found[[state, true]]
  end

  # {[STATE, GVL held]: ns}; those for the GVL have two rows.
  def states_of(tid)
    recording.rows('--by', 'state', '--tid', tid.to_s).each_with_object(Hash.new(0)) do |row, sums|
      sums[[row['state'], row['gvl_held'] == 1]] += row['self_ns']
    end
  end
end
