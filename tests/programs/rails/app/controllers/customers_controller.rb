# SPDX-License-Identifier: GPL-2.0-only
# frozen_string_literal: true

class CustomersController < ApplicationController
  # Mostly Active Record and SQLite.
  def index
    @spent = Customer.joins(orders: { items: :product }).group(:city).sum('items.count * products.cents')
    @best = Customer.joins(:orders).group(:id).order('COUNT(orders.id) DESC').limit(10).to_a
    @newest = @best.map { |customer| customer.orders.order(day: :desc).first }
    render :index
  end
end
