# SPDX-License-Identifier: GPL-2.0-only
# frozen_string_literal: true

# What `make demo` records: a small shop that makes reports all day, one of them slowly.

Item = Struct.new(:name, :price, :tags)

# Reads what it is given one line at a time.
class Catalogue
  def initialize(size)
    @lines = Array.new(size) { |i| "item #{i};#{(i * 37) % 1000};tag#{i % 7},tag#{i % 11}" }
  end

  def items
    @lines.map { |line| parse(line) }
  end

  private

  def parse(line)
    name, price, tags = line.split(';')
    Item.new(name, Integer(price), tags.split(','))
  end
end

# Two ways to the same report.
class Report
  def initialize(items)
    @items = items
  end

  def by_tag
    @items.flat_map(&:tags).tally.sort_by { |tag, count| [-count, tag] }
  end

  # Looks through all items once for each tag.
  def by_tag_slowly
    tags = @items.flat_map(&:tags).uniq
    tags.map { |tag| [tag, @items.count { |item| item.tags.include?(tag) }] }
        .sort_by { |tag, count| [-count, tag] }
  end
end

finish = Process.clock_gettime(Process::CLOCK_MONOTONIC) + Float(ARGV.fetch(0, '5'))
while Process.clock_gettime(Process::CLOCK_MONOTONIC) < finish
  report = Report.new(Catalogue.new(400).items)
  report.by_tag
  report.by_tag_slowly
end
