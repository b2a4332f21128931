# SPDX-License-Identifier: GPL-2.0-only
# frozen_string_literal: true

class StocksController < ApplicationController
  # Mostly waiting until other requests have written to the ledger.
  def show
    render plain: StockLedger.take
  end
end
