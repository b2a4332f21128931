# SPDX-License-Identifier: GPL-2.0-only
# frozen_string_literal: true

# A web application with a database: from Ruby through the gem and SQLite to what the kernel does.

require_relative '../programs/puma_app/load'
require_relative 'puma'
require_relative 'support'
require_relative 'merged'

# Puma and sqlite3 are gems with C extensions, installed for the Ruby in PATH.
if RubyInstall.under_test.default?
  class LedgerTest < MergedTest
    include Puma

    APP = File.join(Live::PROGRAMS, 'ledger/config.ru')
    SECONDS = 6

    def setup
      super
      start_puma(APP, 'puma, ruby-sinatra, ruby-sqlite3', env: { 'LEDGER' => path('ledger.db') })
    end

    def test_from_the_method_to_the_kernel
      load = Thread.new { Requests.new(@port, SECONDS + 1).run }
      load.report_on_exception = false
      result = Rbpf.run('record', '-p', @target.pid, '-d', "#{SECONDS}s", '-F', 499, '--kernel',
                        '-o', path('rbpf.data'))
      assert_equal 0, result.code, result.err
      assert_operator load.value, :>, 50
      assert_written_by 'Ledger#book', /\A(ksys_|__\w+_sys_)p?write/
      assert_written_by 'Ledger#book', /\A__\w+_sys_f(data)?sync\z/
      assert_written_by 'Ledger#balance', /\A(ksys_|__\w+_sys_)p?read/
    end

    private

    # Innermost first: the kernel, SQLite, the method in C of the gem, the method of the program.
    def assert_written_by(method, call)
      stacks = recording.samples.map(&:frames)
                        .select { |s| s.any? { |f| f.kind == 'kernel' && f.label.match?(call) } }
                        .select { |s| s.any? { |f| f.label == method } }
      refute_empty stacks, "#{call} under #{method}"
      stacks.each { |stack| assert_order(stack, method, call) }
    end

    def assert_order(stack, method, call)
      places = [stack.index { |f| f.kind == 'kernel' && f.label.match?(call) },
                stack.index { |f| f.of?('libsqlite3') },
                stack.index { |f| f.kind == 'cfunc' && f.label.start_with?('SQLite3::') },
                stack.index { |f| f.kind == 'ruby' && f.label == method }]
      assert_equal places.compact.sort, places, stack.join(' < ')
      above = stack[0...places[1]].map(&:kind).uniq
      assert_empty above - %w[kernel native], stack.join(' < ')
    end
  end
end

# Asks for entries and accounts in turn.
class Requests
  FORM = { 'Content-Type' => 'application/x-www-form-urlencoded' }.freeze

  def initialize(port, seconds)
    @port = port
    @deadline = now + seconds
  end

  # How many were answered.
  def run
    Net::HTTP.start('127.0.0.1', @port) do |http|
      (1..).each do |n|
        return n if now > @deadline

        reply = ask(http, n)
        raise reply.inspect unless reply.is_a?(Net::HTTPSuccess)
      end
    end
  end

  private

  def ask(http, number)
    account = number % 50
    return http.get("/accounts/#{account}") if number.even?

    http.post('/entries', "account=#{account}", FORM)
  end

  def now
    Process.clock_gettime(Process::CLOCK_MONOTONIC)
  end
end
