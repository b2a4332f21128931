# SPDX-License-Identifier: GPL-2.0-only
# frozen_string_literal: true

# Asks the shop of config.ru for pages: so many, and for so long, at most.
#
#   ruby load.rb PORT REQUESTS SECONDS

require 'net/http'

# A bounded load on a server of this machine.
class Load
  HOST = '127.0.0.1'
  CLIENTS = 2
  # One page in so many is the slow one.
  SLOW_EVERY = 3

  attr_reader :answered

  def initialize(port, requests, seconds)
    @port = port
    @requests = requests / CLIENTS
    @deadline = now + seconds
    @answered = 0
    @lock = Mutex.new
  end

  def run
    Array.new(CLIENTS) { Thread.new { client } }.each(&:join)
    self
  end

  private

  def client
    Thread.current.report_on_exception = false # run raises it
    Net::HTTP.start(HOST, @port, read_timeout: 10) do |http|
      @requests.times do |i|
        break if now > @deadline

        answer = http.get((i % SLOW_EVERY).zero? ? '/report' : '/fast')
        raise "#{answer.code}: #{answer.body}" unless answer.is_a?(Net::HTTPOK)

        @lock.synchronize { @answered += 1 }
      end
    end
  end

  def now
    Process.clock_gettime(Process::CLOCK_MONOTONIC)
  end
end

if $PROGRAM_NAME == __FILE__
  puts Load.new(Integer(ARGV.fetch(0)), Integer(ARGV.fetch(1)), Float(ARGV.fetch(2))).run.answered
end
