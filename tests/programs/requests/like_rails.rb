# SPDX-License-Identifier: GPL-2.0-only
# frozen_string_literal: true

# A method with the name, file, receiver and local variables of that by which Rails runs a request.
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
