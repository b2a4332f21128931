# SPDX-License-Identifier: GPL-2.0-only
# frozen_string_literal: true

require_relative 'config/environment'

run Shop::Application
