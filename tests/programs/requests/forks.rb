# SPDX-License-Identifier: GPL-2.0-only
# frozen_string_literal: true

# Runs each request in a process that is forked for it.
#
#   ruby forks.rb SECONDS

require_relative 'like_rails'
require_relative 'log'

class OrdersController < ActionController::Metal
  def index
    RequestLog.work('OrdersController#index')
  end

  def show
    RequestLog.work('OrdersController#show')
  end
end

actions = %w[index show].cycle
RequestLog.run(1) do
  action = actions.next
  reader, writer = IO.pipe
  pid = fork do
    reader.close
    Thread.current.thread_variable_set(:tid, nil)
    RequestLog::SERVED.clear
    OrdersController.new.dispatch(action, nil, nil)
    writer.puts JSON.generate(RequestLog::SERVED.pop)
    exit!(0)
  end
  OrdersController.new.dispatch('index', nil, nil)
  writer.close
  RequestLog::SERVED << JSON.parse(reader.gets)
  reader.close
  Process.wait(pid)
end
