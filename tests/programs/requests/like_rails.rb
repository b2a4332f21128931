# SPDX-License-Identifier: GPL-2.0-only
# frozen_string_literal: true

# Methods with the name, file, receiver and local variables of those by which Rails runs a request and a job.
eval(<<~RUBY, TOPLEVEL_BINDING, '/gems/like/lib/action_controller/metal.rb', 1) # rubocop:disable Security/Eval
  module ActionController
    class Metal
      def dispatch(name, request, response)
        process(name)
        [request, response]
      end

      def process(name)
        send(name)
      end
    end
  end
RUBY

eval(<<~RUBY, TOPLEVEL_BINDING, '/gems/like/lib/active_job/execution.rb', 1) # rubocop:disable Security/Eval
  module ActiveJob
    module Execution
      def perform_now
        perform
      end
    end
  end
RUBY
