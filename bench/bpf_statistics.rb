# SPDX-License-Identifier: GPL-2.0-only
# frozen_string_literal: true

# What the kernel counts of BPF programs while that is switched on: how often each has run, and for how long.
module BpfStatistics
  SWITCH = '/proc/sys/kernel/bpf_stats_enabled'
  PERF_EVENT = 7 # BPF_PROG_TYPE_PERF_EVENT
  TRACING = 26 # BPF_PROG_TYPE_TRACING

  Program = Struct.new(:id, :type, :ns, :runs)

  # The block, with the statistics on; then they are as before.
  def self.on
    before = File.read(SWITCH)
    File.write(SWITCH, '1')
    yield
  ensure
    File.write(SWITCH, before)
  end

  # Of the programs that process @pid has open, each once.
  def self.of(pid)
    Dir["/proc/#{pid}/fdinfo/*"].filter_map do |file|
      text = File.read(file)
      numbers = %w[prog_id prog_type run_time_ns run_cnt].map { |what| text[/^#{what}:\s*(\d+)/, 1]&.to_i }
      Program.new(*numbers) if numbers.all?
    rescue Errno::ENOENT
      nil # closed meanwhile
    end.uniq
  end
end
