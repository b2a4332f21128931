# SPDX-License-Identifier: GPL-2.0-only
# frozen_string_literal: true

class RatesController < ApplicationController
  # Mostly the answer of a slow partner.
  def show
    render plain: ExchangeRates.new(ENV.fetch('SHOP_PARTNER')).today
  end
end
