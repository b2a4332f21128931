# SPDX-License-Identifier: GPL-2.0-only
# frozen_string_literal: true

# CPU time of jobs, by class: a hash in Redis has the nanoseconds, another how many of them have ended.
class MeasuredJobs
  def call(job, _message, _queue)
    before = cpu_ns
    yield
  ensure
    ns = cpu_ns - before
    Sidekiq.redis do |redis|
      redis.hincrby('cpu_ns', job.class.name, ns)
      redis.hincrby('ended', job.class.name, 1)
    end
  end

  private

  def cpu_ns
    Process.clock_gettime(Process::CLOCK_THREAD_CPUTIME_ID, :nanosecond)
  end
end

Sidekiq.configure_server do |config|
  config.redis = { path: File.join(Shop::DIR, 'redis.sock') }
  config.server_middleware { |chain| chain.add(MeasuredJobs) }
end
