# SPDX-License-Identifier: GPL-2.0-only
# frozen_string_literal: true

# Asks a server, a process of its own, that mostly answers soon, and now and then late. Says who it is, how long each answer took
# by the clock of who asked, and how long by the server's, in ns:
#
#   {"peer": "127.0.0.1:10123", "asked": [NS, ...], "served": [NS, ...]}
#
#   ruby answers.rb TIMES SOON LATE EVERY    seconds; each answer with a number that EVERY divides is late

require 'json'
require 'socket'

TIMES = Integer(ARGV[0])
SOON, LATE = ARGV[1, 2].map { |s| Float(s) }
EVERY = Integer(ARGV[3])

def now
  Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond)
end

# On a port that the kernel gives to nobody: that is how a server is told from its clients.
def listen
  TCPServer.new('127.0.0.1', rand(10_000...20_000))
rescue Errno::EADDRINUSE
  retry
end

server = listen
child = fork do
  client = server.accept
  while (line = client.gets)
    from = now
    sleep((line.to_i % EVERY).zero? ? LATE : SOON)
    client.syswrite("#{now - from}\n")
  end
end
socket = TCPSocket.new('127.0.0.1', server.addr[1])
asked, served = Array.new(TIMES) do |i|
  socket.syswrite("#{i}\n")
  from = now
  answer = socket.gets
  [now - from, Integer(answer)]
end.transpose
socket.close
Process.wait(child)
puts JSON.generate(peer: "127.0.0.1:#{server.addr[1]}", asked: asked, served: served)
