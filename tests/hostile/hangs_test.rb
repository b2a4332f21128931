# SPDX-License-Identifier: GPL-2.0-only
# frozen_string_literal: true

# Processes that the kernel waits for when somebody reads their memory or their files in /proc, because the
# server of a file system does not answer (fuse.c, hang.c). Nothing but the end of that server ends it, and
# most tools wait for ever: no other one may be run here.

require_relative 'support'

class HostileHangsTest < HostileTest
  GUARDED = %w[--all-ruby --guarded].freeze

  # How, and what of it the file system does not answer.
  HOW = { 'version' => 'page', 'random' => 'page', 'lock' => 'later', 'exec' => 'flush' }.freeze

  def setup
    super
    missing 'no /dev/fuse' unless File.exist?('/dev/fuse')
  end

  def hanging(what, after_ms = 0, how: HOW[what])
    library = Hostile.compiled('hang.c', '-shared', '-fPIC')
    @number = @number.to_i + 1
    dir = lair("served#{@number}")
    Dir.mkdir(dir)
    attacker('fuse.c', how, dir, 'ruby', Hostile.program('hang.rb'), library, what, "#{dir}/file", after_ms,
             uid: nil)
    sleep 0.5 if after_ms.zero?
  end

  HOW.each_key do |how|
    define_method("test_#{how}") do
      hanging(how)
      assert_told besiege(*GUARDED).err
      besiege_and_stop(*GUARDED)
    end
  end

  # It maps a file, which is opened, and closed.
  def test_overlay
    hanging('code', how: 'overlay')
    besiege(*GUARDED)
    besiege_and_stop(*GUARDED)
  end

  # rbpf knows it as a Ruby by then.
  def test_exec_later
    hanging('exec', 3000)
    besiege(*GUARDED, duration: 4)
  end

  # Of one user, who has a debt then.
  def test_many
    12.times { |i| hanging(HOW.keys[i % HOW.size]) }
    assert_told besiege(*GUARDED).err
  end

  def test_other_commands
    honest
    hanging('version')
    hanging('exec')
    ps = run_rbpf('ps', seconds: 5)
    assert_match(/^ *#{honest.pid} /, ps.out)
    assert_told ps.err
    run_rbpf('dump', '-p', honest.pid, seconds: 5)
    run_rbpf('doctor', '-p', honest.pid, seconds: 10)
    top = run_rbpf('top', '--once', '--guarded', '--view', 'processes', seconds: 10)
    assert_match(/^ *\d+\.\d% .* #{honest.pid} /, top.out)
  end

  def assert_told(text)
    assert_match(/warning: \d+ process(es)? could not be read, because .*: pid \d+ \(/, text)
  end
end
