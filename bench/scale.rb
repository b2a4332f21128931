# SPDX-License-Identifier: GPL-2.0-only
# frozen_string_literal: true

# make bench-scale: a machine full of Rubies, recorded whole, and what that takes of rbpf: memory
# and descriptors must not grow with time, and nothing may be lost that is not counted.
#
#   PROCESSES=500  Rubies            SWITCHES=20000  context switches a second, by threads
#   THREADS=10     of each           FORKS=200       a second, of children that live some ms
#   MINUTES=5                        MEMLIMIT=512M   of rbpf

require 'json'
require 'tmpdir'

RBPF = File.expand_path('../rbpf', __dir__)
PROCESSES = Integer(ENV.fetch('PROCESSES', '500'))
THREADS = Integer(ENV.fetch('THREADS', '10'))
SWITCHES = Integer(ENV.fetch('SWITCHES', '20000'))
FORKS = Integer(ENV.fetch('FORKS', '200'))
MINUTES = Float(ENV.fetch('MINUTES', '5'))
MEMLIMIT = ENV.fetch('MEMLIMIT', '512M')

# A process of many threads, each of which wakes up now and then and does a little; some methods are
# made anew all the time.
def crowd(interval)
  threads = Array.new(THREADS - 1) do |i|
    Thread.new do
      loop do
        sleep interval * (0.5 + rand)
        i.times { |k| k.to_s }
        eval("def crowd_#{rand(1000)}; 1 + 1; end; crowd_#{rand(1)} if false", TOPLEVEL_BINDING) if rand < 0.01
      end
    end
  end
  threads.each(&:join)
end

def nursery
  loop do
    sleep(1.0 / FORKS)
    pid = fork do
      200.times { |i| i.to_s * 3 }
      exit!(0)
    end
    Process.detach(pid)
  end
end

def status(pid)
  text = File.read("/proc/#{pid}/status")
  { rss: text[/VmRSS:\s+(\d+)/, 1].to_i / 1024, fds: Dir.children("/proc/#{pid}/fd").size }
end

def switches
  File.read('/proc/stat')[/^ctxt (\d+)/, 1].to_i
end

OWNER = Process.pid
file = File.join(Dir.mktmpdir('rbpf-scale'), 'scale.data')
at_exit { system('rm', '-rf', File.dirname(file)) if Process.pid == OWNER }
interval = PROCESSES * (THREADS - 1) * 2.0 / SWITCHES
pids = Array.new(PROCESSES - 1) { fork { crowd(interval) } } << fork { nursery }
sleep 5
rbpf = Process.spawn(RBPF, 'record', '--all-ruby', '--memlimit', MEMLIMIT, '-o', file, err: "#{file}.err")
sleep 5
steps = [(MINUTES * 60 / 10), 1].max
puts format('%<a>8s %<b>10s %<c>8s %<d>14s %<e>12s', a: 'seconds', b: 'RSS MiB', c: 'fds', d: 'switches/s', e: 'file MB')
10.times do |i|
  before = switches
  sleep steps
  now = status(rbpf)
  puts format('%<a>8d %<b>10d %<c>8d %<d>14d %<e>12.1f', a: (i + 1) * steps, b: now[:rss], c: now[:fds],
                                                         d: (switches - before) / steps, e: File.size(file) / 1e6)
end
Process.kill(:TERM, rbpf)
Process.wait(rbpf)
pids.each { |pid| Process.kill(:KILL, pid) }
pids.each { |pid| Process.wait(pid) }
puts File.read("#{file}.err")
system(RBPF, 'report', '-n', '8', '-i', file)
