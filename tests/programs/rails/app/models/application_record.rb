# SPDX-License-Identifier: GPL-2.0-only
# frozen_string_literal: true

class ApplicationRecord < ActiveRecord::Base
  self.abstract_class = true
end
