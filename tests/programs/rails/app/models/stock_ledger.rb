# SPDX-License-Identifier: GPL-2.0-only
# frozen_string_literal: true

# One at a time, and slow.
class StockLedger
  LOCK = Mutex.new
  SECONDS = 0.02

  def self.take
    LOCK.synchronize { write }
  end

  def self.write
    sleep SECONDS
    'taken'
  end
end
