# SPDX-License-Identifier: GPL-2.0-only
# frozen_string_literal: true

# What the shop has sold: the same in each run.
class Seed
  CUSTOMERS = 60
  PRODUCTS = 80
  ORDERS = 600 # load.rb asks for each of them
  ITEMS = 4 # of an order
  FIRST_DAY = Date.new(2026, 1, 1)

  def plant
    return if connection.table_exists?(:orders)

    create_tables
    insert
    connection.pool.disconnect!
  end

  private

  def connection
    ActiveRecord::Base.connection
  end

  def create_tables
    ActiveRecord::Schema.verbose = false
    ActiveRecord::Schema.define do
      create_table(:customers) { |t| t.string :name, :city }
      create_table(:products) { |t| t.string(:name) && t.integer(:cents) }
      create_table(:orders) { |t| t.references(:customer) && t.date(:day) }
      create_table(:items) { |t| t.references(:order) && t.references(:product) && t.integer(:count) }
    end
  end

  def insert
    Customer.insert_all(rows(CUSTOMERS) { |i| { name: "Customer #{i}", city: "City #{i % 7}" } })
    Product.insert_all(rows(PRODUCTS) { |i| { name: "Product #{i}", cents: (i * 7919 % 9000) + 99 } })
    Order.insert_all(rows(ORDERS) { |i| { customer_id: (i * 31 % CUSTOMERS) + 1, day: FIRST_DAY + (i % 90) } })
    Item.insert_all(rows(ORDERS * ITEMS) do |i|
      { order_id: (i / ITEMS) + 1, product_id: (i * 17 % PRODUCTS) + 1, count: (i % 5) + 1 }
    end)
  end

  def rows(count, &block)
    Array.new(count, &block)
  end
end
