# SPDX-License-Identifier: GPL-2.0-only
# frozen_string_literal: true

# Two workers that render the same templates by methods of different names, which are made as Action View
# and Tilt make them (neither is needed). Each worker burns SECONDS of CPU time in the method of each
# template, and as much in a block in it; then in methods of an anonymous class, of a class in one, of an
# anonymous module and of a single object. Begins when a line comes on standard input. Then the first
# template waits for another line, and the program ends.
#
#   ruby templates.rb SECONDS

require_relative 'oracle/checkpoint'

ROOT = '/srv/shop'
GEM = '/usr/lib/ruby/gems/devise-4.9.3'
VIEWS = ["#{ROOT}/app/views/orders/_order-2.html.erb", "#{ROOT}/app/views/café/Menü.html.haml",
         "#{GEM}/app/views/devise/sessions/new.html.erb"].freeze
TILT_VIEWS = ["#{ROOT}/views/index.erb", "#{ROOT}/views/layout.erb"].freeze

module CompiledTemplates; end

BODY = 'block_given? ? yield : Oracle.spin; [1].each { Oracle.spin unless block_given? }'

# The method that Action View compiles the template at path to.
def action_view(path)
  short = path.delete_prefix("#{ROOT}/").tr('^a-z_', '_')
  name = "_#{short}__#{path.hash}_#{Object.new.__id__}".tr('-', '_')
  Class.new.module_eval(<<-METHOD, path, 0)
    def #{name}
      #{BODY}
    end
    new.method(:#{name})
  METHOD
end

# The method that Tilt does. It puts lines of its own before those of the template.
def tilt(path)
  name = "__tilt_#{Thread.current.object_id.abs}"
  CompiledTemplates.module_eval(<<-METHOD, path, -3)
    def #{name}
      local = 1
      local += 1
      #{BODY}
    end
    instance_method(:#{name}).bind(Object.new)
  METHOD
end

class Anonymous
  def initialize
    @class = Class.new do
      def in_anonymous_class
        Oracle.spin
      end
    end
    @inner = @class.const_set(:Inner, Class.new(@class) do
      def in_class_of_an_anonymous_one
        Oracle.spin
      end
    end)
    @module = Module.new do
      def self.in_anonymous_module
        Oracle.spin
      end
    end
    @object = Object.new
    def @object.in_single_object
      Oracle.spin
    end
  end

  def run
    @class.new.in_anonymous_class
    @inner.new.in_class_of_an_anonymous_one
    @module.in_anonymous_module
    @object.in_single_object
  end
end

# The workers make their templates when they are asked for the first time, as Action View does.
def work(number)
  Array.new(number) { Object.new.__id__ }
  VIEWS.each { |path| action_view(path).call }
  Thread.new { TILT_VIEWS.each { |path| tilt(path).call } }.join
  Anonymous.new.run
end

Oracle.seconds = Float(ARGV.fetch(0))
start = IO.pipe
workers = Array.new(2) do |number|
  fork do
    start[1].close
    start[0].read
    work(number)
    exit!(0)
  end
end
Oracle.say(waiting: true, pid: Process.pid, workers: workers)
Oracle.wait_for_test
start[1].close
Process.waitall
action_view(VIEWS[0]).call do
  Oracle.say(ready: true)
  Oracle.wait_for_test
end
