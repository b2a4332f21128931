# SPDX-License-Identifier: GPL-2.0-only
# frozen_string_literal: true

# What is required here has collections of both kinds behind it when it begins.
4.times { |i| GC.start(full_mark: i.even?) }
