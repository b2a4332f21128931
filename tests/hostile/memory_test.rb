# SPDX-License-Identifier: GPL-2.0-only
# frozen_string_literal: true

# What lies in the memory of a process, which rbpf reads to know its Ruby.

require_relative 'elf'
require_relative 'support'

class HostileMemoryTest < HostileTest
  HOW = ['large', 'own parent', 'parents', 'labels', 'labels of 1 MB', 'paths', 'stack', 'frames', 'environments', 'far environments',
         'scribble', 'instructions'].freeze

  def corrupted(how, after_ms = 0)
    missing 'corrupt.c is for Ruby 3.1' unless IO.popen(%w[ruby -e] + ['print RUBY_VERSION'], &:read).start_with?('3.1.')
    library = Hostile.compiled('corrupt.c', '-shared', '-fPIC')
    attacker('corrupt.rb', library, how, after_ms)
  end

  # Before rbpf comes, and once it knows the process.
  HOW.each do |how|
    define_method("test_memory_with_#{how.tr(' ', '_')}") do
      before = corrupted(how)
      corrupted(how, 2500)
      besiege(duration: 3)
      run_rbpf('dump', '-p', before.pid, '--native', statuses: [0, 3], limit: MARGIN + LIMIT)
    end
  end

  # The same under ASan, all at once.
  def test_memory_for_errors
    HOW.each_with_index { |how, i| corrupted(how, i.even? ? 0 : 3000) }
    besiege(duration: 3, asan: true)
  end

  def test_ruby_without_known_layout
    target = corrupted('large')
    run_rbpf('record', '--layout-from', 'search', '-p', target.pid, '-d', '200ms', '-o', path('search.data'),
             statuses: [0, 3], limit: MARGIN + (512 << 20), seconds: 10)
  end
end
