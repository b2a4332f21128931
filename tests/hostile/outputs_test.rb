# SPDX-License-Identifier: GPL-2.0-only
# frozen_string_literal: true

# Where root writes, in a directory that somebody else may write to.

require_relative 'support'

class HostileOutputsTest < HostileTest
  # A recording to draw, made once.
  def recorded
    @recorded ||= begin
      honest
      run_rbpf('record', '-p', honest.pid, '-d', '300ms', '-F', '499', '-o', path('made.data'))
      path('made.data')
    end
  end

  def shared
    @shared ||= path('shared').tap do |dir|
      Dir.mkdir(dir)
      File.chmod(0o1777, dir)
    end
  end

  # Something of the attacker's in the shared directory.
  def of_attacker(name)
    File.join(shared, name).tap do |file|
      yield file
      File.lchown(ATTACKER, ATTACKER, file)
    end
  end

  def record_to(file, *options, statuses: [0])
    honest
    run_rbpf('record', '-p', honest.pid, '-d', '300ms', '-o', file, *options, statuses: statuses)
  end

  # What is in a FIFO, or "".
  def read_now(fifo)
    fifo.read_nonblock(1 << 20).b
  rescue IO::WaitReadable, EOFError
    ''
  end

  def test_recording_into_a_fifo_of_somebody_else
    fifo = of_attacker('rbpf.data') { |file| File.mkfifo(file, 0o666) }
    reader = File.open(fifo, File::RDONLY | File::NONBLOCK)
    record_to(fifo, statuses: [1])
    refute_includes read_now(reader), 'RBPF', 'the recording went to somebody else'
  end

  def test_recording_through_a_link_of_somebody_else
    File.write(path('victim'), 'precious')
    link = of_attacker('rbpf.data') { |file| File.symlink(path('victim'), file) }
    record_to(link, '--force', statuses: [1])
    assert_equal 'precious', File.read(path('victim'))
  end

  def test_recording_through_a_hard_link
    victim = File.join(shared, 'victim')
    File.write(victim, 'precious')
    File.link(victim, File.join(shared, 'rbpf.data'))
    record_to(File.join(shared, 'rbpf.data'), '--force')
    assert_equal 'precious', File.read(victim)
  end

  def test_flame_graph_through_a_link_of_somebody_else
    File.write(path('victim'), 'precious')
    link = of_attacker('out.svg') { |file| File.symlink(path('victim'), file) }
    run_rbpf('flame', '-i', recorded, '-o', link, statuses: [1])
    assert_equal 'precious', File.read(path('victim'))
  end

  def test_flame_graph_through_a_dangling_link_of_somebody_else
    link = of_attacker('out.svg') { |file| File.symlink(path('nobody_made_this'), file) }
    run_rbpf('flame', '-i', recorded, '-o', link, statuses: [1])
    refute_path_exists path('nobody_made_this')
  end

  def test_flame_graph_over_a_file_of_somebody_else
    file = of_attacker('out.svg') { |name| File.write(name, 'theirs') }
    mine = File.open(file)
    run_rbpf('flame', '-i', recorded, '-o', file, statuses: [1])
    assert_equal 'theirs', mine.read
    found = File.stat(file)
    refute found.uid == ATTACKER && File.read(file).include?('<svg'), 'a flame graph that belongs to somebody else'
  end

  def test_export_into_a_fifo_of_somebody_else
    fifo = of_attacker('out.folded') { |file| File.mkfifo(file, 0o666) }
    reader = File.open(fifo, File::RDONLY | File::NONBLOCK)
    run_rbpf('export', '-f', 'folded', '-i', recorded, '-o', fifo, statuses: [1])
    refute_includes read_now(reader), 'Honest.known', 'the export went to somebody else'
  end

  def test_modes_of_what_root_writes
    old = File.umask(0o022)
    recorded
    run_rbpf('flame', '-i', recorded, '-o', File.join(shared, 'new.svg'))
    run_rbpf('export', '-f', 'json', '-i', recorded, '-o', File.join(shared, 'new.json'))
    record_to(File.join(shared, 'new.data'), '-f', 'flame')
    made = Dir[File.join(shared, 'new*')].reject { |f| f.end_with?('.old') }
    assert_equal 4, made.size, made.inspect
    made.each { |file| assert_equal '600', File.stat(file).mode.to_s(8)[-3..], file }
  ensure
    File.umask(old)
  end

  def test_owner_of_what_is_written_under_sudo
    recorded
    env = { 'SUDO_UID' => HONEST.to_s, 'SUDO_GID' => HONEST.to_s }
    run_rbpf('flame', '-i', recorded, '-o', File.join(shared, 'sudo.svg'), env: env)
    assert_equal HONEST, File.stat(File.join(shared, 'sudo.svg')).uid
  end

  # In turns a link to somebody's secret, a FIFO, a file and nothing.
  def test_outputs_that_are_raced
    File.write(path('victim'), 'precious')
    name = File.join(shared, 'raced')
    File.chmod(0o777, shared)
    attacker('race.c', name, path('victim'), File.join(shared, 'other'))
    recorded
    20.times do
      run_rbpf('flame', '-i', recorded, '-o', name, statuses: [0, 1])
      run_rbpf('export', '-f', 'folded', '-i', recorded, '-o', name, statuses: [0, 1])
    end
    4.times { record_to(name, '--force', statuses: [0, 1]) }
    assert_equal 'precious', File.read(path('victim'))
  end

  def test_recording_that_is_kept_as_old_is_raced
    File.write(path('victim'), 'precious')
    name = File.join(shared, 'kept.data')
    File.chmod(0o777, shared)
    attacker('race.c', "#{name}.old", path('victim'), File.join(shared, 'other'))
    4.times { record_to(name, statuses: [0, 1]) }
    assert_equal 'precious', File.read(path('victim'))
  end

  # Whoever reads may stop at any time.
  def test_reader_that_goes_away
    recorded
    reader, writer = IO.pipe
    rbpf = watched('export', '-f', 'json', '-i', recorded, out: writer)
    writer.close
    reader.close
    assert_equal 0, rbpf.wait(20).code, rbpf.err
  end

  def test_full_disk
    result = run_rbpf('flame', '-i', recorded, '-o', '/dev/full', statuses: [1])
    assert_match(/cannot write/, result.err)
  end
end
