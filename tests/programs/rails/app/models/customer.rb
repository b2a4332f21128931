# SPDX-License-Identifier: GPL-2.0-only
# frozen_string_literal: true

class Customer < ApplicationRecord
  has_many :orders
end
