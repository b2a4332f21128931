# SPDX-License-Identifier: GPL-2.0-only
# frozen_string_literal: true

# A file required through RubyGems' own Kernel#require.

require_relative '../oracle/checkpoint'

Oracle.watch_main(:requires)
$LOAD_PATH.unshift File.expand_path('../oracle/fixtures', __dir__)
require 'required'
