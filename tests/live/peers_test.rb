# SPDX-License-Identifier: GPL-2.0-only
# frozen_string_literal: true

# What waits were for: who is at the other end of a socket, and which file (tests/programs/peers.rb).

require_relative 'support'

class PeersTest < LiveTest
  SECONDS = 1.5
  PART = 0.03
  LENGTH_PART = 0.05 # what who asks may do before it waits
  STEP = 1.0 / 64 # how exact percentiles are
  SLACK = 25_000_000 # ns: what the program does between its waits, and its first connection

  def test_peers_are_those_that_the_program_waited_for
    Dir.mktmpdir('p', ruby.outside('/tmp')) do |dir|
      said = record_peers(dir)
      rows = by_peer
      journal = said['waited'].delete('journal.log')
      # An answer that has come is not waited for any more, but the CPU and the GVL are, on a busy machine for long.
      coming_back = by_peer('--include', '^Object#took_until$').values_at(['', 'wait-cpu'], ['', 'gvl']).sum { |row| row ? row['total_ns'] : 0 }
      said['waited'].each do |peer, ns|
        row = rows.fetch([peer, 'network'])
        assert_operator row['total_ns'], :<=, ns + SLACK, "#{peer}: #{rows}"
        assert_operator row['total_ns'], :>=, (ns * (1 - PART)) - SLACK - coming_back - stolen_ns, "#{peer}: #{rows}"
        assert_operator row['waits'], :>, 10, peer
      end
      said['servers'].each { |clients| assert_operator rows.fetch([clients, 'network'])['total_ns'], :>, 0, rows }
      assert_operator journal, :>, rows.dig(['journal.log', 'disk'], 'total_ns') || 0, rows
    end
  end

  # An answer is waited for from when it was asked for, at the latest when the server is at work, to when it comes, which is before
  # who asked has it: on a busy machine long before. 270 are of 5 ms, 30 of 50 ms.
  def test_percentiles_are_those_that_the_program_measured
    said = record('answers.rb', '300', '0.005', '0.05', '10')
    row = by_peer.fetch([said['peer'], 'network'])
    asked, served = said.values_at('asked', 'served').map(&:sort)
    assert_equal asked.size, row['waits'], row
    { 'p50_ns' => 50, 'p95_ns' => 95, 'p99_ns' => 99 }.each do |key, percent|
      least, most = [served, asked].map { |lengths| lengths[(lengths.size * percent / 100) - 1] }
      assert_operator row[key], :>=, least * (1 - LENGTH_PART), "#{key}: #{row}, #{said}"
      assert_operator row[key], :<=, most * (1 + STEP), "#{key}: #{row}, #{said}"
    end
    assert_operator row['p99_ns'], :<=, row['longest_wait_ns']
  end

  def test_nothing_is_told_of_them_if_that_is_not_wanted
    Dir.mktmpdir('p', ruby.outside('/tmp')) do |dir|
      record_peers(dir, '--no-peers')
      assert_equal [''], by_peer.keys.map(&:first).uniq
      assert_operator by_peer.fetch(['', 'network'])['total_ns'], :>, SECONDS * 1e9
    end
  end

  # Who attaches to a process that hangs sees what it hangs at, also where only its memory tells the descriptor.
  def test_a_wait_that_began_before
    server = "s = TCPServer.new('127.0.0.1', 0); t = TCPSocket.new('127.0.0.1', s.addr[1]); $stdout.sync = true"
    said = 'puts %({"port": #{s.addr[1]}}); puts %({"waiting": true}); IO.select([t])'
    target = start_command(ruby.command('-rsocket', '-e', "#{server}; #{said}"))
    port = target.wait_for('port')['port']
    target.wait_for('waiting')
    Live.wait_until('it to wait') { peers_of(target.pid) == ["127.0.0.1:#{port}"] }
    rbpf = attach([target], '--mode', 'wall')
    sleep 1
    assert_equal 0, rbpf.stop.code
    # A thread that hangs has no CPU time: what is shown of this mode is all time.
    assert_equal 'wall', recording.summary['event']
    assert_operator recording.row('IO.select')['self_ns'], :>, 0.8e9
    assert_operator by_peer.fetch(["127.0.0.1:#{port}", 'network'])['total_ns'], :>, 0.8e9
  end

  # poll() goes on after a stop as another system call, with the time that is left: on arm64 there is only ppoll(), which is called
  # anew.
  if RUBY_PLATFORM.start_with?('x86_64')
    POLL = <<~'RUBY'
      require 'socket'
      server = TCPServer.new('127.0.0.1', 0)
      client = TCPSocket.new('127.0.0.1', server.addr[1])
      $stdout.sync = true
      puts %({"waiting": true, "port": #{server.addr[1]}})
      $stdin.gets
      waited_for = [client.fileno, 1, 0].pack('lss')
      syscall(7, [waited_for].pack('p').unpack1('J'), 1, 100_000)
    RUBY

    def test_a_wait_that_goes_on_after_a_stop
      target = start_command(ruby.command('-e', POLL))
      rbpf = attach([target], '--mode', 'states')
      target.go
      sleep 0.1 until peers_of(target.pid).any?
      Process.kill(:STOP, target.pid)
      Live.wait_until('it to stop') { File.read("/proc/#{target.pid}/stat").include?(') T ') }
      Process.kill(:CONT, target.pid)
      Live.wait_until('it to go on') { File.read("/proc/#{target.pid}/stat").include?(') S ') }
      went_on = Live.now
      sleep SECONDS
      after = Live.now - went_on
      assert_equal 0, rbpf.stop.code
      peer = "127.0.0.1:#{target.wait_for('port')['port']}"
      assert_operator by_peer.fetch([peer, 'network'])['total_ns'], :>, (after * 1e9) - SLACK, by_peer
    end
  end

  private

  def peers_of(pid)
    Rbpf.dump(pid)['threads'].filter_map { |thread| thread['peer'] } - ['']
  end

  # Paths are as the program sees them.
  def record_peers(dir, *options)
    inside = dir.delete_prefix(ruby.outside('/').chomp('/'))
    record('peers.rb', inside, SECONDS.to_s, options: options)
  end

  # What the program says.
  def record(program, *args, options: [])
    command = ruby.command(ruby.program(program), *args)
    result = Rbpf.run('record', '-o', path('rbpf.data'), '--mode', 'states', '--as-root', *options, '--', *command)
    assert_equal 0, result.code, result.err
    JSON.parse(result.out)
  end

  def by_peer(*options)
    recording.report('--by', 'peer', '-n', '0', *options)['rows'].to_h { |row| [row.values_at('peer', 'state'), row] }
  end
end
