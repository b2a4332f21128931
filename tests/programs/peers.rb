# SPDX-License-Identifier: GPL-2.0-only
# frozen_string_literal: true

# Threads that each wait for an answer of another server, which takes its time, or for a file to be on the disk. Says how long
# they did, in ns, by what they waited for, and for what the servers did, which are a process of their own:
#
#   {"waited": {"127.0.0.1:20123": NS, "/DIR/app.sock": NS, "journal.log": NS, ...}, "servers": ["clients of :20123", ...]}
#
#   ruby peers.rb DIR SECONDS    the name of DIR is to be short: of paths the end is known

require 'json'
require 'socket'

# A server on a port that the kernel gives to nobody, and what its clients call it.
def tcp_server(host)
  port = rand(10_000...20_000)
  server = TCPServer.new(host, port)
  [server, "#{host.include?(':') ? "[#{host}]" : host}:#{port}", "clients of :#{port}", -> { TCPSocket.new(host, port) }]
rescue Errno::EADDRINUSE
  retry
end

def unix_server(path)
  [UNIXServer.new(path), path, "clients of #{path}", -> { UNIXSocket.new(path) }]
end

# Answers each line of its only client, late.
def serve(server)
  client = server.accept
  while client.gets
    sleep 0.02
    client.puts('done')
  end
end

def now
  Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond)
end

# How long what is given took, again and again until @stop.
def took_until(stop)
  from = now
  yield while now < stop
  now - from
end

dir = ARGV[0]
stop = now + (Float(ARGV[1]) * 1e9)
servers = [tcp_server('127.0.0.1'), unix_server(File.join(dir, 'app.sock'))]
servers << tcp_server('::1') if File.exist?('/proc/net/if_inet6')
selected = tcp_server('127.0.0.1')
servers << selected
child = fork do
  servers.map { |server, *| Thread.new { serve(server) } }.each(&:join)
end
clients = (servers - [selected]).map do |_, name, _, connect|
  Thread.new do
    socket = connect.call
    ns = took_until(stop) do
      socket.puts('do')
      socket.gets
    end
    socket.close
    [name, ns]
  end
end
file = File.open(File.join(dir, 'journal.log'), 'w')
clients << Thread.new do
  [File.basename(file), took_until(stop) { file.write('x') && file.fsync && sleep(0.001) }]
end
# The main thread also waits for a descriptor of the VM, for signals, and select() has a set with both.
socket = selected[3].call
ns = took_until(stop) do
  socket.puts('do')
  IO.select([socket])
  socket.gets
end
socket.close
waited = clients.to_h(&:value).merge(selected[1] => ns)
Process.wait(child)
puts JSON.generate(waited: waited, servers: servers.map { |_, _, clients_name| clients_name })
