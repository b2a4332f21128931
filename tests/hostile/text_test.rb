# SPDX-License-Identifier: GPL-2.0-only
# frozen_string_literal: true

# Text that a process chooses: names of all kinds. None of it may reach root's terminal, or a file that is
# read later, as anything but text.

require_relative 'elf'
require_relative 'support'

class HostileTextTest < HostileTest
  NASTY = ["\e[31mred\e[0m", "\e]0;title\a", "\u202Egnp.exe", "\u2066x\u2069", "\u009b31m", "\u2028line", "\u200Emark",
           "new\nline", "cr\rover", "back\b\b", "\xff\xfe\xc0\x80", "\xed\xa0\x80", '%s%n', '</script><script>alert(1)',
           "nul\\0", '" onload="alert(1)', '$(id)', "'; id; '"].freeze

  # What shows a running process.
  def assert_shown_clean(target)
    run_rbpf('ps')
    run_rbpf('ps', '--json')
    run_rbpf('dump', '-p', target.pid, statuses: [0, 3])
    run_rbpf('dump', '-p', target.pid, '--json', statuses: [0, 3])
  end

  def test_version_of_a_ruby
    target = attacker('version.rb', "3.1.2\e]0;owned\a\e[2J\u009b31m\u202E")
    assert_shown_clean(target)
    run_rbpf('doctor', '-p', target.pid, statuses: [0, 4])
    besiege
    assert_views_clean
  end

  # Nor one that is no version, however long.
  def test_version_of_a_fake_ruby
    ["\e[31m9.9.9", "3.1.2#{'9' * 60}", '', "3\n1\n2", '%s.%s.%n'].each do |version|
      file = HostileElf.new.ruby!.tap { |e| e.blobs << [0x1f00, version.b.ljust(32, "\0")] }.write(lair("f#{version.hash}"))
      target = attacker('hold.c', file)
      assert_shown_clean(target)
      run_rbpf('record', '-p', target.pid, '-d', '100ms', '-o', path('fake.data'), statuses: [0, 3])
    end
    besiege
  end

  def test_command_lines_and_names_of_programs
    NASTY.each_with_index do |name, i|
      next if name.b.include?('/')

      program = lair("#{i} ".b + name.b)
      FileUtils.ln_s('/usr/bin/ruby', program)
      spawned(['sh', '-c', 'exec "$0" "$@"', program, Hostile.program('honest.rb'), name, 'x' * 60_000])
    end
    run_rbpf('ps')
    run_rbpf('ps', '--json')
    besiege(duration: 3)
    assert_views_clean
  end

  # Methods, classes, files and threads of Ruby.
  def test_names_in_ruby
    target = attacker('names.rb', 'nasty')
    besiege(duration: 3)
    assert_shown_clean(target)
    assert_views_clean
    refute_includes Rbpf.read('flame', '-i', path('rbpf.data')), '<script>alert(1)'
  end

  def test_names_in_ruby_that_are_long
    attacker('names.rb', 'long')
    besiege(limit: 64 << 20, duration: 3)
    assert_operator File.size(path('rbpf.data')), :<, 64 << 20
  end

  def test_many_methods
    attacker('names.rb', 'many', seconds: 120)
    besiege(duration: 3)
  end

  def test_code_that_is_made_all_the_while
    attacker('names.rb', 'eval')
    besiege(duration: 3)
  end

  def test_names_in_a_perf_map
    target = attacker('call.rb', '--anonymous', HostileElf.new.write(lair('code')))
    File.open("/tmp/perf-#{target.pid}.map", 'w') do |f|
      at_end { FileUtils.rm_f(f.path) }
      f.chown(ATTACKER, ATTACKER)
      NASTY.each_with_index { |name, i| f.write("#{i * 0x100000000000} 100000000000 #{name}\n") }
      f.write("0 7fffffffffff #{NASTY.join}\n")
      f.write("0 7fffffffffff \e[31m#{'x' * 100_000}\n")
    end
    besiege
    assert_views_clean
  end

  def test_names_of_native_functions_and_files
    files = NASTY.reject { |name| name.b.include?('/') }.map.with_index do |name, i|
      HostileElf.new.tap do |e|
        e.add_symbols([[name, 0x1000, 0x1000]], type: 2, name: '.symtab')
        e.add('.note.gnu.build-id', 7, data: [4, 20, 3, "GNU\0", "\e[31m" * 4].pack('VVVa4a20'))
      end.write(lair(name.b + i.to_s))
    end
    attacker('call.rb', *files)
    besiege
    assert_views_clean
  end

  def test_names_of_control_groups
    base = Dir['/sys/fs/cgroup/{unified,systemd,cpuacct,pids,.}'].find { |dir| File.writable?(File.join(dir, 'cgroup.procs')) }
    missing 'no control groups to make one in' unless base
    NASTY.select(&:valid_encoding?).reject { |name| name.match?(%r{/|\n}) }.each_with_index do |name, i|
      group = File.join(base, "machine-#{name}#{i}-#{Process.pid}.scope")
      Dir.mkdir(group)
      at_end { remove_group(group) }
      target = spawned(['ruby', Hostile.program('honest.rb')])
      File.write(File.join(group, 'cgroup.procs'), target.pid.to_s)
    end
    run_rbpf('ps')
    run_rbpf('ps', '--json')
    besiege(duration: 3)
    assert_views_clean
  end

  private

  def remove_group(group)
    pids = File.read(File.join(group, 'cgroup.procs')).split
    pids.each { |pid| Process.kill(:KILL, pid.to_i) }
    Live.wait_until("#{group} to be empty", 10) do
      Dir.rmdir(group)
    rescue Errno::EBUSY
      false
    end
  end
end
