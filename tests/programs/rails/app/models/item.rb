# SPDX-License-Identifier: GPL-2.0-only
# frozen_string_literal: true

class Item < ApplicationRecord
  belongs_to :order
  belongs_to :product

  def cents
    count * product.cents
  end
end
