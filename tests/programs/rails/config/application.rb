# SPDX-License-Identifier: GPL-2.0-only
# frozen_string_literal: true

# A small shop on Rails, with what a real one has: Puma with two workers, Active Record on SQLite, ERB views with a
# layout and partials, JSON, Sidekiq. shop.rb starts it.
#
#   SHOP_DIR     where the database and the log are; nothing is written anywhere else
#   SHOP_PORT    of 127.0.0.1, for Puma
#
# Each action and each job measures its own CPU time, for profiles to be compared with: see
# ApplicationController and MeasuredJobs.

require 'action_controller/railtie'
require 'action_view/railtie'
require 'active_record/railtie'
require 'sidekiq'

module Shop
  DIR = ENV.fetch('SHOP_DIR')

  class Application < Rails::Application
    ENV['DATABASE_URL'] = "sqlite3:#{File.join(DIR, 'shop.sqlite3')}"

    config.root = File.expand_path('..', __dir__)
    config.load_defaults 6.1
    config.eager_load = true
    config.logger = ActiveSupport::Logger.new(File.join(DIR, 'rails.log'))
    config.log_level = :info
    config.cache_store = :memory_store
    config.secret_key_base = 'no secrets are kept here' * 4
    config.paths['tmp'] = File.join(DIR, 'tmp')
  end
end
