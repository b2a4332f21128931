# SPDX-License-Identifier: GPL-2.0-only
# frozen_string_literal: true

# A target whose requests take so little that each sample is of another one, at the depth that it is given:
#
#   ruby requests_work.rb none|same|new|young|path FRAMES

require_relative '../tests/programs/requests/like_rails'

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

SHORT = 2_000 # turns of a loop, about 0.1 ms
LONG = 1 << 60
YOUNG_FOR = 100 # requests

def work(depth, count)
  return work(depth - 1, count) if depth.positive?

  count -= 1 while count.positive?
end

class OrdersController < ActionController::Metal
  def index
    work(DEPTH, COUNT)
  end
end

class PumaServer
  include Puma::Request

  def app(_env)
    work(DEPTH, COUNT)
  end
end

def env_of(number)
  { 'REQUEST_METHOD' => 'GET', 'REQUEST_PATH' => "/orders/#{number}", **(1..9).to_h { |i| ["HTTP_#{i}", i] } }
end

kind = ARGV.fetch(0)
DEPTH = Integer(ARGV.fetch(1)) - 4 # there are the main program's and those of the request
COUNT = kind == 'same' ? LONG : SHORT
SERVER = PumaServer.new
5.times { GC.start } # code that has been there for a while
number = 0

case kind
when 'none' then loop { work(DEPTH, COUNT) }
when 'same', 'new' then loop { OrdersController.new.dispatch('index', nil, nil) }
when 'young' then loop { Class.new(OrdersController).then { |klass| YOUNG_FOR.times { klass.new.dispatch('index', nil, nil) } } }
when 'path' then loop { SERVER.handle_request(env_of(number += 1), nil) }
else abort "no such kind: #{kind}"
end
