# SPDX-License-Identifier: GPL-2.0-only
# frozen_string_literal: true

workers 2
threads 3, 3
preload_app!
bind "tcp://127.0.0.1:#{ENV.fetch('SHOP_PORT')}"
rackup File.expand_path('../config.ru', __dir__)
environment 'production'
quiet
