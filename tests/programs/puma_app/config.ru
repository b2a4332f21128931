# SPDX-License-Identifier: GPL-2.0-only
# frozen_string_literal: true

# A small Sinatra shop with one slow page, which a profile has to point at.
#
#   puma -b tcp://127.0.0.1:PORT config.ru

require 'sinatra/base'

# Renders a table row by row, and each row from scratch: what makes the page slow.
class SlowReport
  COLUMNS = %w[name price stock].freeze

  def initialize(rows)
    @rows = rows
  end

  def render
    "<table>#{render_rows}</table>"
  end

  def render_rows
    html = +''
    i = 0
    while i < @rows
      j = 0
      checksum = 0
      while j < 200
        checksum = ((checksum * 31) + (i ^ j)) & 0xffff
        j += 1
      end
      html << '<tr><td>' << COLUMNS[i % 3] << '</td></tr>' if checksum.even?
      i += 1
    end
    html
  end
end

class Shop < Sinatra::Base
  set :environment, :production
  set :logging, false

  get '/report' do
    SlowReport.new(1_000).render
  end

  get '/fast' do
    'quick'
  end
end

run Shop
