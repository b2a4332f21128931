# SPDX-License-Identifier: GPL-2.0-only
# frozen_string_literal: true

# What top prints agrees with what the program says of itself, with the kernel's account, and with what a
# recording of the same time has.

require_relative 'support'

class TopTest < LiveTest
  BURNED = %w[Burner#heavy Burner#light Array#sort].freeze

  def objects(result)
    assert_equal 0, result.code, result.err
    result.out.lines.map { |line| JSON.parse(line) }
  end

  def sum(seconds, list, key, &select)
    seconds.sum { |second| second[list].select(&select).sum { |row| row[key] } }
  end

  def top(*arguments)
    Rbpf::Running.new('top', '--json', '-n', 0, *arguments)
  end

  # By the kernel's account.
  def cpu_ns(pid)
    Live.cpu_time(pid) * 1e9
  end

  # The seconds of a program that burns, from before it begins to after its end; what it said of itself; and
  # the kernel's account of it.
  def burned(*arguments)
    target = start('burn.rb', 2.5, 2)
    target.wait_for('waiting')
    before = cpu_ns(target.pid)
    running = top('-p', target.pid, *arguments)
    Live.wait_until('a first second', pid: running.pid) { running.out.include?("\n") }
    target.go
    said = target.wait_for('ready')
    kernel = cpu_ns(target.pid) - before
    target.finish
    [objects(running.wait), said, kernel]
  end

  def assert_adds_up(seconds)
    seconds.each do |second|
      %w[processes threads requests].each do |list|
        assert_equal second['cpu_ns'], second[list].sum { |row| row['ns'] }, list
        assert_equal second['samples'], second[list].sum { |row| row['samples'] }, list
      end
      assert_equal second['cpu_ns'], second['methods'].sum { |row| row['self_ns'] }
    end
  end

  def test_json_agrees_with_the_program_and_the_kernel
    seconds, said, kernel = burned('-F', 997)
    assert_adds_up(seconds)
    assert_cpu_ns(kernel, seconds.sum { |second| second['cpu_ns'] }, 0.05)
    assert_equal 0, seconds.sum { |second| second['lost'] }
    BURNED.each do |label|
      ns = sum(seconds, 'methods', 'total_ns') { |row| row['label'] == label }
      assert_in_delta said['spent'][label], ns, 0.1 * said['spent'][label] + 3e7, label
    end
  end

  def test_seconds_follow_each_other
    seconds, = burned
    assert_operator seconds.size, :>=, 3
    seconds.each_cons(2) { |a, b| assert_equal a['time_ns'] + 1_000_000_000, b['time_ns'] }
    assert_equal [1_000_000_000], seconds[0..-2].map { |second| second['duration_ns'] }.uniq
    assert_operator seconds.last['duration_ns'], :<=, 1_000_000_000
    assert_in_delta Time.now.to_f, seconds.last['time_ns'] / 1e9, 60
    assert seconds.last['processes'].all? { |process| process['ended'] }
    # Nothing burned before it was told to.
    assert_operator seconds.first['cpu_ns'], :<, 0.5e9
    assert_operator seconds.map { |second| second['cpu_ns'] }.max, :>, 0.3e9
  end

  # Both at once, so of the same time.
  def test_equal_to_a_recording
    target = start('burn.rb', 4, 2)
    target.wait_for('waiting')
    running = top('-p', target.pid, '-F', 499)
    recording = Rbpf::Running.new('record', '-p', target.pid, '-F', 499, '-o', path('same.data'))
    recording.wait_attached
    Live.wait_until('a first second', pid: running.pid) { running.out.include?("\n") }
    target.go
    target.wait_for('ready')
    target.finish
    seconds = objects(running.wait)
    assert_equal 0, recording.wait.code
    rows = Recording.new(path('same.data')).rows
    BURNED.each do |label|
      row = rows.find { |r| r['label'] == label }
      %w[self_ns total_ns].each do |key|
        ns = sum(seconds, 'methods', key) { |r| r['label'] == label }
        assert_in_delta row[key], ns, 0.08 * row[key] + 3e7, "#{label} #{key}"
      end
    end
  end

  def test_arguments_are_left_out
    command = ruby.command('-e', 't = Process.clock_gettime(1) + 2.5; nil while Process.clock_gettime(1) < t # secret')
    seconds = objects(top('--no-arguments', '--as-root', '--', *command).wait)
    assert_equal [command[0]], seconds.flat_map { |second| second['processes'].map { |process| process['command'] } }.uniq
  end

  # Views of CPU time count no samples of waits.
  def test_nothing_but_waits
    target = start_command(ruby.command('-e', 'puts %({"waiting":1}); $stdout.flush; sleep'))
    target.wait_for('waiting')
    text = Rbpf.read('top', '--once', '-d', '1s', '--mode', 'states', '-p', target.pid)
    assert_match(/^methods .* 0 samples$/, text)
    assert_match(/^nothing used a CPU in this time; the view 'states' has the waits$/, text)
  end

  def test_once
    target = start('burn.rb', 60, 1)
    target.wait_for('waiting')
    target.go
    text = Rbpf.read('top', '--once', '-d', '2s', '-p', target.pid)
    # On a busy machine the target does not get a CPU of its own.
    cpu = text[/^rbpf top  pid #{target.pid}  CPU (\d+\.\d)%/, 1].to_f
    samples = text[/^methods  last 00:02  by self  (\d+) samples$/, 1].to_i
    assert_in_delta cpu / 100 * 2 * 99, samples, 8 + (samples * 0.1), text
    heavy = text[/^ *(\d+\.\d)% .*Burner#heavy .*burn\.rb:\d+$/, 1].to_f
    light = text[/^ *(\d+\.\d)% .*Burner#light /, 1].to_f
    assert_operator heavy, :>, 1.5 * light
    assert_equal 1, objects(top('--once', '-p', target.pid).wait).size
    processes = Rbpf.read('top', '--once', '-p', target.pid, '--view', 'processes')
    assert_match(/^ *\d+\.\d% .* #{target.pid} ruby +ruby #{ruby.version}/, processes)
    tree = Rbpf.read('top', '--once', '-p', target.pid, '--view', 'tree', '-n', 0)
    assert_match(/- Burner#run.*\n.*- Burner#measure.*\n.*- block in Burner#run.*\n/, tree)
  ensure
    target&.kill
  end

  # Ends with what ended by itself, and at a signal; what is left is shown.
  def test_ends
    result = Rbpf.run('top', '--json', '--', 'sh', '-c', 'echo said; exit 3')
    assert_equal 3, result.code # no Ruby
    assert_match(/no Ruby was found|not a Ruby/, result.err)
    result = Rbpf.run('top', '--json', '--', *ruby.command('-e', 'puts :said; 2_000_000.times { }'))
    seconds = objects(result)
    assert_match(/^said$/, result.err)
    assert_operator seconds.sum { |second| second['cpu_ns'] }, :>, 1e7
    target = start('heartbeat.rb')
    target.wait_for('waiting')
    running = top('-p', target.pid)
    Live.wait_until('a first second', pid: running.pid) { running.out.include?("\n") }
    running.signal(:TERM)
    assert_operator objects(running.wait).size, :>=, 1
  ensure
    target&.kill
  end

  # What threads waited in a second is in that one, also of waits that began before and of such that go on.
  def test_waits_are_in_their_seconds
    target = start('sleepers.rb')
    target.wait_for('waiting')
    Live.wait_until('all to sleep') { cpu_ns(target.pid) == (sleep(0.2) && cpu_ns(target.pid)) }
    threads = Dir.children("/proc/#{target.pid}/task").size
    seconds = objects(top('--mode', 'states', '-d', '5s', '-p', target.pid).wait)
    assert_operator seconds.size, :>=, 5
    seconds.each do |second|
      assert_in_delta threads * 1e9, second['states'].sum { |row| row['ns'] }, 0.03 * threads * 1e9, second['states']
    end
    target.finish
  end

  # Names without end, in so little memory that the window drops some all the time: none is wrong.
  def test_collects
    script = <<~'RUBY'
      $stdout.sync = true
      class Made; end
      made = 0
      puts '{"waiting": true}'
      stop = Process.clock_gettime(Process::CLOCK_MONOTONIC) + 12
      until Process.clock_gettime(Process::CLOCK_MONOTONIC) > stop
        made += 1
        Made.class_eval("def m#{made}(n) = n.zero? ? 40_000.times { } : m#{made}(n - 1)", "/srv/#{made}.rb", made)
        Made.new.send(:"m#{made}", made % 40)
      end
    RUBY
    seconds = objects(top('-F', 2000, '--memlimit', '32M', '--keep', '3s', '-d', '10s', '--',
                          *ruby.command('-e', script)).wait)
    assert_adds_up(seconds)
    rows = seconds.flat_map { |second| second['methods'] }
    made = rows.select { |row| row['label'] =~ /\AMade#m\d+\z/ }
    assert_operator made.map { |row| row['label'] }.uniq.size, :>, 1000
    made.each do |row|
      assert_equal "/srv/#{row['label'][/\d+/]}.rb:#{row['label'][/\d+/]}", "#{row['path']}:#{row['line']}"
    end
    named = sum(seconds, 'methods', 'self_ns') { |row| row['label'] !~ /\A\[/ }
    assert_operator named, :>, 0.9 * seconds.sum { |second| second['cpu_ns'] }
  end
end
