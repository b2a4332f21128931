# SPDX-License-Identifier: GPL-2.0-only
# frozen_string_literal: true

# Requests of some tens of microseconds, of two controllers in turn:
#
#   ruby quick.rb
#
# Says {"ready": true} and ends when a line comes on standard input.

require_relative 'like_rails'
require_relative 'log'

# So that the stack is the same, but for one method.
def work(count)
  count -= 1 while count.positive?
end

class OrdersController < ActionController::Metal
  def index
    work(1_000)
  end
end

class UsersController < ActionController::Metal
  def index
    work(1_000)
  end
end

$stdout.sync = true
Thread.new do
  loop { [OrdersController, UsersController].each { |controller| controller.new.dispatch('index', nil, nil) } }
end
puts JSON.generate(ready: true)
$stdin.gets
