# SPDX-License-Identifier: GPL-2.0-only
# frozen_string_literal: true

require 'net/http'

# What another company says, which takes its time.
class ExchangeRates
  def initialize(port)
    @uri = URI("http://127.0.0.1:#{port}/rates")
  end

  # The answer is on its way when the partner has sent it, and says when that was. Without the GVL being given away, the request is
  # written and its thread comes to where it waits.
  def today
    http = Net::HTTP.start(@uri.host, @uri.port)
    asked = TimeAccount.now
    rate, sent = http.get(@uri.path).body.split
    TimeAccount.add(:network, Integer(sent) - asked)
    rate
  ensure
    http&.finish
  end
end
