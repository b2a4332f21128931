# SPDX-License-Identifier: GPL-2.0-only
# frozen_string_literal: true

require_relative '../oracle/checkpoint'

Oracle.watch_main(:class_body)
module InMain
  class Body
    Oracle.checkpoint
  end
end
