# SPDX-License-Identifier: GPL-2.0-only
# frozen_string_literal: true

# make bench-hour: the memory of top and of serve, which watch a crowd of Rubies at the same time for an hour, the one
# on a screen, the other with a client that asks for what the page asks for. The Rubies are mostly idle; methods,
# threads and processes come and go, so that names are new all the time. Once what top and serve keep (--keep) is
# full, their memory must not grow. Prints a line each minute.
#
#   PROCESSES=50   Rubies     MINUTES=60

require_relative 'watchers'

class Crowd
  # What each process does: about 4 ms of CPU time a second.
  def self.work(number)
    threads = Array.new(2) { Thread.new { loop { tick } } }
    threads << Thread.new { (1..).each { |i| churn("#{number}_#{i}") } }
    threads << Thread.new { (1..).each { |i| come_and_go(i) } }
    threads.each(&:join)
  end

  def self.tick
    sleep 0.5 + rand
    200.times { |i| [i, i.to_s].hash }
  end

  # A method with a name that none had before, and which is gone after it has run.
  def self.churn(name)
    sleep 2 + (4 * rand)
    Module.new.module_eval("extend self; def churn_#{name}; 60_000.times { |i| i * 3 }; end; self", "/churn/#{name}.rb")
          .public_send("churn_#{name}")
  end

  def self.come_and_go(number)
    sleep 10 + (10 * rand)
    Thread.new { Thread.current.name = "come #{number}"; tick }.join
    return unless (number % 4).zero?

    Process.wait(fork { 30_000.times { |i| i.to_s } && exit!(0) })
  end

  def initialize(size)
    @size = size
    @number = 0
    @pids = []
  end

  attr_reader :pids

  def start
    spawn_one while @pids.size < @size
  end

  # One ends, and another begins.
  def replace_one
    end_one
    spawn_one
  end

  def stop
    end_one until @pids.empty?
  end

  private

  def spawn_one
    @pids << Process.spawn(RbConfig.ruby, '--disable-gems', __FILE__, 'crowd', (@number += 1).to_s)
  end

  def end_one
    pid = @pids.shift
    Process.kill(:KILL, pid)
    Process.wait(pid)
  end
end

class Hour
  WATCH = ['--comm', 'live_hour\.rb crowd'].freeze
  FORMAT = '%6s %11s %11s %9s %12s %12s %11s %12s %9s %7s'

  def run(processes, minutes)
    @crowd = Crowd.new(processes)
    @crowd.start
    sleep 3
    @watchers = [Top.new(WATCH), Serve.new(WATCH)]
    puts format(FORMAT, 'minute', 'top RSS KiB', 'top PSS KiB', 'top CPU s', 'serve RSS', 'serve PSS', 'serve CPU s', 'crowd CPU %', 'answers',
                'failed')
    (1..minutes).each { |minute| pass(minute) }
  ensure
    puts "status of top and serve: #{@watchers.map(&:stop).join(', ')}" if @watchers
    @crowd.stop
  end

  private

  def pass(minute)
    6.times { sleep(10) && @crowd.replace_one }
    figures = @watchers.flat_map { |watcher| [*watcher.memory.values, watcher.cpu.round(2)] }
    puts format(FORMAT, minute, *figures, crowd_share, @watchers[1].answers, @watchers[1].failed)
    $stdout.flush
  end

  # % of a core that the processes have taken since they began.
  def crowd_share
    stats = @crowd.pids.map { |pid| File.read("/proc/#{pid}/stat")[/\) (.*)/, 1].split.map(&:to_i) }
    now = Process.clock_gettime(Process::CLOCK_BOOTTIME) * Watcher::TICKS
    lived = stats.sum { |stat| now - stat[19] }
    (stats.sum { |stat| stat[11, 4].sum } / lived * stats.size * 100).round(1)
  end
end

if ARGV.first == 'crowd'
  Crowd.work(ARGV.last)
else
  %w[TERM INT].each { |signal| trap(signal) { exit } }
  Hour.new.run(Integer(ENV.fetch('PROCESSES', '50')), Integer(ENV.fetch('MINUTES', '60')))
end
