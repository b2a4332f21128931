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

CALLS = [
  -> { OrdersController.new.dispatch('index', nil, nil) },
  -> { OrdersController.new.dispatch(:show, nil, nil) },
  -> { NestedController.new.dispatch('create', nil, nil) },
  -> { NestedController.new.dispatch('mail', nil, nil) },
  -> { Admin::OrdersController.new.dispatch('index', nil, nil) },
  -> { park(nil) }
].freeze

$stdout.sync = true
CALLS.each { |call| Thread.new(&call) }
puts JSON.generate(ready: true, threads: Array.new(CALLS.size) { PARKED.pop }.to_h)
$stdin.gets
