# SPDX-License-Identifier: GPL-2.0-only
# frozen_string_literal: true

# The screen of top, in a terminal where somebody types.

require_relative 'support'
require_relative 'tmux'

class TopScreenTest < LiveTest
  def setup
    super
    missing 'tmux is not installed' unless Tmux.available?
  end

  def teardown
    @terminals&.each(&:close)
    super
  end

  def terminal(**options)
    Tmux.new(@dir, **options).tap { |t| (@terminals ||= []) << t }
  end

  def burning(seconds = 120, threads = 1)
    start('burn.rb', seconds, threads).tap do |target|
      target.wait_for('waiting')
      target.go
    end
  end

  def top(terminal, *arguments)
    terminal.type([Live::RBPF, 'top', *arguments].join(' ') + '; echo "status $?"')
    terminal
  end

  # Of the row with this label: the numbers at its begin.
  def numbers(screen, label)
    line = screen.lines.find { |l| l =~ /\s#{Regexp.escape(label)}(\s|$)/ }
    line ? line.scan(/(\d+\.\d)%/).flatten.map(&:to_f) : flunk("no #{label} on\n#{screen}")
  end

  def assert_left_alone(terminal, before)
    refute terminal.alternate?
    assert_equal before, terminal.settings
  end

  def test_views
    target = burning
    t = terminal
    before = t.settings
    top(t, '-p', target.pid, '-F', 999)
    screen = t.wait_for(/Burner#heavy/)
    assert_match(/\Arbpf top  pid #{target.pid}  CPU \d+\.\d%/, screen)
    assert_match(/^methods  last 00:01  by self/, screen)
    assert t.alternate?
    # With enough samples the one is surely first.
    t.press('4')
    screen = t.wait_for(/^methods .* ([3-9]\d\d|\d,?\d{3}|\d\d,\d{3}) samples.*\n.*\n.*Burner#heavy/)
    assert_operator numbers(screen, 'Burner#heavy')[0], :>, 1.5 * numbers(screen, 'Burner#light')[0]
    t.press('Enter')
    t.wait_for(/^tree of Burner#heavy.*Burner#run.*Burner#heavy/m)
    t.press('Enter') # closes the first node
    t.wait_for(/^TOTAL%[^\n]*\n[^\n]*\+ <main>[^\n]*\n(?!.*Burner)/m)
    t.press('x', 'i')
    t.wait_for(/callers below.*\n.*\n[^\n]*- Burner#heavy/m)
    t.press('BSpace', 'p')
    t.wait_for(/^processes .*\n.*PID.*\n.* #{target.pid} ruby/)
    t.press('Enter')
    t.wait_for(/^methods of pid #{target.pid}/)
    t.press('Escape')
    t.wait_for(/^processes /)
    t.press('t')
    t.wait_for(/^threads .*\n.*TID.*\n.* #{target.pid} +#{target.pid} /)
    t.press('r')
    t.wait_for(/^requests .*\n.*\n.*\[no request\]/)
    t.press('m', '3')
    t.wait_for(/^methods  last (00:(0[4-9]|[1-5])|01:00)/)
    t.press('o')
    # All three are in all samples, mostly: then the one comes first that has more of its own.
    assert_match(/<main>|Burner#(run|measure)/, t.wait_for(/by total.*\n.*\n/).lines[3])
    t.press('o')
    t.wait_for(/by name/)
    t.press('o', '?')
    t.wait_for(/\Arbpf top: keys/)
    t.press('x', '/')
    t.press('l', 'i', 'g')
    screen = t.wait_for(/filter: lig_/)
    refute_match(/Burner#heavy/, screen)
    assert_match(/Burner#light/, screen)
    t.press('Enter')
    t.wait_for(/filter: lig$/)
    t.press('Escape')
    t.wait_for(/Burner#heavy/)
    t.press('q')
    t.wait_for(/status 0/)
    assert_left_alone(t, before)
  end

  # What is paused stays, what is saved is what is shown, and the past is still there.
  def test_saves_what_it_shows
    target = burning
    t = top(terminal, '-p', target.pid, '-F', 499)
    t.wait_for(/Burner#heavy/)
    t.press('2')
    t.wait_for(/last 00:0[4-9]/)
    t.press('Space')
    screen = t.wait_for(/PAUSED/)
    sleep 2.2
    assert_equal screen, t.screen
    t.press('S')
    file = path(t.wait_for(/saved [\d,]+ samples to rbpf-top-\d+\.data/)[/rbpf-top-\d+\.data/])
    samples = screen[/([\d,]+) samples/, 1].delete(',').to_i
    recording = Recording.new(file)
    assert_equal samples, recording.totals['samples']
    window = screen[/last 00:(\d+)/, 1].to_i * 1e9
    %w[Burner#heavy Burner#light Array#sort].each do |label|
      row = recording.row(label)
      self_part, total_part = numbers(screen, label)
      assert_in_delta row['self_ns'] / window * 100, self_part, 0.06, label
      assert_in_delta row['total_ns'] / window * 100, total_part, 0.06, label
    end
    assert_equal [target.pid], recording.json['processes'].map { |process| process['pid'] }
    t.press('1', '<', '<')
    t.wait_for(/last 00:01, 00:0\d ago/)
    t.press('Space')
    refute_match(/PAUSED|ago/, t.wait_for(/last 00:01  by/))
    t.press('q')
    t.wait_for(/status 0/)
  end

  # Of the thread that is selected, in what dump says; top goes on meanwhile.
  def test_stacks_of_a_process
    target = burning(120, 3)
    t = top(terminal(height: 12), '-p', target.pid)
    t.wait_for(/Burner#heavy/)
    t.press('t')
    t.wait_for(/^threads .*\n.*TID(.*\n.* #{target.pid} ){3}/)
    t.press('Down')
    tid = t.wait_for(/TID/).lines[4][/ #{target.pid} +(\d+) /, 1]
    t.press('d')
    screen = t.wait_for(/\Arbpf top: the stacks of pid #{target.pid}\n/)
    assert_match(/\A(\d+ )?threads? (\d+, )*#{tid}[ ,]/, screen.lines[1])
    t.press('Home')
    t.wait_for(/\A.*\n.*#{target.pid}.*ruby/)
    t.press('End')
    assert_match(/Burner#(run|light|heavy)|<main>/, t.wait_for(/^q back/))
    target.kill
    t.press('d')
    t.wait_for(/\A.*\nrbpf: error: .*#{target.pid}/)
    t.press('q')
    t.wait_for(/^threads /)
    t.press('q')
    t.wait_for(/status 0/)
  end

  def test_sizes
    target = burning
    t = top(terminal, '-p', target.pid)
    t.wait_for(/Burner#heavy/)
    [[40, 10], [40, 3], [12, 4], [200, 50], [1, 1], [80, 24]].each do |width, height|
      t.resize(width, height)
      sleep 0.4
      lines = t.screen.lines(chomp: true)
      assert_operator lines.map(&:size).max, :<=, width
      assert_match(/\Arbpf top/, lines[0]) if width >= 12
      assert_match(/Burner#heavy|METHOD/, lines.join("\n")) if height >= 10
    end
    t.wait_for(/^ *\d+\.\d% +\d+\.\d% .*Burner#heavy .*burn\.rb/)
    t.press('q')
    t.wait_for(/status 0/)
  end

  def test_stop_and_go_on
    target = burning
    t = terminal
    before = t.settings
    top(t, '-p', target.pid)
    t.wait_for(/Burner#heavy/)
    t.press('C-z')
    t.wait_for(/Stopped|Suspended/)
    assert_left_alone(t, before)
    t.type('clear')
    t.resize(60, 20)
    t.type('fg')
    t.wait_for(/\Arbpf top .*Burner#heavy/m)
    assert t.alternate?
    t.press('q')
    Live.wait_until('the shell') { !t.alternate? }
    assert_left_alone(t, before)
  end

  def test_ends
    t = terminal
    before = t.settings
    %w[C-c TERM HUP].each do |how|
      target = burning
      t.type('clear')
      top(t, '-p', target.pid)
      t.wait_for(/Burner#heavy/)
      if how == 'C-c'
        t.press(how)
      else
        Process.kill(how, t.running)
      end
      t.wait_for(/status 0/)
      assert_left_alone(t, before)
      target.kill
    end
    target = burning
    t.type('clear')
    top(t, '-p', target.pid)
    t.wait_for(/Burner#heavy/)
    target.kill
    t.wait_for(/all processes have ended/)
    t.press('4')
    t.wait_for(/Burner#heavy/)
    t.press('q')
    t.wait_for(/status 0/)
    assert_left_alone(t, before)
  end

  # A program that is run does not write into the screen.
  def test_runs_a_program
    t = top(terminal, '--', *ruby.command('-e', '"loop { puts :said; warn :said; 10_000.times { } }"'))
    screen = t.wait_for(/Integer#times/)
    sleep 1
    refute_match(/said/, screen + t.screen)
    t.press('C-c')
    t.wait_for(/status 0/)
  end

  def test_terminals
    target = burning
    t = top(terminal(env: { 'NO_COLOR' => '1' }), '-p', target.pid)
    t.wait_for(/Burner#heavy/)
    refute_match(/\e\[[\d;]*3[1-7]/, t.colours)
    t.press('q')
    t = top(terminal, '-p', target.pid)
    t.wait_for(/Burner#heavy/)
    assert_match(/\e\[[\d;]*36/, t.colours)
    t.press('q')
    t = top(terminal(env: { 'LC_ALL' => 'C' }), '-p', target.pid)
    assert_predicate t.wait_for(/Burner#heavy/), :ascii_only?
    t.press('q')
    t = top(terminal(env: { 'TERM' => 'dumb' }), '-p', target.pid, '-d', 2, '-n', 3)
    t.wait_for(/^rbpf top  pid.*Burner#.*^rbpf top  pid.*status 0/m)
    refute t.alternate?
    t = top(terminal(env: { 'TERM' => 'no-such-terminal' }), '-p', target.pid)
    t.wait_for(/cannot draw on a terminal of type 'no-such-terminal'.*--plain prints lines.*status 1/m)
  end

  # Many that come and go: the screen stands, and what has ended is forgotten.
  def test_comings
    script = '120.times { |i| pid = spawn(RbConfig.ruby, "--disable-gems", "-e", ' \
             '"#{i}; 150_000.times { }"); Process.wait(pid) if i % 4 == 3 }; Process.waitall'
    t = top(terminal(height: 12), '--all-ruby', '--keep', '3s', '--view', 'processes', '--memlimit', '32M')
    t.wait_for(/^processes/)
    pid = Process.spawn(*ruby.command('-e', script))
    seen = Live.now
    until Process.wait(pid, Process::WNOHANG)
      lines = t.screen.lines(chomp: true)
      assert_match(/\Arbpf top  all Rubies/, lines[0])
      assert_match(/\Aq quit/, lines[-1])
      assert_operator lines.size, :<=, 12
      flunk 'it takes too long' if Live.now - seen > 6 * Live::PATIENCE
    end
    t.press('j', 'j', 'k')
    t.wait_for(/^processes/)
    t.press('q')
    t.wait_for(/status 0/)
  end
end
