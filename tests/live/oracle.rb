# SPDX-License-Identifier: GPL-2.0-only
# frozen_string_literal: true

# What Ruby says about its own stacks, and what rbpf has to say: see labels.rb and
# tests/programs/oracle.rb.

require_relative 'labels'
require_relative 'programs'
require_relative 'stacks'

module Oracle
  RECORD = File.join(Live::PROGRAMS, 'oracle.labels.json')

  # Programs that are one scenario each, on the main thread, with all that is below it.
  MAIN_PROGRAMS = %w[at_exit begin_block class_body requires top_level trap].freeze

  # What 3.4 prints => what it was before the method got an owner of its own, and when it got that.
  MOVED = { 'array_new' => { 'Array.new' => ['Class#new', '3.2'] } }.freeze

  # More frames than any profiler has to keep whole.
  DEEP = /deep/.freeze

  # A scenario's stack as Ruby printed it; innermost first.
  Truth = Struct.new(:name, :tid, :frames) do
    def labels
      frames.map(&:label)
    end
  end

  module_function

  def options
    ['--disable-gems']
  end

  # The stacks that a program has printed so far.
  def truths(target)
    target.said.select { |object| object['scenario'] }.map do |object|
      frames = object['frames'].map { |frame| Frame.from(%w[label path line].zip(frame).to_h) }
      Truth.new(object['scenario'], object['tid'], frames)
    end
  end

  def dash_e(ruby)
    ruby.command('-r', ruby.program('oracle/checkpoint.rb'), '-e', 'Oracle.watch_main(:dash_e)',
                 '-e', '', '-e', 'def bar; Oracle.checkpoint; end; [1].each { bar }')
  end

  # The argv of each program that is one scenario.
  def main_programs(ruby)
    programs = MAIN_PROGRAMS.to_h { |name| [name, ruby.command(ruby.program("main/#{name}.rb"))] }
    programs.merge('dash_e' => dash_e(ruby))
  end

  def record
    @record ||= JSON.parse(File.read(RECORD))
  end

  # The stack that rbpf has to show for a truth of mode (spin, threads, sleep or main).
  def expected(truth, mode, ruby)
    return truth.frames if ruby.at_least?('3.4')

    labels = Labels.qualify(truth.labels, recorded(truth.name, mode))
    labels = labels.map { |label| moved_label(truth.name, label, ruby) }
    truth.frames.zip(labels).map { |frame, label| Frame.new(nil, label, frame.path, frame.line) }
  end

  def moved_label(name, label, ruby)
    before, since = MOVED.dig(name, label)
    since && !ruby.at_least?(since) ? before : label
  end

  # What 3.4 printed for a scenario, as a list of labels.
  def recorded(name, mode)
    return unpack(record.fetch('main').fetch(name)) if mode == 'main'

    above = mode == 'sleep' ? record.fetch('asleep') : []
    scenario = record.fetch('scenarios').fetch(name)
    below = scenario.flatten.include?('Oracle.run_one') ? record.fetch('below').fetch(mode) : []
    above + unpack(scenario) + below
  end

  def run(ruby, mode)
    seconds = %w[spin threads].include?(mode) ? ['0'] : []
    target = Target.new(ruby.command(*options, ruby.program('oracle.rb'), mode, *seconds))
    target.go
    target.wait_for('ready')
    truths(target)
  ensure
    target.dispose
  end

  def run_main(argv)
    target = Target.new(argv)
    target.wait_for('ready')
    truths(target).first
  ensure
    target.dispose
  end

  def unpack(packed)
    packed.flat_map { |item| item.is_a?(Array) ? [item[0]] * item[1] : [item] }
  end
end
