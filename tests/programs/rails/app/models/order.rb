# SPDX-License-Identifier: GPL-2.0-only
# frozen_string_literal: true

class Order < ApplicationRecord
  belongs_to :customer
  has_many :items

  def cents
    items.sum(&:cents)
  end
end
