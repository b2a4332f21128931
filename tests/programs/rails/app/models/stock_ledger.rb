# SPDX-License-Identifier: GPL-2.0-only
# frozen_string_literal: true

# One at a time, and slow.
class StockLedger
  LOCK = Mutex.new
  SECONDS = 0.02

  # Others wait until the one before them has given it away.
  def self.take
    wanted = TimeAccount.now
    LOCK.synchronize do
      TimeAccount.add(:lock, [@given.to_i - wanted, 0].max)
      write.tap { @given = TimeAccount.now }
    end
  end

  # The time that was asked for is what the timer takes.
  def self.write
    sleep SECONDS
    TimeAccount.add(:timer, (SECONDS * 1e9).to_i)
    'taken'
  end
end
