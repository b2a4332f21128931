# SPDX-License-Identifier: GPL-2.0-only
# frozen_string_literal: true

# What an action waited for, in ns, by the clocks of those who take part. Each amount ends where the wait does, not where the
# thread goes on: it may have to wait for the GVL and for a CPU first, which a clock around the call would have in it.
class TimeAccount
  PARTS = %i[network lock timer queued].freeze

  class << self
    def begin
      Thread.current[:time_account] = PARTS.to_h { |part| [part, 0] }.merge(queued: -queued)
    end

    def add(part, nanoseconds)
      Thread.current[:time_account][part] += nanoseconds
    end

    # What has been added since then, and how long the thread was queued for a CPU.
    def end
      add(:queued, queued)
      Thread.current[:time_account].values_at(*PARTS)
    end

    def now
      Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond)
    end

    private

    # In all its life, by the kernel's account. Read without the GVL being given away.
    def queued
      file = Thread.current[:schedstat] ||= File.open('/proc/thread-self/schedstat')
      file.rewind
      Integer(file.read_nonblock(64).split[1])
    end
  end
end
