# SPDX-License-Identifier: GPL-2.0-only
# frozen_string_literal: true

# Records what Ruby 3.4 prints for the programs that the oracle tests compare rbpf with, in
# tests/programs/oracle.labels.json; labels.rb says what for. To be run after a change to those:
#
#   tests/support/rubies.sh 3.4 DIR
#   TEST_RUBY=DIR ruby tests/live/update_labels.rb
#
# The record holds no lines or paths: a change that only moves code changes nothing in it.
#
#   asleep     labels above a checkpoint, innermost first, when the program sleeps in it
#   below      labels below a scenario, for each way to run oracle.rb
#   scenarios  those between: from Oracle.checkpoint to Oracle.run_one
#   main       whole stacks of the programs in main/
#
# [label, count] stands for a run of equal labels.

require_relative 'oracle'

module LabelRecord
  module_function

  def build(ruby)
    stacks = %w[spin threads sleep].to_h { |mode| [mode, Oracle.run(ruby, mode)] }
    {
      'ruby' => ruby.version,
      'asleep' => stacks['sleep'].first.labels.take_while { |label| label != 'Oracle.checkpoint' },
      'below' => stacks.transform_values { |truths| below(truths.first.labels) },
      'scenarios' => stacks['spin'].to_h { |truth| [truth.name, pack(scenario(truth.labels))] },
      'main' => Oracle.main_programs(ruby).transform_values { |argv| main(argv) }
    }
  end

  def main(argv)
    pack(Oracle.run_main(argv).labels)
  end

  # A scenario to a line.
  def format(record)
    entries = record.map do |key, value|
      next "  #{key.to_json}: #{value.to_json}" unless value.is_a?(Hash)

      lines = value.map { |name, labels| "    #{name.to_json}: #{labels.to_json}" }
      "  #{key.to_json}: {\n#{lines.join(",\n")}\n  }"
    end
    "{\n#{entries.join(",\n")}\n}\n"
  end

  def scenario(labels)
    labels[0..(labels.index('Oracle.run_one') || -1)]
  end

  def below(labels)
    labels[(labels.index('Oracle.run_one') + 1)..]
  end

  def pack(labels)
    runs = labels.chunk_while { |a, b| a == b }
    runs.flat_map { |run| run.size > 3 ? [[run[0], run.size]] : run }
  end
end

ruby = RubyInstall.under_test
abort "TEST_RUBY must be a Ruby 3.4, not #{ruby.version}" unless ruby.version.start_with?('3.4.')
File.write(Oracle::RECORD, LabelRecord.format(LabelRecord.build(ruby)))
