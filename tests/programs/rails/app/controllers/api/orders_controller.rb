# SPDX-License-Identifier: GPL-2.0-only
# frozen_string_literal: true

module Api
  class OrdersController < ApplicationController
    def index
      render json: Order.includes(:items).limit(30).as_json(include: :items)
    end
  end
end
