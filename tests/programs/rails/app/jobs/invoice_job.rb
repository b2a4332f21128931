# SPDX-License-Identifier: GPL-2.0-only
# frozen_string_literal: true

# Writes the invoice of an order, and looks that none of its numbers was mistyped.
class InvoiceJob
  include Sidekiq::Worker

  def perform(order_id)
    order = Order.includes(:customer, items: :product).find(order_id)
    lines = order.items.map { |item| format('%<name>-30s %<cents>10d', name: item.product.name, cents: item.cents) }
    checksum(lines.join("\n") * 200)
  end

  private

  def checksum(text)
    sum = 0
    text.each_byte { |byte| sum = ((sum * 31) + byte) & 0xffff_ffff }
    sum
  end
end
