# SPDX-License-Identifier: GPL-2.0-only
# frozen_string_literal: true

# Threads that stay where they are, each in a request, in a job within a request, or in none:
#
#   ruby parked.rb
#
# Says {"ready": true, "threads": {TID: NAME or null}} and ends when a line comes on standard input.

require_relative 'like_rails'
require_relative 'log'

PARKED = Queue.new
STAY = Queue.new

def park(name)
  PARKED << [RequestLog.tid, name]
  STAY.pop
end

class OrdersController < ActionController::Metal
  def index
    park('OrdersController#index')
  end

  def show
    park('OrdersController#show')
  end
end

class MailJob
  include ActiveJob::Execution

  def perform
    park('MailJob')
  end
end

class NestedController < OrdersController
  def create
    OrdersController.new.dispatch(:show, nil, nil)
  end

  def mail
    MailJob.new.perform_now
  end
end

module Admin
  class OrdersController < ::OrdersController
    def index
      park('Admin::OrdersController#index')
    end
  end
end

eval(<<~RUBY, TOPLEVEL_BINDING, '/gems/like/lib/puma/request.rb', 1) # rubocop:disable Security/Eval
  module Puma
    module Request
      def handle_request(client, _requests)
        env = client.dup
        app(env)
      end
    end
  end
RUBY

class PumaServer
  include Puma::Request

  def app(_env)
    park('Puma request')
  end
end

# With more entries than fit into a small Hash.
ENVIRONMENT = { 'REQUEST_METHOD' => 'GET', 'REQUEST_PATH' => '/orders/1701', **(1..9).to_h { |i| [:"rack_#{i}", i] } }.freeze

CALLS = [
  -> { OrdersController.new.dispatch('index', nil, nil) },
  -> { OrdersController.new.dispatch(:show, nil, nil) },
  -> { NestedController.new.dispatch('create', nil, nil) },
  -> { NestedController.new.dispatch('mail', nil, nil) },
  -> { Admin::OrdersController.new.dispatch('index', nil, nil) },
  -> { PumaServer.new.handle_request(ENVIRONMENT, nil) },
  -> { park(nil) }
].freeze

$stdout.sync = true
CALLS.each { |call| Thread.new(&call) }
puts JSON.generate(ready: true, threads: Array.new(CALLS.size) { PARKED.pop }.to_h)
$stdin.gets
