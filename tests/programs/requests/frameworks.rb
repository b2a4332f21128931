# SPDX-License-Identifier: GPL-2.0-only
# frozen_string_literal: true

# Requests and jobs of the frameworks themselves, without servers: what a server or a queue calls is called.
#
#   ruby frameworks.rb SECONDS

require 'logger'
require 'stringio'
require 'action_controller'
require 'active_job'
require 'sinatra/base'
require 'rack/mock'
require 'sidekiq'
require 'sidekiq/processor'
require 'rake'
require 'rspec/core'
require 'minitest'

require_relative 'log'

class OrdersController < ActionController::Base
  before_action { RequestLog.work("#{self.class}##{action_name}") }

  def index
    RequestLog.work('OrdersController#index')
    head :ok
  end

  def show
    RequestLog.work('OrdersController#show')
    MailJob.perform_now
    RequestLog.work('OrdersController#show')
    head :ok
  end
end

class CustomersController < OrdersController
  def index
    RequestLog.work('CustomersController#index')
    render plain: 'customers'
  end
end

class MailJob < ActiveJob::Base
  self.logger = Logger.new(File::NULL)

  def perform
    RequestLog.work('MailJob')
  end
end

class ArchiveJob
  include Sidekiq::Worker

  def perform(*)
    RequestLog.work('ArchiveJob')
  end
end

class Shop < Sinatra::Base
  disable :protection, :logging, :show_exceptions
  enable :raise_errors

  get('/orders/:id') { RequestLog.work('Shop GET /orders/:id') || 'ok' }
  post('/orders') { RequestLog.work('Shop POST /orders') || 'ok' }
end

class OrderTest < Minitest::Test
  def test_total
    RequestLog.work('OrderTest#test_total')
  end

  def test_sum
    RequestLog.work('OrderTest#test_sum')
  end
end
Minitest::Runnable.runnables.delete(OrderTest)

GROUP = RSpec.describe('Orders') { it('adds up') { RequestLog.work('RSpec::ExampleGroups::Orders') } }

Rake.application.init('rake', ['--quiet'])
Rake::Task.define_task(:seed, [:count]) { RequestLog.work('rake seed') }
Rake::Task.define_task(all: :seed) { RequestLog.work('rake all') }

# A task runs once.
def rake(name)
  Rake::Task.tasks.each(&:reenable)
  Rake.application.__send__(:invoke_task, name)
end

ENVIRONMENT = Rack::MockRequest.env_for('http://localhost/orders/1')
POST = Rack::MockRequest.env_for('http://localhost/orders', method: 'POST')
SHOP = Shop.new
JOBS = Sidekiq::Processor.allocate
REPORTER = RSpec::Core::NullReporter

CALLS = [
  -> { OrdersController.action(:index).call(ENVIRONMENT.dup) },
  -> { OrdersController.action('show').call(ENVIRONMENT.dup) },
  -> { CustomersController.action('index').call(ENVIRONMENT.dup) },
  -> { MailJob.perform_now },
  -> { JOBS.__send__(:execute_job, ArchiveJob.new, [1]) },
  -> { SHOP.call(ENVIRONMENT.dup) },
  -> { SHOP.call(POST.dup) },
  -> { Minitest.run_one_method(OrderTest, 'test_total') },
  -> { Minitest.run_one_method(OrderTest, 'test_sum') }
].freeze
# They have one state for all threads.
ALONE = [-> { rake('seed[3]') }, -> { rake('all') }, -> { GROUP.run(REPORTER) }].freeze

CALLS.each(&:call)
random = Random.new(1)
RequestLog.run do |thread|
  calls = thread.zero? ? CALLS + ALONE : CALLS
  calls[RequestLog::CHANCE.synchronize { random.rand(calls.size) }].call
end
