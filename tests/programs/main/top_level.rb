# SPDX-License-Identifier: GPL-2.0-only
# frozen_string_literal: true

# Nothing but a block at the top level of the main program.

require_relative '../oracle/checkpoint'

Oracle.watch_main(:top_level)
[1].each do
  [2].each do
    Oracle.checkpoint
  end
end
