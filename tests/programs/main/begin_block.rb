# SPDX-License-Identifier: GPL-2.0-only
# frozen_string_literal: true

# BEGIN runs before anything else in the file; END when the program ends.

BEGIN {
  require_relative '../oracle/checkpoint'

  Oracle.watch_main(:begin_block)
  [1].each { Oracle.checkpoint }
}
