# SPDX-License-Identifier: GPL-2.0-only
# frozen_string_literal: true

class OrdersController < ApplicationController
  PAGE = 20

  # Mostly rendering: a partial for each order, in it one for each item.
  def index
    @orders = Order.includes(:customer, items: :product).order(day: :desc).limit(PAGE)
    render :index
  end

  def show
    @order = Order.find(params[:id])
    render :show
  end
end
