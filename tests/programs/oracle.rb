# SPDX-License-Identifier: GPL-2.0-only
# frozen_string_literal: true

# Brings Ruby into many known states and says, in Ruby's own words, what each of them is.
#
#   ruby --disable-gems oracle.rb list             names of the scenarios
#   ruby --disable-gems oracle.rb truth            runs them, prints their stacks, holds none
#   ruby --disable-gems oracle.rb sleep            all at once, each asleep in a thread of its own
#   ruby --disable-gems oracle.rb spin SECONDS     one after another on the main thread, burning CPU
#   ruby --disable-gems oracle.rb threads SECONDS  all at once, each in a thread, burning CPU
#
# spin and threads begin when a line comes on standard input. The last line printed is
# {"ready": true, ...}; then sleep, spin and threads wait for standard input once more and end.
# See oracle/checkpoint.rb for the lines printed. --disable-gems keeps RubyGems' own frames out of
# the scenarios that load files; requires.rb has them.

require_relative 'oracle/checkpoint'

module Oracle
  Scenario = Struct.new(:name, :body)

  SCENARIOS = []

  def self.scenario(name, &body)
    define_spin(name)
    SCENARIOS << Scenario.new(name, body)
  end

  # The frames above this one belong to the scenario, those below to the way it was started.
  def self.run_one(scenario)
    enter(scenario.name)
    scenario.body.call
    held?(Thread.current) or abort "#{scenario.name} did not reach its checkpoint"
  end

  def self.run_in_order
    SCENARIOS.each { |scenario| run_one(scenario) }
  end

  def self.start_threads
    SCENARIOS.map do |scenario|
      Thread.new do
        Thread.current.name = scenario.name.to_s # by itself: to name one that has ended crashes Ruby 3.1
        run_one(scenario)
      end
    end
  end

  def self.main(command, seconds)
    Thread.abort_on_exception = true
    case command
    when 'list'
      return puts(SCENARIOS.map(&:name))
    when 'truth'
      run_in_order
    when 'sleep'
      self.mode = :sleep
      start_threads.each { |thread| emit_asleep(thread) }
    when 'spin', 'threads'
      self.mode = :spin
      self.seconds = Float(seconds)
      say(waiting: true, pid: Process.pid)
      wait_for_test
      command == 'spin' ? run_in_order : start_threads.each(&:join)
    else
      abort 'usage: oracle.rb list | truth | sleep | {spin|threads} SECONDS'
    end
    say(ready: true, pid: Process.pid, ruby: RUBY_VERSION)
    wait_for_test unless command == 'truth'
    exit!(0) # threads may still be asleep in their checkpoints
  end
end

%w[methods modules blocks callbacks iteration evaluation exceptions loading names].each do |part|
  require_relative "oracle/#{part}"
end
Oracle.main(ARGV[0], ARGV[1])
