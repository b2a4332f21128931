# SPDX-License-Identifier: GPL-2.0-only
# frozen_string_literal: true

# Methods with the names, files, receivers and local variables of those by which frameworks run a request or a job: for
# frameworks that are not installed, and for Rubies that have no gems.
#
#   ruby like.rb SECONDS

require_relative 'like_rails'
require_relative 'log'

LIKE = {
  'action_mailer/base.rb' => <<~RUBY,
    module ActionMailer
      class Base
        def process(method_name, *args)
          payload = { mailer: self.class, action: method_name, args: args }
          instrument(payload) { send(method_name) }
        end

        def instrument(_payload)
          yield
        end
      end
    end
  RUBY
  'action_cable/channel/base.rb' => <<~RUBY,
    module ActionCable
      module Channel
        class Base
          def perform_action(data)
            action = data['action'].to_sym
            public_send(action) if action
          end
        end
      end
    end
  RUBY
  'action_mailbox/base.rb' => <<~RUBY,
    module ActionMailbox
      class Base
        def perform_processing
          process
        end
      end
    end
  RUBY
  'sidekiq/processor.rb' => <<~RUBY,
    module Sidekiq
      class Processor
        def execute_job(instance, cloned_args)
          instance.perform(*cloned_args)
        end
      end
    end
  RUBY
  'resque/job.rb' => <<~RUBY,
    module Resque
      class Job
        def initialize(payload)
          @payload = payload
        end

        def perform
          job = Object.const_get(@payload)
          job_args = []
          job.perform(*job_args)
        end
      end
    end
  RUBY
  'delayed/backend/base.rb' => <<~RUBY,
    module Delayed
      module Backend
        module Base
          def invoke_job
            perform
          end
        end
      end
    end
  RUBY
  'sinatra/base.rb' => <<~RUBY,
    module Sinatra
      class Base
        class << self
          attr_reader :routes

          def get(path, &block)
            (@routes ||= {})[path] = compile!('GET', path, block)
          end

          def generate_method(method_name, &block)
            define_method(method_name, &block)
            method = instance_method method_name
            remove_method method_name
            method
          end

          def compile!(verb, path, block)
            unbound_method = generate_method("\#{verb} \#{path}", &block)
            proc { |a, _p| unbound_method.bind(a).call }
          end
        end

        def call!(path)
          self.class.routes.fetch(path).call(self, [])
        end
      end
    end
  RUBY
  'grape/endpoint.rb' => <<~RUBY,
    module Grape
      class Endpoint
        def self.generate_api_method(method_name, &block)
          define_method(method_name, &block)
          method = instance_method(method_name)
          remove_method(method_name)
          proc { |endpoint| [1].each { method.bind(endpoint).call } }
        end

        def initialize(name, &block)
          @block = self.class.generate_api_method(name, &block)
        end

        def run
          @block.call(self)
        end
      end
    end
  RUBY
  'hanami/action.rb' => <<~RUBY,
    module Hanami
      class Action
        def call(env)
          handle(env)
        end
      end
    end
  RUBY
  'roda.rb' => <<~RUBY,
    class Roda
      module RodaPlugins
        module Base
          module InstanceMethods
            def _roda_handle_main_route
              route
            end
          end
        end
      end
      include RodaPlugins::Base::InstanceMethods
    end
  RUBY
  'protocol/rack/adapter/generic.rb' => <<~RUBY,
    module Protocol
      module Rack
        module Adapter
          class Generic
            def call(request)
              env = request.dup
              app(env)
            end
          end
        end
      end
    end
  RUBY
  'test/unit/testcase.rb' => <<~RUBY,
    module Test
      module Unit
        class TestCase
          def run(_result)
            test_it
          end
        end
      end
    end
  RUBY
  'puma/request.rb' => <<~RUBY,
    module Puma
      module Request
        def handle_request(client, _requests)
          env = client.dup
          app(env)
        end
      end
    end
  RUBY
  'puma/server.rb' => <<~RUBY,
    module Puma
      class Server
        def handle_request(client, _lines)
          env = client.dup
          app(env)
        end
      end
    end
  RUBY
  'unicorn/http_server.rb' => <<~RUBY,
    module Unicorn
      class HttpServer
        def process_client(client)
          app(env = client.dup)
          env
        end
      end
    end
  RUBY
}.freeze

LIKE.each { |file, source| eval(source, TOPLEVEL_BINDING, "/gems/like/lib/#{file}", 1) } # rubocop:disable Security/Eval

# A class below @above, with methods that work as the request that they are said to be.
def app_class(name, above = Object, **methods)
  Object.const_set(name, Class.new(above)).tap do |klass|
    methods.each { |method, called| klass.class_eval("def #{method}(*) RequestLog.work(#{called.inspect}) end", __FILE__, __LINE__) }
  end
end

app_class(:OrdersController, ActionController::Metal, index: 'OrdersController#index', show: 'OrdersController#show')
app_class(:UserMailer, ActionMailer::Base, welcome: 'UserMailer#welcome')
app_class(:ChatChannel, ActionCable::Channel::Base, speak: 'ChatChannel#speak')
app_class(:InboxMailbox, ActionMailbox::Base, process: 'InboxMailbox')
app_class(:MailJob, perform: 'MailJob').include(ActiveJob::Execution)
app_class(:ThumbnailWorker, perform: 'ThumbnailWorker')
app_class(:Delayable, perform: 'Delayable').include(Delayed::Backend::Base)
app_class(:ShowBook, Hanami::Action, handle: 'ShowBook')
app_class(:Tree, Roda, route: 'Tree')
app_class(:OrderTest, Test::Unit::TestCase, test_it: 'OrderTest')
app_class(:PumaServer, app: 'Puma request').include(Puma::Request)
app_class(:PumaFour, Puma::Server, app: 'Puma request')
app_class(:UnicornServer, Unicorn::HttpServer, app: 'Unicorn request')
app_class(:FalconServer, Protocol::Rack::Adapter::Generic, app: 'Falcon request')

class ArchiveJob
  def self.perform
    RequestLog.work('ArchiveJob')
  end
end

class Shop < Sinatra::Base
  get('/orders') { RequestLog.work('Shop GET /orders') }
  get('/a-very-long-path-of-more-than-48-bytes/with/:many/:parts') do
    RequestLog.work('Shop GET /a-very-long-path-of-more-than-48-bytes/with/:many/:parts')
  end
end

# Code around the routes, such as filters.
Shop.routes['/around'] = ->(_app, _params) { RequestLog.work('Shop') }
AROUND = Grape::Endpoint.allocate
AROUND.instance_variable_set(:@block, ->(_endpoint) { RequestLog.work('Grape::Endpoint') })

# A controller runs a job at once, within its own request.
class InlineController < ActionController::Metal
  def create
    RequestLog.work('InlineController#create')
    MailJob.new.perform_now
    RequestLog.work('InlineController#create')
  end
end

# One whose class nobody named.
anonymous = Class.new(OrdersController) { define_method(:index) { RequestLog.work('?') } }

ENDPOINT = Grape::Endpoint.new('GET /books') { RequestLog.work('GET /books') }

# What a server puts into Rack's environment, of a request for an object of its own.
def environment(method, path)
  { 'rack.version' => [1, 6], 'rack.errors' => $stderr, 'rack.multithread' => true, 'rack.multiprocess' => false,
    'rack.run_once' => false, 'SCRIPT_NAME' => '', 'QUERY_STRING' => 'secret=1', 'SERVER_SOFTWARE' => 'like',
    'REQUEST_METHOD' => method, 'REQUEST_URI' => "#{path}?secret=1", 'HTTP_HOST' => 'localhost', 'REQUEST_PATH' => path,
    'PATH_INFO' => '/elsewhere' }
end

def number
  RequestLog::CHANCE.synchronize { NUMBERS.rand(1_000_000) }
end
NUMBERS = Random.new(2)

CALLS = [
  -> { OrdersController.new.dispatch('index', nil, nil) },
  -> { OrdersController.new.dispatch(:show, nil, nil) },
  -> { OrdersController.new.dispatch('s'.dup.concat('how'), nil, nil) },
  -> { OrdersController.new.tap { |c| c.define_singleton_method(:x) { 1 } }.dispatch('index', nil, nil) },
  -> { anonymous.new.dispatch('index', nil, nil) },
  -> { InlineController.new.dispatch('create', nil, nil) },
  -> { UserMailer.new.process(:welcome, 1, 2) },
  -> { ChatChannel.new.perform_action('action' => 'speak') },
  -> { InboxMailbox.new.perform_processing },
  -> { MailJob.new.perform_now },
  -> { Sidekiq::Processor.new.execute_job(ThumbnailWorker.new, [1]) },
  -> { Resque::Job.new('ArchiveJob').perform },
  -> { Delayable.new.invoke_job },
  -> { Shop.new.call!('/orders') },
  -> { Shop.new.call!('/a-very-long-path-of-more-than-48-bytes/with/:many/:parts') },
  -> { Shop.new.call!('/around') },
  -> { ENDPOINT.run },
  -> { AROUND.run },
  -> { ShowBook.new.call(environment('DELETE', "/books/#{number}")) },
  -> { Tree.new._roda_handle_main_route },
  -> { OrderTest.new.run(nil) },
  -> { PumaServer.new.handle_request(environment('GET', "/orders/#{number}/items"), 2) },
  -> { PumaFour.new.handle_request(environment('GET', "/orders/#{number}/items"), 2) },
  -> { UnicornServer.new.process_client(environment('POST', "/a-long-path-that/has/more/than/48/bytes/#{number}/and/more")) },
  -> { FalconServer.new.call(environment('GET', '/health')) },
  -> { Fiber.new { OrdersController.new.dispatch('index', nil, nil) }.resume },
  -> { OrdersController.new.dispatch('index', nil, nil) && RequestLog.work('-') }
].freeze

# Each of them again and again, in each thread in another order.
random = Random.new(1)
orders = Array.new(2) { CALLS.shuffle(random: random) }
done = [0, 0]
RequestLog.run { |thread| orders[thread][(done[thread] += 1) % CALLS.size].call }
