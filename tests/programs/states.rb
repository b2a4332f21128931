# SPDX-License-Identifier: GPL-2.0-only
# frozen_string_literal: true

# A thread that waits in one way, by its own clocks; of several SCENARIOs each one in a child of its own:
#
#   ruby states.rb SCENARIO[,SCENARIO...] SECONDS
#
# Begins when a line comes on standard input and ends when another one comes. Says
#
#   {"ready": true, "threads": [{"scenario": SCENARIO, "tid": TID, "queued": NS, "waits": {STATE: NS}, "held": {STATE: NS},
#                                "unsure": NS}, ...]}
#
# waits: what the thread measured around what it waited in, less the CPU time that it used there; held: the
# same while it held the GVL. queued: how long the kernel says that it could run and did not, in all its life; 0: it was not asked.
# unsure: by how much less a wait may have been.

require 'monitor'
require 'socket'
require 'timeout'

require_relative 'oracle/checkpoint'

# What a thread measures of itself.
class Measured
  attr_reader :tid, :deadline

  # Until so many seconds from now, or to @deadline.
  def initialize(seconds, deadline = nil)
    @tid = Oracle.tid
    @waits = Hash.new(0)
    @held = Hash.new(0)
    @unsure = 0
    @deadline = deadline || (wall + (seconds * 1e9).to_i)
  end

  def wall
    Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond)
  end

  def cpu
    Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID, :nanosecond)
  end

  # 0 where there is no /proc, as in a root.
  def queued
    File.read("/proc/#{Process.pid}/task/#{@tid}/schedstat").split[1].to_i
  rescue Errno::ENOENT
    0
  end

  def more?
    wall < @deadline
  end

  def waits(state, into = @waits)
    before = waited_so_far
    result = yield
    into[state] += waited_so_far - before
    result
  end

  # But for when it was queued. All of one moment: that it was not queued in between tells it.
  def waited_so_far
    loop do
      queued = self.queued
      off_cpu = wall - cpu
      return off_cpu - queued if queued == self.queued
    end
  end

  # So long at most, and at least.
  def waited(state, nanoseconds, least)
    @waits[state] += nanoseconds
    @unsure += nanoseconds - least
  end

  def holds(state, &block)
    waits(state, @held, &block)
  end

  def to_h
    { tid: @tid, queued: queued, waits: @waits, held: @held, unsure: @unsure }
  end
end

module Scenarios
  module_function

  def end_child(pid)
    Process.kill(:KILL, pid)
    Process.wait(pid)
  end

  # Of the same machine: a thread of the kernel may have to get a CPU first.
  def connect(m, server)
    m.waits(:network) { TCPSocket.new('127.0.0.1', server.addr[1]) }
  end

  def sleep_(m)
    m.waits(:timer) { sleep 0.05 } while m.more?
  end

  def burn(m)
    nil while m.more?
  end

  def pipe(m)
    read, write = IO.pipe
    pid = fork { loop { sleep(0.03) && write.syswrite('x') } }
    m.waits(:pipe) { read.readpartial(1) } while m.more?
  ensure
    end_child(pid)
  end

  def socket(m)
    server = TCPServer.new('127.0.0.1', 0)
    pid = fork do
      peer = server.accept
      loop { sleep(0.03) && peer.write('x') }
    end
    client = connect(m, server)
    m.waits(:network) { client.readpartial(1) } while m.more?
  ensure
    end_child(pid)
  end

  def select_(m)
    read, = IO.pipe
    while m.more?
      m.waits(:pipe) { IO.select([read], nil, nil, 0.03) }
      m.waits(:timer) { IO.select(nil, nil, nil, 0.02) }
    end
  end

  # Several descriptors, which are all of one kind; there is something to read from the last one.
  def select_several(m)
    pipes = Array.new(3) { IO.pipe }
    pid = fork { loop { sleep(0.03) && pipes.last[1].syswrite('x') } }
    while m.more?
      ready, = m.waits(:pipe) { IO.select(pipes.map(&:first)) }
      ready[0].readpartial(1)
    end
  ensure
    end_child(pid)
  end

  def select_sockets(m)
    server = TCPServer.new('127.0.0.1', 0)
    pid = fork do
      peers = Array.new(3) { server.accept }
      loop { sleep(0.03) && peers.last.write('x') }
    end
    clients = Array.new(3) { connect(m, server) }
    while m.more?
      ready, = m.waits(:network) { IO.select(clients) }
      ready[0].readpartial(1)
    end
  ensure
    end_child(pid)
  end

  def child(m)
    while m.more?
      pid = fork { sleep 0.1 }
      m.waits(:child) { Process.wait(pid) }
    end
  end

  # Somebody else holds it for some time, and sleeps.
  def mutex(m)
    mutex = Mutex.new
    helper = Thread.new { mutex.synchronize { sleep 0.05 } while m.more? }
    while m.more?
      sleep 0.001 until mutex.locked? || !helper.alive?
      m.waits(:lock) { mutex.lock }
      mutex.unlock
    end
    m.waits(:lock) { mutex.synchronize { nil } }
    helper.join
  end

  def monitor(m)
    monitor = Monitor.new
    helper = Thread.new { monitor.synchronize { sleep 0.05 } while m.more? }
    while m.more?
      sleep 0.001 until monitor.mon_locked? || !helper.alive?
      m.waits(:lock) { monitor.enter }
      monitor.exit
    end
    m.waits(:lock) { monitor.synchronize { nil } }
    helper.join
  end

  def queue(m)
    queue = Queue.new
    helper = Thread.new { queue << sleep(0.03) while m.more? }
    m.waits(:lock) { queue.pop } while m.more?
    helper.kill
  end

  def condition(m)
    mutex = Mutex.new
    condition = ConditionVariable.new
    helper = Thread.new { sleep(0.02) && mutex.synchronize { condition.signal } while m.more? }
    m.waits(:lock) { mutex.synchronize { condition.wait(mutex, 0.1) } } while m.more?
    helper.kill
  end

  def flock(m)
    path = "/tmp/rbpf-states-#{Process.pid}"
    file = File.open(path, 'w')
    pid = fork { File.open(path) { |f| loop { f.flock(File::LOCK_EX) && sleep(0.05) && f.flock(File::LOCK_UN) && sleep(0.005) } } }
    while m.more?
      sleep 0.003
      m.waits(:lock) { file.flock(File::LOCK_EX) }
      file.flock(File::LOCK_UN)
    end
  ensure
    end_child(pid)
    File.unlink(path)
  end

  # The helper measures it, since a process that is stopped cannot.
  def stopped(m)
    read, write = IO.pipe
    helper = fork { write.puts(Array.new(3) { stop_parent(m) }.transpose.map(&:sum).join(' ')) }
    write.close
    nil while !Process.wait(helper, Process::WNOHANG) && sleep(0.02)
    m.waited(:stopped, *read.gets.split.map { |ns| Integer(ns) })
  end

  # How long it was at most: from before it is told to stop, which it does when it gets a CPU, to after it is told to go on; and at
  # least: from when it is seen to have stopped to before it is told to go on.
  def stop_parent(m)
    told = m.wall
    Process.kill(:STOP, Process.ppid)
    sleep 0.0005 until stopped?(m.tid)
    seen = m.wall
    sleep 0.3
    last = m.wall
    Process.kill(:CONT, Process.ppid)
    [m.wall - told, last - seen]
  ensure
    sleep 0.1
  end

  # A thread of the parent. Where there is no /proc it is as soon as it was told.
  def stopped?(tid)
    File.read("/proc/#{Process.ppid}/task/#{tid}/stat").include?(') T ')
  rescue Errno::ENOENT
    true
  end

  # C code that sleeps and does not give the GVL away.
  def held(m)
    require 'fiddle'
    usleep = Fiddle::Function.new(Fiddle::Handle::DEFAULT['usleep'], [Fiddle::TYPE_INT],
                                  Fiddle::TYPE_INT, need_gvl: true)
    m.holds(:timer) { usleep.call(30_000) } while m.more?
  end

  # A file that is not in the page cache, read in large pieces.
  def cold_file(m)
    with_file(m, 8 << 20) do |file|
      while m.more?
        forget_pages(m, file)
        file.seek(0)
        m.waits(:disk) { nil while file.read(1 << 20) }
      end
    end
  end

  def fsync(m)
    with_file(m, 4096) do |file|
      while m.more?
        file.write('x' * 4096)
        m.waits(:disk) { file.fsync }
      end
    end
  end

  # Memory that is a file's, none of it in the page cache: reading a byte of it does not give the GVL away.
  def fault(m)
    with_file(m, 8 << 20) do |file|
      memory = Native.map(file)
      while m.more?
        Native.forget_memory(memory)
        forget_pages(m, file)
        m.holds(:fault) { 0.step(memory.size - 1, 65_536) { |at| memory[at] } }
      end
    end
  end

  # Memory that is not there yet, but needs no disk: that is work of the kernel, and no wait.
  def minor_fault(m)
    memory = Native.anonymous(32 << 20)
    while m.more?
      m.waits(:fault) { Native.call(:memset, memory, 1, memory.size) }
      Native.forget_memory(memory)
    end
  end

  # Nothing but those, into memory that is there.
  def system_calls(m)
    text = 'x' * (1 << 15)
    buffer = +''
    IO.pipe do |read, write|
      # The pipe has room for it: neither call waits.
      while m.more?
        write.syswrite(text)
        read.sysread(text.size, buffer)
      end
    end
  end

  # One of ten that want a Mutex, each for some time.
  def convoy(m)
    mutex = Mutex.new
    others = Array.new(9) { Thread.new { mutex.synchronize { sleep 0.005 } while m.more? } }
    while m.more?
      m.waits(:lock) { mutex.lock }
      m.waits(:timer) { sleep 0.005 }
      mutex.unlock
    end
    m.waits(:join) { others.each(&:join) }
  end

  # The middle of three: what comes after it is slower.
  def pipeline(m)
    from = SizedQueue.new(2)
    to = SizedQueue.new(2)
    helpers = [Thread.new { loop { from << sleep(0.005) } }, Thread.new { loop { sleep(0.02) && to.pop } }]
    m.waits(:lock) { to << from.pop } while m.more?
    helpers.each(&:kill)
  end

  # Each name is asked for once, and its server answers slowly.
  def names(m)
    socket = UDPSocket.new
    socket.bind(ARGV.fetch(2), 53)
    pid = fork { loop { answer(socket) } }
    number = 0
    m.waits(:network) { Addrinfo.getaddrinfo("n#{number += 1}.test.", 80, :INET, :STREAM) } while m.more?
  ensure
    end_child(pid)
  end

  # An address for the only question in a message (RFC 1035): 127.0.0.1.
  def answer(socket)
    question, from = socket.recvfrom(512)
    sleep 0.03
    header = question[0, 2] + [0x8180, 1, 1, 0, 0].pack('n*')
    record = [0xc00c, 1, 1, 60, 4, 127, 0, 0, 1].pack('nnnNnC4')
    name_and_type = question.byteslice(12..)[/\A.*?\0.{4}/mn]
    socket.send(header + name_and_type + record, 0, from[3], from[1])
  end

  def timeout(m)
    while m.more?
      m.waits(:timer) do
        Timeout.timeout(0.03) { sleep 1 }
      rescue Timeout::Error
        nil
      end
    end
  end

  def epoll(m)
    fd = Native.call(:epoll_create1, 0)
    m.waits(:network) { Native.call(:epoll_wait, fd, Fiddle::Pointer.malloc(16), 1, 30) } while m.more?
  end

  # Four that burn on one CPU: what this one does not get of it the kernel says.
  def crowd(m)
    Native.stay_on_one_cpu
    pids = Array.new(3) { fork { nil while m.more? } }
    nil while m.more?
    pids.each { |pid| Process.wait(pid) }
  end

  # By whatever interrupts the first CPU.
  def interrupted(m)
    Native.stay_on_one_cpu
    nil while m.more?
  end

  # Children that begin as copies of a process that waits.
  def forks(m)
    read, write = IO.pipe
    helper = Thread.new do
      loop do
        Process.wait(fork { sleep 0.01 })
        write.syswrite('x')
        sleep 0.01
      end
    end
    m.waits(:pipe) { read.readpartial(1) } while m.more?
    helper.kill
  end

  # Fibers of one thread: the scheduler waits for all of them, for a pipe and at times for a time.
  def scheduler(m)
    read, write = IO.pipe
    pid = fork { loop { sleep(0.03) && write.syswrite('x') } }
    Fiber.set_scheduler(SelectScheduler.new(m))
    Fiber.schedule { sleep 0.01 while m.more? }
    Fiber.schedule { read.readpartial(1) while m.more? }
    Fiber.scheduler.close
    Fiber.set_scheduler(nil)
  ensure
    end_child(pid)
  end

  # The other thread has the GVL when this one has not.
  def gvl(m)
    helper = nil
    m.waits(:gvl) do
      # Not before: to ask the kernel what it measures takes the GVL, too.
      helper = Thread.new { nil while m.more? }
      nil while m.more?
    end
    helper.join
  end

  # Another Ractor burns, which has a GVL of its own: this thread does not wait for that.
  def beside_ractor(m)
    ractor = Ractor.new(m.deadline) { |deadline| nil while Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond) < deadline }
    m.waits(:gvl) { nil while m.more? }
    ractor.respond_to?(:value) ? ractor.value : ractor.take
  end

  # Two threads of another Ractor want the GVL of that: one of them measures.
  def in_ractor(m)
    ractor = Ractor.new(m.deadline) do |deadline|
      own = Measured.new(0, deadline)
      helper = nil
      own.waits(:gvl) do
        helper = Thread.new { nil while own.more? }
        nil while own.more?
      end
      helper.join
      own.to_h
    end
    ractor.take
  end
end

# What fibers need that read from pipes and sleep.
class SelectScheduler
  def initialize(measured)
    @measured = measured
    @reading = {}
    @sleeping = {}
  end

  def fiber(&block)
    Fiber.new(blocking: false, &block).tap(&:resume)
  end

  def io_wait(io, events, _timeout)
    @reading[io] = Fiber.current
    Fiber.yield
    events
  end

  def kernel_sleep(seconds)
    @sleeping[Fiber.current] = @measured.wall + (seconds * 1e9).to_i
    Fiber.yield
  end

  # Runs the fibers until all have ended.
  def close
    until @reading.empty? && @sleeping.empty?
      ready, = @measured.waits(:pipe) { IO.select(@reading.keys, nil, nil, timeout) }
      due = @sleeping.select { |_, at| at <= @measured.wall }.keys
      fibers = Array(ready).map { |io| @reading.delete(io) } + due.each { |fiber| @sleeping.delete(fiber) }
      fibers.each(&:resume)
    end
  end

  # No fiber waits for another one here.
  def block(*); end
  def unblock(*); end

  private

  def timeout
    [@sleeping.values.min - @measured.wall, 0].max / 1e9 unless @sleeping.empty?
  end
end

# A file of so many bytes, which is on a disk if there is one. All that is done to it may have to wait for that.
def with_file(measured, size)
  path = "/tmp/rbpf-states-#{Process.pid}"
  file = measured.waits(:disk) { File.open(path, 'w+') }
  measured.waits(:disk) { file.write('x' * size) && file.fsync }
  yield file
ensure
  measured.waits(:disk) { file.close || File.unlink(path) }
end

# The kernel asks all CPUs to let go of them, and waits for that.
def forget_pages(measured, file)
  measured.waits(:other) { file.advise(:dontneed) }
end

# What Ruby has no method for.
module Native
  require 'fiddle'

  PROT_READ = 1
  MAP_SHARED = 1
  MADV_RANDOM = 1
  MADV_DONTNEED = 4
  PROT_WRITE = 2
  MAP_PRIVATE = 2
  MAP_ANONYMOUS = 0x20

  module_function

  def call(name, *args)
    types = args.map { |arg| arg.is_a?(Integer) ? Fiddle::TYPE_LONG : Fiddle::TYPE_VOIDP }
    function = Fiddle::Function.new(Fiddle::Handle::DEFAULT[name.to_s], types, Fiddle::TYPE_LONG)
    function.call(*args)
  end

  def map(file)
    address = call(:mmap, 0, file.size, PROT_READ, MAP_SHARED, file.fileno, 0)
    call(:madvise, address, file.size, MADV_RANDOM)
    Fiddle::Pointer.new(address, file.size)
  end

  def anonymous(size)
    Fiddle::Pointer.new(call(:mmap, 0, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), size)
  end

  def forget_memory(memory)
    call(:madvise, memory.to_i, memory.size, MADV_DONTNEED)
  end

  # On the first one that it may use.
  def stay_on_one_cpu
    mask = Fiddle::Pointer.malloc(128)
    call(:sched_getaffinity, 0, 128, mask)
    bits = mask[0, 8].unpack1('Q')
    mask[0, 128] = [bits & -bits].pack('Q').ljust(128, "\0")
    call(:sched_setaffinity, 0, 128, mask)
  end
end

# In a thread of its own, which does nothing else.
def measure(scenario, seconds)
  Thread.new do
    measured = Measured.new(seconds)
    of_another = Scenarios.public_send(scenario, measured)
    { scenario: scenario }.merge(scenario == 'in_ractor' ? of_another : measured.to_h)
  end.value
end

# All at once.
def measure_in_children(scenarios, seconds)
  children = scenarios.map do |scenario|
    IO.popen('-') || begin
      Oracle.say(measure(scenario, seconds))
      exit!(0)
    end
  end
  children.map { |child| JSON.parse(child.read) }
end

scenarios = ARGV[0].split(',')
seconds = Float(ARGV[1])
Oracle.say(waiting: true, pid: Process.pid)
Oracle.wait_for_test
threads = scenarios.size == 1 ? [measure(scenarios[0], seconds)] : measure_in_children(scenarios, seconds)
Oracle.say(ready: true, threads: threads)
Oracle.wait_for_test
