# frozen_string_literal: true

# SPDX-License-Identifier: GPL-2.0-only
#
# What each view and export costs of one synthetic recording: how long it takes, CPU seconds, MiB and bytes of output.
# make bench-views is that of 30 million samples (an hour of 8 busy cores at 1,000 Hz). What is past the bounds is marked with
# "OVER" and makes it fail: 10 s and 300 MiB; the plain report and flame graph 3 s, and the picture 3 MiB. It is for a machine
# that has nothing else to do. SAMPLES, STACKS and THREADS are the size of another recording, VIEWS a pattern: only those.
# ALIKE=1: stacks that differ as little as those of a Rails application (long_recording.c). By default each has 30 frames that
# no other one has, so that the recording has as many nodes as one with 220,000 different stacks of a Rails application.

require 'fileutils'
require 'tmpdir'

# All rows of tests/memory/views for one recording.
class Views
  PROGRAMS = File.expand_path('../build/bench', __dir__)
  ROWS = File.readlines(File.expand_path('../tests/memory/views', __dir__), chomp: true)
             .grep_v(/\A(?:#|\s*\z)/).map { |row| row.split(' ', 2).last }
  QUICK = /\A(?:report|flame -o -) -i @\z/

  def initialize(rbpf, file, samples:, stacks:, threads:, alike: false)
    @rbpf = rbpf
    @file = file
    @title = format('%d samples, %d stacks, %d threads', samples, stacks, threads)
    size = [samples, stacks, threads].map(&:to_s)
    size << 'alike' if alike
    system(File.join(PROGRAMS, 'long_recording'), file, *size, exception: true)
  end

  # Prints the table; returns whether all are within @seconds (nil: whatever they are) and @memory, in MiB.
  def run(only: //, seconds: nil, memory: nil)
    puts "Reading a recording of #{@title}"
    puts format('  %<a>-50s %<s>8s %<b>8s %<c>10s %<d>14s', a: 'rbpf', s: 's', b: 'CPU s', c: 'MiB', d: 'bytes')
    ROWS.grep(only).map { |view| row(view, seconds, memory) }.all?
  end

  private

  def row(view, seconds, memory)
    cost = cost_of(@rbpf, '-q', *view.gsub('@', @file).split)
    is_quick = view.match?(QUICK)
    over = seconds && (cost[3] > (is_quick ? seconds * 0.3 : seconds) || cost[1] > memory ||
                       (is_quick && cost[2] > 3 << 20))
    puts format('  %<a>-50s %<s>8.2f %<b>8.2f %<c>10.1f %<d>14d %<e>s', a: view, s: cost[3], b: cost[0], c: cost[1], d: cost[2],
                                                                        e: over ? 'OVER' : '').rstrip
    $stdout.flush
    !over
  end

  def cost_of(*command)
    cpu, memory, status, bytes, seconds = IO.popen([File.join(PROGRAMS, 'cost_of'), *command], &:read).split.map(&:to_f)
    raise "#{command.join(' ')}: exit status #{status.to_i}" unless status.zero?

    [cpu, memory, bytes, seconds]
  end
end

if $PROGRAM_NAME == __FILE__
  size = { samples: 30_000_000, stacks: 30_000, threads: 64 }.to_h { |k, v| [k, Integer(ENV.fetch(k.to_s.upcase, v))] }
  Dir.mktmpdir('rbpf-views', ENV.fetch('TMPDIR', '/var/tmp')) do |dir|
    views = Views.new(File.expand_path('../rbpf', __dir__), File.join(dir, 'long.data'), alike: ENV.key?('ALIKE'), **size)
    abort 'bench-views: some are over' unless
      views.run(only: Regexp.new(ENV.fetch('VIEWS', '')), seconds: 10, memory: 300)
  end
end
