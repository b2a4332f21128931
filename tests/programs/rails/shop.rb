# SPDX-License-Identifier: GPL-2.0-only
# frozen_string_literal: true

# Starts the shop: Puma, and Sidekiq with a Redis of its own. All that they write is in the directory that is given.
#
#   ruby shop.rb DIR     until standard input ends

require 'json'
require 'socket'

require_relative 'load'

module Shop
  APP = __dir__
  PACKAGES = 'puma ruby-actionpack ruby-activerecord ruby-railties ruby-sqlite3 ruby-sidekiq redis-tools'
  GEMS = %w[puma actionpack activerecord railties sqlite3 sidekiq].freeze
  # The server itself, of the package redis-tools: it does what it is called. The package redis-server has little
  # more than its name, and a service that would run on the machine from now on.
  REDIS = ['/usr/bin/redis-check-rdb', 'redis-server'].freeze
  JOB = 'InvoiceJob'
  # s, on a machine that is busy with other things.
  PATIENCE = 120
  PARTNER_SECONDS = 0.06

  # Gems and programs that are not there; nil if all are.
  def self.missing
    missing = GEMS.select { |name| Gem::Specification.find_all_by_name(name).empty? }
    missing << REDIS.first unless File.executable?(REDIS.first)
    "#{missing.join(', ')} (Debian packages #{PACKAGES})" unless missing.empty?
  end

  # The processes of one shop.
  class Processes
    # The pids of Puma's master and of Sidekiq.
    attr_reader :port, :web, :jobs

    def initialize(dir)
      @dir = dir
      @pids = []
      @port = TCPServer.open('127.0.0.1', 0) { |server| server.addr[1] }
    end

    # A partner of the shop, who answers slowly.
    def start_partner
      @partner = TCPServer.new('127.0.0.1', 0)
      Thread.new { loop { Thread.new(@partner.accept) { |client| answer(client) } } }
    end

    # Starts Puma, and waits until each worker has answered: templates are compiled when they are first needed.
    def start_web
      @web = spawn('puma', RbConfig.ruby, program('puma'), '-C', File.join(APP, 'config/puma.rb'))
      wait_until('puma to listen') { connects? { TCPSocket.new('127.0.0.1', @port) } }
      wait_until('all workers to answer') { Load.new(@port, 40, 100).run.pids.size == 2 }
    end

    # Starts Redis and Sidekiq, and waits until a job has ended. After start_web, which makes the database.
    def start_jobs
      spawn('redis', REDIS, *%w[--port 0 --save] << '', '--unixsocket', socket)
      wait_until('redis to listen') { connects? { UNIXSocket.new(socket) } }
      @jobs = spawn('sidekiq', RbConfig.ruby, program('sidekiq'), '-r', APP, '-c', '2', '-e', 'production')
      run_jobs(1)
      redis('DEL', 'cpu_ns', 'ended')
    end

    # Runs so many more jobs and waits until they have ended. What all of them took.
    def run_jobs(count)
      enough = jobs_ended + count
      redis('SADD', 'queues', 'default')
      redis('LPUSH', 'queue:default', *Array.new(count) { |i| job(i + 1) })
      wait_until("#{count} jobs to end") { jobs_ended == enough }
      Spent.new(enough, redis('HGET', 'cpu_ns', JOB).to_i)
    end

    def stop
      @pids.each { |pid| Process.kill(:TERM, pid) }
      deadline = now + PATIENCE
      sleep 0.02 until (reap && @pids.empty?) || now > deadline
      @pids.each { |pid| Process.kill(:KILL, pid) && Process.wait(pid) }
    end

    private

    # Says when, which is what the shop cannot see for itself (ExchangeRates).
    def answer(client)
      nil until client.gets.chomp.empty?
      sleep PARTNER_SECONDS
      body = "42 #{Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond)}"
      client.write("HTTP/1.1 200 OK\r\nContent-Length: #{body.size}\r\nConnection: close\r\n\r\n#{body}")
    ensure
      client.close
    end

    def spawn(name, *command)
      env = { 'SHOP_DIR' => @dir, 'SHOP_PORT' => @port.to_s, 'SHOP_PARTNER' => @partner&.addr&.at(1)&.to_s,
              'RUBYOPT' => nil, 'LC_ALL' => 'C.UTF-8' }
      pid = Process.spawn(env, *command, chdir: @dir, in: File::NULL, %i[out err] => File.join(@dir, "#{name}.log"))
      @pids << pid
      pid
    end

    def program(name)
      ENV['PATH'].split(':').map { |dir| File.join(dir, name) }.find { |file| File.executable?(file) }
    end

    def socket
      File.join(@dir, 'redis.sock')
    end

    def redis(*command)
      IO.popen(['redis-cli', '-s', socket, *command], &:read)
    end

    def jobs_ended
      redis('HGET', 'ended', JOB).to_i
    end

    # What Sidekiq's client would have written.
    def job(argument)
      JSON.generate(class: JOB, args: [argument], jid: "job#{argument}", queue: 'default', retry: false,
                    created_at: Time.now.to_f, enqueued_at: Time.now.to_f)
    end

    def connects?
      yield.close
      true
    rescue Errno::ECONNREFUSED, Errno::ENOENT
      false
    end

    # Those that have ended since.
    def reap
      @pids.select { |pid| Process.wait(pid, Process::WNOHANG) }.tap { |pids| @pids -= pids }
    end

    def wait_until(what)
      deadline = now + PATIENCE
      until yield
        raise "waited for #{what}, but something ended: #{logs}" unless reap.empty?
        raise "gave up waiting for #{what}: #{logs}" if now > deadline

        sleep 0.02
      end
    end

    def logs
      Dir[File.join(@dir, '*.log')].map { |file| File.read(file)[/.{0,2000}\z/m] }.join("\n")
    end

    def now
      Process.clock_gettime(Process::CLOCK_MONOTONIC)
    end
  end
end

if $PROGRAM_NAME == __FILE__
  abort "missing: #{Shop.missing}" if Shop.missing
  shop = Shop::Processes.new(File.expand_path(ARGV.fetch(0)))
  shop.start_partner
  shop.start_web
  shop.start_jobs
  puts JSON.generate(port: shop.port, web: shop.web, jobs: shop.jobs)
  $stdout.flush
  $stdin.read
  shop.stop
end
