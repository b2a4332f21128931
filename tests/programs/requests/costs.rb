# SPDX-License-Identifier: GPL-2.0-only
# frozen_string_literal: true

# Light requests and heavy jobs of one process, which make each other wait for the GVL. Each kind measures what it takes:
#
#   ruby costs.rb SECONDS
#
# Says {"ready": true, "costs": {NAME: {"cpu": NS, "gvl": NS, "walls": [NS, ...]}}, "job_share": PART}. gvl: how long the thread was
# off the CPU in requests, and neither slept nor was in the queue for a CPU: of use where a thread does nothing else. walls: how
# long each request took. job_share: the part of its thread's time in which the heavy job ran, the rest is of no request.

require_relative 'like_rails'
require_relative 'log'

eval(<<~RUBY, TOPLEVEL_BINDING, '/gems/like/lib/active_job/execution.rb', 1) # rubocop:disable Security/Eval
  module ActiveJob
    module Execution
      def perform_now
        perform
      end
    end
  end
RUBY

# What requests of one kind took, all on one thread.
class Cost
  def initialize
    @cpu = @off_cpu = @queued = 0
    @walls = []
  end

  # Around all requests: to read the file gives the GVL away.
  def thread
    before = queued
    yield
  ensure
    @queued = queued - before
  end

  # Around one; the block returns how long it slept, in ns.
  def request
    from = RequestLog.now
    cpu = RequestLog.cpu
    slept = yield
    cpu = RequestLog.cpu - cpu
    wall = RequestLog.now - from
    @cpu += cpu
    @off_cpu += wall - cpu - slept
    @walls << wall
  end

  def to_h
    { cpu: @cpu, gvl: @off_cpu - @queued, walls: @walls }
  end

  private

  # 0 where there is no /proc, as in a root.
  def queued
    File.read("/proc/#{Process.pid}/task/#{RequestLog.tid}/schedstat").split[1].to_i
  rescue Errno::ENOENT
    0
  end
end

COSTS = Hash.new { |hash, name| hash[name] = Cost.new }

class OrdersController < ActionController::Metal
  NAME = 'OrdersController#index'
  SLEEP = 2 # ms

  # What it is off the CPU for longer than it sleeps is for the GVL.
  def index
    COSTS[self.class::NAME].request do
      sleep SLEEP / 1e3
      RequestLog.spin(RANDOM.rand(1..6))
      SLEEP * 1_000_000
    end
  end

  RANDOM = Random.new(1)
end

class ThumbnailJob
  include ActiveJob::Execution
  NAME = 'ThumbnailJob'

  def perform
    COSTS[self.class::NAME].request { RequestLog.spin(70) || 0 }
  end
end

# Before what is measured: until rbpf has seen the frames.
class FirstController < OrdersController
  NAME = 'FirstController#index'
end

class FirstJob < ThumbnailJob
  NAME = 'FirstJob'
end

def serve(controller, more)
  COSTS[controller::NAME].thread { controller.new.dispatch('index', nil, nil) while more.call }
end

# Jobs, and some work that is of none. Returns what part of the time was the jobs'.
def work(job, more)
  from = RequestLog.now
  COSTS[job::NAME].thread do
    while more.call
      job.new.perform_now
      RequestLog.spin(30)
    end
  end
  COSTS[job::NAME].to_h[:walls].sum / Float(RequestLog.now - from)
end

def run(controller, job, more)
  threads = [Thread.new { serve(controller, more) }, Thread.new { work(job, more) }]
  threads.map(&:value).last
end

[FirstController, FirstJob, OrdersController, ThumbnailJob].each { |kind| COSTS[kind::NAME] }
RequestLog.run_for do |more|
  first = RequestLog.now + 1_000_000_000
  run(FirstController, FirstJob, -> { RequestLog.now < first })
  share = run(OrdersController, ThumbnailJob, more)
  { costs: COSTS.transform_values(&:to_h), job_share: share }
end
