# SPDX-License-Identifier: GPL-2.0-only
# frozen_string_literal: true

class ReportsController < ApplicationController
  # Mostly code of the application.
  def show
    @report = SalesReport.new(Item.joins(:order, :product).pluck('orders.day', 'products.cents', 'items.count'))
    render :show
  end
end
