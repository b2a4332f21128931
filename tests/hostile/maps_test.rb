# SPDX-License-Identifier: GPL-2.0-only
# frozen_string_literal: true

# What a process maps, how much of it, and by which names.

require_relative 'elf'
require_relative 'support'

class HostileMapsTest < HostileTest
  def library
    @library ||= HostileElf.new.ruby!.write(lair('library'))
  end

  def test_many_mappings_and_a_storm_of_more
    attacker('puppet.c', 'storm', 55_000, library)
    besiege
    besiege_and_stop
  end

  # Of a Ruby that has them, which is the one to be recorded.
  def test_ruby_with_many_mappings
    attacker('mappings.rb', 55_000, library)
    besiege
    assert_operator samples_of(@targets.last.pid).count, :>, 10
  end

  # More text than a reader of all of it at once would take.
  def test_ruby_with_long_names_of_mappings
    target = attacker('mappings.rb', 19_000, library, 'long', lair)
    besiege
    named = samples_of(target.pid).count { |s| s.frames.any? { |f| f.label == 'Object#hidden' } }
    assert_operator named, :>, 10, 'samples of the Ruby with long names'
  end

  def test_names_of_files_that_look_like_mappings
    names = ["a\n7f0000000000-7f0000001000 r-xp 00000000 00:00 0 sh", "\e[2J\e[31mred", "x (deleted)",
             "\u202Etxt.exe", "\u009b31m", "\xff\xfe", "tab\there", '%s%n%p', "cr\rover", 'a' * 255]
    files = names.map do |name|
      HostileElf.new.write(lair(name))
    end
    attacker('call.rb', *files)
    besiege
    assert_views_clean
  end

  def test_code_that_is_mapped_elsewhere_all_the_while
    attacker('puppet.c', 'remap', library)
    besiege
  end

  # Of the library that its own Ruby is: pages of it are others, or none, and come back.
  def test_ruby_whose_library_is_unmapped_meanwhile
    attacker('mappings.rb', 0, library, 'unmap')
    6.times { run_rbpf('ps') }
    besiege
  end

  def test_files_that_are_deleted_or_were_never_there
    attacker('mappings.rb', 200, library, 'memfd')
    besiege
    assert_views_clean
  end

  def test_more_processes_than_descriptors
    attacker('puppet.c', 'crowd', 400, library)
    besiege(rlimit_nofile: [256, 256], duration: 2)
  end

  def test_a_crowd_of_processes
    attacker('puppet.c', 'crowd', 1_100, library)
    besiege(rlimit_nofile: [1024, 1024])
  end

  private

  def samples_of(pid)
    @made.samples.select { |sample| sample.pid == pid }
  end
end
