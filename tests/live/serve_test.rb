# SPDX-License-Identifier: GPL-2.0-only
# frozen_string_literal: true

# What rbpf serve shows of a process that it watches is what a recording of the same seconds has, whatever
# its clients do. tests/validate/serve.mjs has the browser.

require_relative 'support'
require 'json'
require 'net/http'
require 'socket'

class ServeTest < LiveTest
  NOBODY = 65_534

  def serve(*arguments)
    @server = Rbpf::Running.new('serve', *arguments)
    Live.wait_until('the URL', pid: @server.pid) { @server.out.include?("\n") || @server.ended? }
    @url = URI(@server.out.strip)
  end

  def get(what)
    Net::HTTP.get_response(@url + what)
  end

  def json(what)
    answer = get(what)
    assert_equal '200', answer.code, answer.body
    JSON.parse(answer.body)
  end

  def state
    json('state.json')
  end

  def wait_for_seconds(count)
    Live.wait_until("#{count} seconds", pid: @server.pid) { state['to'] >= count }
  end

  # What a command says as JSON of the recording of a range.
  def said(range, *command)
    Tempfile.create('rbpf-serve') do |file|
      file.binmode
      file.write(get("rbpf.data?#{range}").body)
      file.close
      result = Rbpf.run(*command, '-i', file.path)
      assert_equal 0, result.code, result.err
      JSON.parse(result.out)
    end
  end

  # As rbpf report shows it.
  def report(range, *options)
    said(range, 'report', '--json', *options)
  end

  # Wrong tokens, wrong hosts, half requests that hang, snapshots of everything: in turns, until told to end.
  def besiege
    Thread.new do
      hanging = []
      until @besieged
        20.times { Net::HTTP.get_response(URI("http://#{@url.host}:#{@url.port}/x/")) rescue nil }
        hanging << TCPSocket.new(@url.host, @url.port).tap { |s| s.write('GET /') } rescue nil
        hanging.shift.close if hanging.size > 30
        get("flame.svg?from=0s&to=#{1 + rand(3)}s") rescue nil
      end
      hanging.compact.each(&:close)
    end
  end

  def test_numbers_are_those_of_a_recording_of_the_same_seconds
    target = start('burn.rb', 3, 2)
    target.wait_for('waiting')
    before = Live.cpu_time(target.pid)
    serve('-p', target.pid, '-F', 499)
    clients = besiege
    target.go
    target.wait_for('ready')
    kernel = Live.cpu_time(target.pid) - before
    wait_for_seconds(state['to'] + 2)
    @besieged = true
    clients.join
    range = "from=0s&to=#{state['to']}s"
    [%w[by function], %w[by thread], %w[by process]].each do |by, what|
      assert_equal report(range, "--#{by}", what)['rows'], json("report.json?#{range}&#{by}=#{what}")['rows']
    end
    summary = json("report.json?#{range}")['summary']
    assert_equal 0, summary['lost']
    assert_cpu_ns(kernel * 1e9, summary['selected_ns'], 0.05)
    assert_match(/no sample of the window passes/, get('report.json?include=nowhere').body)
    assert_equal '200', get("flame.svg?from=1s&to=2s&base-from=0s&base-to=1s").code
    target.finish
    Live.wait_until('the end of the process to be said', pid: @server.pid) { !state['live'] }
    assert_equal report(range)['rows'], json("report.json?#{range}")['rows']
    result = @server.stop
    assert_equal 0, result.code, result.err
  end

  # A range has what was waited then, also of waits that began before it and of such that go on.
  def test_waits_are_in_the_seconds_that_they_were_in
    target = start('sleepers.rb')
    target.wait_for('waiting')
    threads = Dir.children("/proc/#{target.pid}/task").size
    serve('--mode', 'states', '-p', target.pid)
    assert_equal '"event":"cpu","waits":true', get('').body[/"event":"\w+","waits":\w+/], 'the page offers to show them'
    wait_for_seconds(4)
    [[1, 2], [2, 4], [0, 4]].each do |from, to|
      range = "from=#{from}s&to=#{to}s"
      waited = threads * (to - from) * 1e9
      summary = json("report.json?#{range}&event=wait")['summary']
      assert_in_delta waited, summary['selected_ns'], 0.03 * waited, range
      rows = report(range, '--event', 'wait', '--by', 'time')['rows']
      assert_equal to - from, rows.size, range
      rows.each { |row| assert_in_delta threads * 1e9, row['self_ns'], 0.03 * threads * 1e9, range }
    end
    # They are added up there, so their lengths are not told.
    rows = report('from=0s&to=4s', '--state', 'timer')['rows']
    refute_empty rows
    rows.each { |row| refute_includes row, 'waits' }
    target.finish
  end

  # What a browser saves has no arguments of a program that may be secret, nor rbpf's own.
  def test_arguments_are_left_out
    serve('--no-arguments', '--as-root', '--', *ruby.command('-e', 'loop { 1 + 1 } # secret'))
    wait_for_seconds(2)
    saved = said('from=0s&to=2s', 'export', '-f', 'json')
    assert_equal [ruby.command[0]], saved['processes'].map { |process| process['command'] }
    assert_includes JSON.generate(saved), '"rbpf serve"'
    refute_match(/secret|--no-arguments/, JSON.generate(saved))
    refute_match(/secret/, get('').body + get('state.json').body)
    assert_equal 0, @server.stop.code
  end

  # One of more samples than are written at once (50,000) is written by a fork of the process that samples, which the page
  # faults of children that have ended tell.
  def test_long_snapshots
    serve('-F', 10_000, '--', RbConfig.ruby, '-e', 'loop { 1 + 1 }')
    samples = ->(range) { json("report.json?#{range}")['summary']['selected_samples'] }
    wait_for_seconds(2)
    samples.('from=0s&to=1s')
    before = faults_of_children(@server.pid)
    samples.('from=1s&to=2s')
    assert_equal before, faults_of_children(@server.pid), 'a short snapshot is written without a fork'
    range = nil
    loop do
      wait_for_seconds(state['to'] + 3)
      range = "from=0s&to=#{state['to']}s"
      break if samples.(range) > 50_000
    end
    assert_equal report(range)['rows'], json("report.json?#{range}")['rows']
    assert_operator faults_of_children(@server.pid), :>, before
    result = @server.stop
    assert_equal 0, result.code, result.err
  end

  def faults_of_children(pid)
    File.read("/proc/#{pid}/stat")[/\) (.*)/, 1].split[8].to_i
  end

  def test_what_serves_has_no_privileges
    serve('--', RbConfig.ruby, '-e', 'loop { 1 + 1 }')
    wait_for_seconds(2)
    pid = Dir.children('/proc').grep(/\A\d+\z/).find do |child|
      File.read("/proc/#{child}/comm") == "rbpf-serve\n" && File.read("/proc/#{child}/stat")[/\) \S (\d+)/, 1].to_i == @server.pid
    rescue SystemCallError
      nil
    end
    status = File.read("/proc/#{pid}/status")
    assert_match(/^Uid:#{"\t#{NOBODY}" * 4}$/, status)
    assert_match(/^CapEff:\t0+$/, status)
    assert_match(/^CapBnd:\t0+$/, status)
    assert_match(/^Seccomp:\t2$/, status)
    # /dev/null, the listening socket, the channel, epoll; and connections.
    names = Dir.children("/proc/#{pid}/fd").map { |fd| File.readlink("/proc/#{pid}/fd/#{fd}") }
    assert_empty(names.grep_v(%r{\A(/dev/null|socket:.*|anon_inode:.*|/memfd:rbpf-.*)\z}))
    @server.signal(:TERM)
    result = @server.wait
    assert_equal 0, result.code, result.err
    refute_path_exists "/proc/#{pid}"
  end

  def teardown
    @server&.signal(:KILL)
    super
  end
end
