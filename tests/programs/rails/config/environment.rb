# SPDX-License-Identifier: GPL-2.0-only
# frozen_string_literal: true

require_relative 'application'
require_relative 'sidekiq'
require_relative 'seed'

Shop::Application.initialize!
Seed.new.plant
