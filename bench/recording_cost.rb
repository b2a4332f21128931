# SPDX-License-Identifier: GPL-2.0-only
# frozen_string_literal: true

# What it costs to record processes for some seconds, per sample.

require 'fileutils'
require 'json'

class RecordingCost
  # s after which rbpf has read the symbols of what it has met, so that only samples cost.
  SETTLED = 1

  # CPU time of all threads of processes, by the kernel's scheduler, in ns.
  def self.cpu_ns(pids)
    pids.flat_map { |pid| Dir["/proc/#{pid}/task/*/schedstat"] }.sum { |file| File.read(file).to_i }
  end

  def self.now
    Process.clock_gettime(Process::CLOCK_MONOTONIC)
  end

  def self.median(values)
    values.sort[values.size / 2]
  end

  # The kernel's cost of the empty program at the same rate, in ns a tick.
  def self.empty(idle, pids, hertz, seconds)
    Float(IO.popen([idle, 'empty', pids.join(','), seconds.to_s, hertz.to_s], &:read))
  end

  # The columns of a table: how each is made of the figures of one recording, and how it is written.
  COLUMNS = { 'kernel ns' => ['%d', ->(f) { f[:kernel_ns] }],
              'x empty' => ['%.1f', ->(f) { f[:kernel_ns] / f[:empty] }],
              'distinct' => ['%.0f%%', ->(f) { f[:distinct] * 100 }],
              'sent B' => ['%d', ->(f) { f[:sent] }],
              'stored B' => ['%d', ->(f) { f[:bytes] }],
              'user us' => ['%.1f', ->(f) { f[:user_ns] / 1000 }] }.freeze

  # A row for each rate, kind of stacks and build, [hertz, stacks, rbpf] => the figures of several recordings, of
  # which it has the medians.
  def self.print_table(columns, rows)
    names = columns.keys.map { |name| name.rjust(12) }
    puts format('  %<hertz>-5s%<stacks>-14s', hertz: 'Hz', stacks: 'stacks') + names.join
    builds = rows.keys.map(&:last).uniq
    rows.each do |(hertz, stacks, rbpf), figures|
      cells = columns.values.map { |format, of| format(format, median(figures.map(&of))).rjust(12) }
      cells << "  #{rbpf}" if builds.size > 1
      puts format('  %<hertz>-5d%<stacks>-14s', hertz: hertz, stacks: stacks) + cells.join
    end
  end

  def initialize(rbpf, dir)
    @rbpf = rbpf
    @dir = dir
  end

  # Records processes while the block runs, which has to take so many seconds, and returns the block's figures with
  #   kernel_ns  run time of the BPF program, by the kernel's statistics
  #   user_ns    CPU time of rbpf and of the processes that it has started
  #   distinct   how many stacks there are for each sample
  #   sent       bytes that the BPF programs sent
  #   bytes      of the recording
  def of(pids, hertz, seconds, options)
    file = File.join(@dir, 'cost.data')
    rbpf = start(file, pids, hertz, options)
    user = nil
    watch = Thread.new { user = user_cost(rbpf, seconds) }
    figures = yield
    watch.join
    Process.kill(:TERM, rbpf)
    Process.wait(rbpf)
    figures.merge(of_samples(file, user))
  ensure
    FileUtils.rm_f(file)
  end

  # Begins to record, and returns the pid of rbpf when it is attached.
  def start(file, pids, hertz, options)
    said = File.join(@dir, 'rbpf.err')
    pid = Process.spawn(@rbpf, 'record', '-p', pids.join(','), '-F', hertz.to_s, '-o', file, *options, err: said)
    until File.read(said).include?('attached')
      raise "#{@rbpf}: #{File.read(said)}" if Process.wait(pid, Process::WNOHANG)

      sleep 0.01
    end
    pid
  end

  private

  # And from when to when it is counted.
  def user_cost(pid, seconds)
    sleep SETTLED
    pids = [pid, *descendants(pid)]
    from = RecordingCost.now
    before = RecordingCost.cpu_ns(pids)
    sleep seconds - SETTLED
    { cpu_ns: RecordingCost.cpu_ns(pids) - before, from: from, to: RecordingCost.now }
  end

  def of_samples(file, user)
    summary = json('report', '--json', '-i', file).fetch('summary')
    samples = json('export', '-f', 'json', '-i', file).fetch('samples')
    within = samples.count { |sample| (sample['ts_ns'] / 1e9).between?(user[:from], user[:to]) }
    { kernel_ns: summary.fetch('kernel_ns_per_sample').to_f, user_ns: user[:cpu_ns].to_f / within,
      distinct: samples.map { |sample| sample['stack'] }.uniq.size.to_f / samples.size,
      sent: summary.fetch('counters', {})['sent_bytes'].to_f / samples.size, # an older build does not say
      bytes: File.size(file).to_f / samples.size }
  end

  def json(*command)
    JSON.parse(IO.popen([@rbpf, *command], &:read))
  end

  def descendants(pid)
    children = Dir["/proc/#{pid}/task/*/children"].flat_map { |file| File.read(file).split }
    children + children.flat_map { |child| descendants(child) }
  end
end
