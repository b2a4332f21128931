# SPDX-License-Identifier: GPL-2.0-only
# frozen_string_literal: true

class Product < ApplicationRecord
  has_many :items
end
