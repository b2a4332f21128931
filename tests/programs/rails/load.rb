# SPDX-License-Identifier: GPL-2.0-only
# frozen_string_literal: true

# Asks the shop for pages: so many, at a steady rate or, if the shop is slower than that, as fast as it answers; for so
# long at most.
#
#   ruby load.rb PORT REQUESTS RATE [SECONDS]

require 'json'
require 'net/http'

module Shop
  # What an action or a job took: how often it ran, and its CPU time as it measured that; of an action also its wall time,
  # and what it waited for: in ns, as the header X-Spent has them.
  Spent = Struct.new(:runs, :cpu_ns, :wall_ns, :network_ns, :lock_ns, :timer_ns, :queued_ns) do
    def add(nanoseconds)
      self.runs += 1
      nanoseconds.each.with_index(1) { |ns, member| self[member] += ns }
    end
  end

  # A bounded load on a shop of this machine.
  class Load
    HOST = '127.0.0.1'
    CONNECTIONS = 4
    ORDERS = 600 # there are so many: config/seed.rb
    PATHS = %w[/orders /report /customers /orders /report /api/orders /orders /report /customers /orders/ID].freeze

    # What actions took, by their name, and the processes that they ran in: of all runs of the load.
    attr_reader :spent, :pids

    def initialize(port, requests, rate, seconds = Float::INFINITY, paths: PATHS, connections: CONNECTIONS)
      @port = port
      @requests = requests
      @rate = rate.to_f
      @seconds = seconds
      @paths = paths
      @connections = connections
      @spent = Hash.new { |hash, action| hash[action] = Spent.new(*[0] * Spent.members.size) }
      @pids = []
      @lock = Mutex.new
    end

    def run
      @begin = now
      Array.new(@connections) { |first| Thread.new { client(first) } }.each(&:join)
      self
    end

    private

    def client(first)
      Thread.current.report_on_exception = false # run raises it
      Net::HTTP.start(HOST, @port, read_timeout: 60) do |http|
        first.step(@requests - 1, @connections) do |i|
          break if now - @begin > @seconds

          wait = @begin + (i / @rate) - now
          sleep wait if wait.positive?
          ask(http, @paths[i % @paths.size].sub('ID', ((i % ORDERS) + 1).to_s))
        end
      end
    end

    def ask(http, path)
      count(http.get(path))
    end

    def count(answer)
      raise "#{answer.code}: #{answer.body}" unless answer.is_a?(Net::HTTPOK)

      pid, action, *nanoseconds = answer['X-Spent'].split
      @lock.synchronize do
        @spent[action].add(nanoseconds.map { |ns| Integer(ns) })
        @pids |= [pid.to_i]
      end
    end

    def now
      Process.clock_gettime(Process::CLOCK_MONOTONIC)
    end
  end
end

if $PROGRAM_NAME == __FILE__
  load = Shop::Load.new(Integer(ARGV.fetch(0)), Integer(ARGV.fetch(1)), *ARGV.drop(2).map { |s| Float(s) }).run
  puts JSON.generate(spent: load.spent.transform_values(&:to_h), pids: load.pids)
end
