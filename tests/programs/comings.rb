# SPDX-License-Identifier: GPL-2.0-only
# frozen_string_literal: true

# Processes that come and go: forked children that burn CPU and end, or scripts that are executed.
#
#   ruby comings.rb forks N SECONDS        N children, two at a time
#   ruby comings.rb scripts N SECONDS      N scripts ("ruby -e …"), two at a time; of their lives half
#                                          at least is their own code, however slowly Ruby starts
#   ruby comings.rb daemon SECONDS         a grandchild whose parent has ended
#   ruby comings.rb exec SECONDS           burns, then executes what is no Ruby
#
# Waits for a line on standard input; then does it, prints {"ready": true, "pids": [PID, ...],
# "cpu": S} and ends when another line comes. "cpu": what the kernel accounts for all that have
# ended.

require 'rbconfig'

class Comings
  SCRIPT = <<~'RUBY'
    class Comings
      def self.cpu
        Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID)
      end

      def self.child
        life = Float(ARGV[0])
        own = cpu + (life / 2)
        nil while cpu < life || cpu < own
      end
    end
    Comings.child
  RUBY

  def initialize(seconds)
    @seconds = seconds
  end

  def child
    stop = cpu + @seconds
    work while cpu < stop
  end

  def work
    i = 0
    i += 1 while i < 5_000
  end

  def two_at_a_time(count)
    running = []
    Array.new(count) do
      Process.wait(running.shift) if running.size == 2
      running << yield
      running.last
    end.tap { running.each { |pid| Process.wait(pid) } }
  end

  def forks(count)
    two_at_a_time(count) do
      fork do
        child
        exit!(0)
      end
    end
  end

  def scripts(count)
    two_at_a_time(count) do
      Process.spawn(RbConfig.ruby, '--disable-gems', '-e', SCRIPT, @seconds.to_s)
    end
  end

  def daemon
    reader, writer = IO.pipe
    middle = fork do
      fork do
        child
        writer.puts(Process.pid)
        exit!(0)
      end
      exit!(0)
    end
    Process.wait(middle)
    writer.close
    [middle, reader.read.to_i]
  end

  def exec
    pid = fork do
      child
      Kernel.exec('sh', '-c', 'i=0; while [ $i -lt 100000 ]; do i=$((i + 1)); done')
    end
    Process.wait(pid)
    [pid]
  end

  private

  def cpu
    Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID)
  end
end

def say(text)
  $stdout.write("#{text}\n")
  $stdout.flush
end

what, *numbers = ARGV
comings = Comings.new(Float(numbers.last))
say(%({"waiting":true,"pid":#{Process.pid}}))
$stdin.gets
pids = comings.public_send(what, *numbers[0...-1].map(&:to_i))
times = Process.times
say(%({"ready":true,"pids":[#{pids.join(',')}],"cpu":#{times.cutime + times.cstime}}))
$stdin.gets
