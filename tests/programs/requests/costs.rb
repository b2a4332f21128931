# SPDX-License-Identifier: GPL-2.0-only
# frozen_string_literal: true

# Light requests and heavy jobs of one process, which make each other wait for the GVL. Each kind measures what it takes:
#
#   ruby costs.rb SECONDS
#
# Says {"ready": true, "costs": {NAME: {"cpu": NS, "gvl": NS, "queued": NS, "walls": [NS, ...]}}, "job_share": PART}. gvl: how long
# the thread was off the CPU in requests, and neither slept nor was in the queue for a CPU: of use where a thread does nothing else.
# queued: how long it was in that queue; 0: it could not ask, and gvl has that in it. walls: how long each request took. job_share:
# the part of its thread's time in which the heavy job ran; the rest is of no request.

require_relative 'like_rails'
require_relative 'log'

# What requests of one kind took, all on one thread.
class Cost
  attr_writer :queued

  def initialize
    @cpu = @off_cpu = @queued = 0
    @walls = []
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

  def wall
    @walls.sum
  end

  def to_h
    { cpu: @cpu, gvl: @off_cpu - @queued, queued: @queued, walls: @walls }
  end
end

COSTS = Hash.new { |hash, name| hash[name] = Cost.new }

# A thread that runs the block when it is told to. What the kernel says of it is read by others, before and after: to
# read a file gives the GVL away.
class Worker
  def initialize(&block)
    @said = Queue.new
    @told = Queue.new
    @thread = Thread.new do
      @said << RequestLog.tid
      @told.pop
      @said << block.call
      @told.pop
    end
    @tid = @said.pop
    @before = queued
  end

  def go
    @told << true
  end

  # Of the block, and how long the thread was in the queue for a CPU meanwhile.
  def result
    [@said.pop, queued - @before].tap { @told << true }
  end

  private

  # 0 where there is no /proc, as in a root.
  def queued
    File.read("/proc/#{Process.pid}/task/#{@tid}/schedstat").split[1].to_i
  rescue Errno::ENOENT
    0
  end
end

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

# Jobs, and some work that is of none. Returns what part of the time was the jobs'.
def work(job, seconds)
  from = RequestLog.now
  while RequestLog.now < from + (seconds * 1e9)
    job.new.perform_now
    RequestLog.spin(30)
  end
  COSTS[job::NAME].wall / Float(RequestLog.now - from)
end

# Returns that part. The light requests go on until the last job is over.
def run(controller, job, seconds)
  working = true
  light = Worker.new { controller.new.dispatch('index', nil, nil) while working }
  heavy = Worker.new { work(job, seconds).tap { working = false } }
  [light, heavy].each(&:go)
  share, COSTS[job::NAME].queued = heavy.result
  _, COSTS[controller::NAME].queued = light.result
  share
end

[FirstController, FirstJob, OrdersController, ThumbnailJob].each { |kind| COSTS[kind::NAME] }
RequestLog.run_for do |seconds|
  run(FirstController, FirstJob, 1)
  share = run(OrdersController, ThumbnailJob, seconds - 1)
  { costs: COSTS.transform_values(&:to_h), job_share: share }
end
