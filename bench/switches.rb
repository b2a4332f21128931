# SPDX-License-Identifier: GPL-2.0-only
# frozen_string_literal: true

# What --mode states costs at each switch between threads, some ten thousands a second: of two Ruby processes that send a byte to
# and fro, and of threads that hand on a Mutex, whose holders are looked for.

require_relative 'bpf_statistics'
require_relative 'recording_cost'

class Switches
  SECONDS = 2
  SETTLED = 1
  PIPES = <<~'RUBY'
    def wait_and_answer(depth, read, write)
      return wait_and_answer(depth - 1, read, write) if depth.positive?

      loop { read.readpartial(1) && write.syswrite('x') }
    end
    there, back = IO.pipe, IO.pipe
    child = fork { wait_and_answer(Integer(ARGV[0]), there[0], back[1]) }
    $stdout.syswrite("#{child}\n")
    there[1].syswrite('x')
    wait_and_answer(Integer(ARGV[0]), back[0], there[1])
  RUBY
  MUTEX = <<~'RUBY'
    def hand_on(depth, mutex)
      return hand_on(depth - 1, mutex) if depth.positive?

      loop { mutex.synchronize { Thread.pass } }
    end
    mutex = Mutex.new
    $stdout.syswrite("\n")
    4.times.map { Thread.new { hand_on(Integer(ARGV[0]), mutex) } }.each(&:join)
  RUBY

  def initialize(rbpf, dir)
    @rbpf = rbpf
    @dir = dir
  end

  VARIANTS = { '' => ['--no-native'], ', native ones, too' => [], ', and the wakers' => ['--waker'] }.freeze

  # Ruby frames of each stack, and whether native ones are taken, too, and with them who ends the wait.
  def run
    puts "In the kernel, per switch of threads that are recorded with --mode states (#{SECONDS} s each)"
    puts format('  %<a>-29s %<b>10s %<c>12s %<d>14s', a: 'Ruby frames', b: 'ns', c: 'a wake-up', d: 'switches a s')
    [PIPES, MUTEX].product([5, 50], VARIANTS.to_a) do |program, depth, (variant, options)|
      cost = of(program, depth, options)
      what = "#{depth}#{variant}#{', Mutex' if program == MUTEX}"
      puts format('  %<a>-29s %<b>10d %<c>12d %<d>14d', a: what, b: cost[:switch], c: cost[:waking], d: cost[:rate])
    end
  end

  private

  def of(program, depth, options)
    programs = IO.popen([RbConfig.ruby, '-e', program, depth.to_s])
    pids = [programs.pid, *programs.gets.split.map { |pid| Integer(pid) }]
    BpfStatistics.on { measure(pids, options) }
  ensure
    Process.kill(:KILL, *pids)
    programs.close
  end

  def measure(pids, options)
    rbpf = RecordingCost.new(@rbpf, @dir).start(File.join(@dir, 'switches.data'), pids, 99, ['--mode', 'states', *options])
    sleep SETTLED
    before = runs(rbpf)
    sleep SECONDS
    # That of switches takes most of the time, those of wake-ups run about half as often.
    switch, *others = cost_between(before, runs(rbpf)).max_by(3) { |ns, _n| ns }
    { switch: switch[0] / switch[1], waking: others.sum { |ns, n| ns / n }, rate: switch[1] / SECONDS }
  ensure
    Process.kill(:TERM, rbpf)
    Process.wait(rbpf)
  end

  def cost_between(before, after)
    after.map { |id, (ns, n)| [ns - before.fetch(id)[0], n - before.fetch(id)[1]] }.select { |_ns, n| n.positive? }
  end

  # {program: [ns, runs]} of the BPF programs of process @pid that are no samples.
  def runs(pid)
    BpfStatistics.of(pid).select { |p| p.type == BpfStatistics::TRACING }.to_h { |p| [p.id, [p.ns, p.runs]] }
  end
end
