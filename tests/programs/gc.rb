# SPDX-License-Identifier: GPL-2.0-only
# frozen_string_literal: true

# Garbage collections whose cause is known.
#
#   ruby gc.rb allocate SECONDS   one thread allocates
#   ruby gc.rb start SECONDS      one thread calls GC.start
#   ruby gc.rb child SECONDS      the same in a child, forked just after a thread has begun
#   ruby gc.rb compact SECONDS    one thread calls GC.compact
#   ruby gc.rb threads SECONDS    one allocates, one counts, one is in C code without the lock
#   ruby gc.rb ractors SECONDS    one Ractor allocates, first alone, which is what is said of, then while another one counts
#   ruby gc.rb alone SECONDS      the same, and there are none before the line has come
#   ruby gc.rb none SECONDS       nothing is collected
#
# Begins when a line comes on standard input, prints {"ready": true, "span": [FROM, TO],
# "collections": N, "gc_ns": T, "without_lock": whether there is such a thread}, and ends when
# another line comes. gc_ns is what Ruby says that collecting took in CPU time.

require_relative 'oracle/checkpoint'

class Allocating
  def run(stop)
    keep = []
    until Oracle.now > stop
      allocate(keep)
      rest
    end
  end

  def allocate(keep)
    keep.shift(20_000) if keep.size > 100_000
    20_000.times { |i| keep << [i.to_s] }
  end

  def rest
    i = 0
    i += 1 while i < 20_000
  end
end

class Starting
  def initialize
    @list = Array.new(200_000) { |i| [i] }
  end

  def run(stop)
    until Oracle.now > stop
      start
      rest
    end
  end

  def start
    GC.start
  end

  def rest
    i = 0
    i += 1 while i < 200_000
  end
end

class Compacting < Starting
  def start
    GC.compact
  end
end

class Counting
  def run(stop)
    count until Oracle.now > stop
  end

  def count
    i = 0
    i += 1 while i < 50_000
  end
end

class WithoutLock
  SIZE = 20_000_000

  def initialize
    require 'fiddle'
    types = [Fiddle::TYPE_VOIDP, Fiddle::TYPE_INT, Fiddle::TYPE_SIZE_T]
    @memset = Fiddle::Function.new(Fiddle.dlopen(nil)['memset'], types, Fiddle::TYPE_VOIDP)
    @memory = Fiddle.malloc(SIZE)
  end

  def run(stop)
    fill until Oracle.now > stop
  end

  def fill
    @memset.call(@memory, 1, SIZE)
  end
end

module Oracle
  # CPU time of the process: on a busy machine, too, there is enough to sample.
  def self.now
    Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID, :nanosecond)
  end

  def self.monotonic
    Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond)
  end
end

# CPU time of collections, in ns
def gc_ns
  return GC.stat(:time) * 1_000_000 if GC.respond_to?(:measure_total_time)

  (GC::Profiler.total_time * 1e9).round
end

def without_lock
  WithoutLock.new
rescue LoadError
  nil
end

# What the workers do within @seconds of CPU time.
def measure(workers, seconds)
  count = GC.count
  before = gc_ns
  from = Oracle.monotonic
  stop = Oracle.now + (seconds * 1e9).to_i
  if workers.size == 1
    workers[0].run(stop)
  else
    workers.map { |worker| Thread.new { worker.run(stop) } }.each(&:join)
  end
  { span: [from, Oracle.monotonic], collections: GC.count - count, gc_ns: gc_ns - before }
end

# The same in a child. The thread that begins here waits for the GVL all the time, which this one keeps.
def measure_in_child(workers, seconds)
  reader, writer = IO.pipe
  Thread.new { sleep }
  stop = Oracle.now + 20_000_000
  nil while Oracle.now < stop
  pid = fork do
    writer.write(Marshal.dump(measure(workers, seconds)))
    exit!(0)
  end
  writer.close
  Marshal.load(reader.read).tap { Process.wait(pid) }
end

# The others go on, too, in the CPU time that Ruby says a collection took. So what the first one says is of when it was alone.
def measure_in_ractors(ractors, workers, seconds)
  from = Oracle.now
  stop = from + (seconds * 2e9).to_i
  ractors.zip(workers).each_with_index do |(ractor, worker), i|
    ractor << [worker, seconds, from + (i * seconds * 1e9).to_i, stop]
  end
  ractors.map { |ractor| ractor.respond_to?(:value) ? ractor.value : ractor.take }[0]
end

def new_ractors(workers)
  $VERBOSE = nil # Ractor is experimental
  workers.map do
    Ractor.new do
      worker, seconds, from, stop = Ractor.receive
      sleep(0.005) until Oracle.now >= from
      measure([worker], seconds).tap { worker.run(stop) }
    end
  end
end

def measure_as(kind, workers, seconds, ractors)
  case kind
  when 'child' then measure_in_child(workers, seconds)
  when 'alone', 'ractors' then measure_in_ractors(ractors || new_ractors(workers), workers, seconds)
  else measure(workers, seconds)
  end
end

kind, seconds = ARGV
workers = {
  'allocate' => -> { [Allocating.new] }, 'start' => -> { [Starting.new] }, 'child' => -> { [Starting.new] },
  'compact' => -> { [Compacting.new] }, 'none' => -> { [Counting.new] },
  'ractors' => -> { [Allocating.new, Counting.new] }, 'alone' => -> { [Allocating.new, Counting.new] },
  'threads' => -> { [Allocating.new, Counting.new, *without_lock] }
}.fetch(kind).call
GC::Profiler.enable unless GC.respond_to?(:measure_total_time)
ractors = new_ractors(workers) if kind == 'ractors'
GC.start
Oracle.say(waiting: true, pid: Process.pid)
Oracle.wait_for_test
said = measure_as(kind, workers, Float(seconds), ractors)
Oracle.say(ready: true, without_lock: workers.size > 2, **said)
Oracle.wait_for_test
