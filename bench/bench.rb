# SPDX-License-Identifier: GPL-2.0-only
# frozen_string_literal: true

# What rbpf costs. Times differ from machine to machine and from minute to minute, so everything is
# a ratio to something measured in the same run: an empty BPF program, or the same target without rbpf.

require 'fileutils'
require 'json'
require 'tmpdir'

require_relative 'real_program'
require_relative 'requests'
require_relative 'switches'
require_relative 'synthetic'
require_relative 'views'

RBPF = File.expand_path('../rbpf', __dir__)
IDLE = File.expand_path('../build/bench/idle_cost', __dir__)
WORK = File.expand_path('work.rb', __dir__)
DIR = Dir.mktmpdir('rbpf-bench')
at_exit { system('rm', '-rf', DIR) }

# A running target; lines of its output are kept as they come.
class Target
  attr_reader :pid

  def initialize(depth, blocks)
    reader, writer = IO.pipe
    @pid = Process.spawn(RbConfig.ruby, WORK, depth.to_s, blocks.to_s, out: writer)
    writer.close
    @times = Queue.new
    @thread = Thread.new { reader.each_line { |line| @times << line.to_i } }
    sleep 0.5
  end

  # CPU times of the repetitions that end in the next @seconds.
  def times(seconds)
    @times.clear
    sleep seconds
    Array.new(@times.size) { @times.pop }
  end

  def stop
    Process.kill(:KILL, @pid)
    Process.wait(@pid)
    @thread.join
  end
end

def with_target(depth, blocks = 0)
  target = Target.new(depth, blocks)
  yield target
ensure
  target&.stop
end

def median(values)
  sorted = values.sort
  sorted.empty? ? 0.0 : sorted[sorted.size / 2].to_f
end

def record(pid, hertz, seconds, *options)
  file = File.join(DIR, 'bench.data')
  system(RBPF, '-q', 'record', '-p', pid.to_s, '-F', hertz.to_s, '-d', seconds.to_s, '-o', file, *options,
         exception: true)
  JSON.parse(IO.popen([RBPF, 'report', '--json', '-i', file], &:read)).fetch('summary')
end

def idle_cost(program, pid, seconds)
  Float(IO.popen([IDLE, program, pid.to_s, seconds.to_s, '999'], &:read))
end

def cost_in_kernel
  puts 'In the kernel, per sample of the target (kernel BPF statistics, 999 Hz, 3 s each)'
  puts format('  %<a>-22s %<b>10s %<c>16s', a: 'Ruby frames', b: 'ns', c: 'x empty program')
  [10, 100, 400, 1000].each do |depth|
    with_target(depth) do |target|
      empty = idle_cost('empty', target.pid, 1)
      cost = record(target.pid, 999, 3, '--no-native').fetch('kernel_ns_per_sample')
      puts format('  %<a>-22d %<b>10d %<c>16.1f', a: depth, b: cost, c: cost / empty)
      puts format('  %<a>-22s %<b>10d %<c>16.1f', a: '(empty program)', b: empty, c: 1) if depth == 1000
    end
  end
end

# The frames of the stack of most samples, native ones and those of Ruby.
def frames_of_most
  json = JSON.parse(IO.popen([RBPF, 'export', '-f', 'json', '-i', File.join(DIR, 'bench.data')], &:read))
  id = json['samples'].map { |sample| sample['stack'] }.tally.max_by(&:last).first
  kinds = Hash.new(0)
  while (frame = json['stacks'][id]['frame'])
    kinds[json['frames'][frame]['kind'] == 'native' ? :native : :ruby] += 1
    id = json['stacks'][id]['parent']
  end
  kinds
end

# Blocks within Array#each are C calling Ruby calling C.
def cost_of_native_stacks
  puts 'In the kernel, per sample with its native stack (999 Hz, 3 s each)'
  puts format('  %<a>-22s %<b>10s %<c>16s', a: 'native + Ruby frames', b: 'ns', c: 'x Ruby alone')
  [[46, 5], [3, 48]].each do |depth, blocks|
    with_target(depth, blocks) do |target|
      alone = record(target.pid, 999, 3, '--no-native').fetch('kernel_ns_per_sample')
      both = record(target.pid, 999, 3).fetch('kernel_ns_per_sample')
      frames = frames_of_most
      puts format('  %<a>-22s %<b>10d %<c>16.1f', a: "#{frames[:native]} + #{frames[:ruby]}", b: both,
                                                 c: both.to_f / alone)
    end
  end
end

# With --all-ruby most ticks hit processes that are no Ruby.
def cost_for_others
  pid = Process.spawn('while :; do :; done')
  empty, other = Array.new(5) { %w[empty other].map { |p| idle_cost(p, pid, 1) } }.transpose.map { |v| median(v) }
  puts 'In the kernel, per tick in a process that is no Ruby (5 turns of 1 s each)'
  puts format('  empty program %<a>.0f ns, rbpf %<b>.0f ns: %<c>.0f ns over it', a: empty, b: other, c: other - empty)
ensure
  Process.kill(:KILL, pid)
  Process.wait(pid)
end

# While the block runs, what a command started by it does to the target: median CPU time of a piece.
def piece_time(target)
  pid = yield
  sleep 0.4
  median(target.times(1.0))
ensure
  if pid
    Process.kill(:TERM, pid)
    Process.wait(pid)
  end
end

# One turn is: without, with the empty program, with rbpf; so that a change of the machine's mood hits
# all three. Slowdowns in percent, and the spread (median absolute deviation) over the turns.
def slowdowns(target, hertz, turns)
  rounds = Array.new(turns) do
    none = piece_time(target) { nil }
    empty = piece_time(target) { Process.spawn(IDLE, 'empty', target.pid.to_s, '60', hertz.to_s) }
    rbpf = piece_time(target) do
      Process.spawn(RBPF, '-q', 'record', '-p', target.pid.to_s, '-F', hertz.to_s, '-o', File.join(DIR, 'slow.data'))
    end
    [(empty / none - 1) * 100, (rbpf / none - 1) * 100, (rbpf / empty - 1) * 100]
  end
  rounds.transpose.map { |v| [median(v), median(v.map { |x| (x - median(v)).abs })] }
end

def cost_for_target(turns)
  puts "Slowdown of a CPU-bound target, 100 frames (CPU time of a piece of work, medians of #{turns} turns)"
  puts format('  %<a>-8s %<b>18s %<c>18s %<d>18s %<e>6s', a: 'Hz', b: 'empty program', c: 'rbpf', d: 'rbpf over empty', e: 'lost')
  with_target(100) do |target|
    [99, 999, 4999].each do |hertz|
      cells = slowdowns(target, hertz, turns).map { |m, spread| format('%<m>6.2f%% +/-%<s>5.2f', m: m, s: spread) }
      lost = record(target.pid, hertz, 2).fetch('lost')
      puts format('  %<a>-8d %<b>18s %<c>18s %<d>18s %<e>6d', a: hertz, b: cells[0], c: cells[1], d: cells[2], e: lost)
    end
  end
end

# Loading and attaching cost the same whatever follows: they are measured by themselves and taken off.
def cost_in_user_space
  with_target(100) do |target|
    start = median(Array.new(5) { record(target.pid, 99, 0.3)['rbpf_cpu_ns'] })
    many = record(target.pid, 4999, 10)
    puts 'In user space (4999 Hz, 10 s)'
    puts format('  %<a>.1f ms of CPU time for 10,000 samples; %<b>.0f ms to load and attach',
                a: (many['rbpf_cpu_ns'] - start) / 1e6 / many['samples'] * 10_000, b: start / 1e6)
  end
end

# All that tests/memory looks at, of a recording of a long time.
def cost_of_reading(turns)
  file = File.join(DIR, 'long.data')
  Views.new(RBPF, file, samples: [turns, 5].min * 1_000_000, stacks: 20_000, threads: 200).run
ensure
  FileUtils.rm_f(file)
end

# Finding the layout of a Ruby never seen before, and of the next process of the same file.
def time_to_attach
  puts 'Attaching (wall-clock time; RUBIES=DIR:DIR are other Rubies, each a prefix with a bin/ruby)'
  [RbConfig.ruby, *ENV.fetch('RUBIES', '').split(':').map { |dir| File.join(dir, 'bin/ruby') }].each do |ruby|
    pid = Process.spawn(ruby, '-e', 'sleep')
    sleep 0.5
    rows = JSON.parse(IO.popen([RBPF, 'doctor', '-p', pid.to_s, '--json'], &:read))
    puts "  #{ruby}: #{rows.find { |row| row['name'] == 'attach' }.fetch('detail')}"
  ensure
    Process.kill(:KILL, pid)
    Process.wait(pid)
  end
end

turns = Integer(ENV.fetch('TURNS', '12'))
cost_in_kernel
cost_of_native_stacks
Requests.new(RBPF, DIR).run([turns / 2, 1].max)
Switches.new(RBPF, DIR).run
Synthetic.new([RBPF], IDLE, DIR).run([turns / 4, 1].max)
RealProgram.new([RBPF], IDLE, DIR).run([turns / 4, 1].max)
cost_for_others
time_to_attach
cost_for_target(turns)
cost_in_user_space
cost_of_reading(turns)
