# SPDX-License-Identifier: GPL-2.0-only
# frozen_string_literal: true

# What it costs at a sample to tell which request it is of: the same program with and without, in turns.

require 'json'

require_relative 'recording_cost'

class Requests
  FRAMES = 100
  SECONDS = 1
  HERTZ = 999
  PROGRAM = File.expand_path('requests_work.rb', __dir__)
  # What the program does => what it is, and options of the recording with requests.
  KINDS = {
    'none' => ['no rule matches', []],
    'same' => ['Rails, one long request', []],
    'new' => ['Rails, a new request a sample', []],
    'young' => ['so, of a young class', []],
    'path' => ['Puma, a new path a sample', ['--request-paths']]
  }.freeze

  def initialize(rbpf, dir)
    @rbpf = rbpf
    @file = File.join(dir, 'requests.data')
  end

  # Other programs make single turns dearer: the cheapest of each counts.
  def run(turns)
    puts "In the kernel, per sample with its request (#{FRAMES} Ruby frames, #{HERTZ} Hz, least of #{turns} turns of #{SECONDS} s)"
    puts format('  %<a>-32s %<b>10s %<c>10s %<d>10s', a: '', b: 'without ns', c: 'with ns', d: 'more ns')
    KINDS.each do |kind, (what, options)|
      without, with = least(kind, [['--no-requests'], options], turns)
      puts format('  %<a>-32s %<b>10d %<c>10d %<d>10d', a: what, b: without, c: with, d: with - without)
    end
  end

  private

  # Which of them comes first alternates.
  def least(kind, variants, turns)
    with_program(kind) do |pid|
      costs = Array.new(turns) { |i| variants.rotate(i).map { |options| cost(pid, options) }.rotate(-i) }
      costs.transpose.map(&:min)
    end
  end

  def with_program(kind)
    pid = Process.spawn(RbConfig.ruby, PROGRAM, kind, FRAMES.to_s)
    sleep 0.5
    yield pid
  ensure
    Process.kill(:KILL, pid)
    Process.wait(pid)
  end

  def cost(pid, options)
    system(@rbpf, '-q', 'record', '-p', pid.to_s, '-F', HERTZ.to_s, '-d', SECONDS.to_s, '-o', @file, '--no-native', *options,
           exception: true)
    JSON.parse(IO.popen([@rbpf, 'report', '--json', '-i', @file], &:read)).fetch('summary').fetch('kernel_ns_per_sample')
  end
end
