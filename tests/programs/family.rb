# SPDX-License-Identifier: GPL-2.0-only
# frozen_string_literal: true

# Threads and children that begin after the recording has: each burns CPU in a method of its own.
#
#   ruby family.rb SECONDS
#
# Begins when a line comes on standard input, and ends when another comes.

require_relative 'oracle/checkpoint'

class Family
  def in_thread
    burn
  end

  # It is sampled under another name first.
  def before_renaming
    burn
  end

  def in_renamed_thread
    Thread.current.name = 'renamed'
    burn
  end

  def in_thread_of_thread
    burn
  end

  def in_child
    burn
  end

  def in_grandchild
    burn
  end

  def in_thread_of_child
    burn
  end

  private

  def burn
    Oracle.spin
  end
end

def named_thread(name, &block)
  Thread.new do
    Thread.current.name = name
    block.call
  end
end

def run_family
  family = Family.new
  threads = [
    named_thread('plain worker') { family.in_thread },
    named_thread('before') { family.before_renaming || family.in_renamed_thread },
    named_thread('a name of more than fifteen bytes') { family.in_thread },
    named_thread('outer') { named_thread('inner') { family.in_thread_of_thread }.join }
  ]
  child = fork do
    grandchild = fork { family.in_grandchild }
    thread = named_thread('of child') { family.in_thread_of_child }
    family.in_child
    thread.join
    Process.wait(grandchild)
    exit!(0)
  end
  threads.each(&:join)
  Process.wait(child)
end

Oracle.seconds = Float(ARGV.fetch(0))
Oracle.say(waiting: true, pid: Process.pid)
Oracle.wait_for_test
run_family
Oracle.say(ready: true)
Oracle.wait_for_test
