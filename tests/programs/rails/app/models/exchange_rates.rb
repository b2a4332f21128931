# SPDX-License-Identifier: GPL-2.0-only
# frozen_string_literal: true

require 'net/http'

# What another company says, which takes its time.
class ExchangeRates
  def initialize(port)
    @uri = URI("http://127.0.0.1:#{port}/rates")
  end

  def today
    Net::HTTP.get(@uri)
  end
end
