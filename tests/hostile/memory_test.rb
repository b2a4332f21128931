# SPDX-License-Identifier: GPL-2.0-only
# frozen_string_literal: true

# What lies in the memory of a process, which rbpf reads to know its Ruby.

require_relative 'elf'
require_relative 'support'

class HostileMemoryTest < HostileTest
  HOW = ['large', 'own parent', 'parents', 'labels', 'labels of 1 MB', 'paths', 'stack', 'frames', 'outermost frame',
         'environments', 'far environments', 'scribble', 'instructions'].freeze

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

  # However deep the stacks of one process are, and ever different: while rbpf does not drain the ring they
  # leave room in it for all samples.
  def test_deep_stacks_leave_room_in_the_ring
    changed = Live.now + 4
    corrupted('outermost frame', 4000)
    besiege('--all-ruby', '--ring', '1M', duration: 7) do |rbpf|
      sleep [changed + 0.5 - Live.now, 0].max
      rbpf.signal(:STOP)
      sleep 2
      rbpf.signal(:CONT)
    end
    assert_operator @made.totals['counters']['lost_stacks'], :>, 20, 'stacks that found no room'
    assert_equal [0, 0], @made.totals['counters'].values_at('lost_samples', 'lost_lives')
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
