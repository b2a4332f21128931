# SPDX-License-Identifier: GPL-2.0-only
# frozen_string_literal: true

# The current stacks of processes: of which, and what is said of each thread.

require_relative 'support'

# A server that forked two workers, each with a helper of its own.
class DumpFamilyTest < LiveTest
  def setup
    super
    @target = start('prefork.rb', 0.01)
    said = @target.wait_for('waiting')
    @children = said.values_at('workers', 'helpers').flatten
  end

  def test_a_pid_means_the_process_and_its_descendants
    processes = dump('-p', @target.pid)
    assert_equal [@target.pid, *@children].sort, pids(processes).sort
    assert_equal @target.pid, processes[0]['pid'], 'parents come first'
    processes[1..].each do |process|
      assert_includes processes.map { |p| p['pid'] }, process['ppid']
      assert_includes process['command'], 'prefork.rb'
      assert_equal ruby.version, process['ruby']
      labels = process['threads'].flat_map { |thread| thread['frames'] }.map { |f| f['label'] }
      assert_includes labels, process['pid'] == @target.pid ? '<main>' : 'Object#forked'
    end
  end

  def test_without_children_it_is_the_process_alone
    assert_equal [@target.pid], pids(dump('-p', @target.pid, '--no-children'))
  end

  def test_several_pids_are_printed_once_each
    other = start('heartbeat.rb')
    other.wait_for('waiting')
    worker = @children[0]
    processes = dump('-p', "#{other.pid},#{worker}", '-p', @target.pid)
    assert_equal [other.pid, @target.pid, *@children].sort, pids(processes).sort
    assert_equal other.pid, processes[0]['pid']
    assert_equal [worker, other.pid],
                 pids(dump('-p', worker, '-p', other.pid, '--no-children'))
  end

  def test_each_is_headed_by_its_pid_title_and_version
    text = Rbpf.read('dump', '-p', @target.pid)
    heads = text.scan(/^pid (\d+)  (.*?)   ruby (.*)$/)
    assert_equal [@target.pid, *@children].sort, heads.map { |pid,| Integer(pid) }.sort
    heads.each do |_, title, version|
      assert_includes title, 'prefork.rb'
      assert_equal ruby.version, version
    end
    assert_equal heads.size, text.split(/\n\n(?=pid )/).size
  end

  def test_a_shell_whose_child_is_a_ruby_is_accepted
    shell = start_shell(ruby.command(ruby.program('heartbeat.rb')))
    child = shell.wait_for('waiting')['pid']
    assert_equal [child], pids(dump('-p', shell.pid))
    result = Rbpf.run('dump', '-p', shell.pid, '--no-children')
    assert_equal 3, result.code
    assert_match(/pid #{shell.pid} .* is not a Ruby process/, result.err)
  end

  def test_nothing_is_printed_if_one_is_no_ruby
    sleeper = start_command(%w[sleep 60])
    result = Rbpf.run('dump', '-p', "#{@target.pid},#{sleeper.pid}", '--json')
    assert_equal 3, result.code
    assert_match(/pid #{sleeper.pid} .* is not a Ruby process/, result.err)
    assert_empty result.out
  end

  private

  # A shell that waits for a command.
  def start_shell(command)
    start_command(['sh', '-c', '"$@"; true', 'sh', *command])
  end

  def dump(*arguments)
    Rbpf.read('dump', '--json', *arguments).lines.map { |line| JSON.parse(line) }
  end

  def pids(processes)
    processes.map { |process| process['pid'] }
  end
end
