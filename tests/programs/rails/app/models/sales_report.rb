# SPDX-License-Identifier: GPL-2.0-only
# frozen_string_literal: true

# What was sold on each day, smoothed over some weeks: what makes the page slow.
class SalesReport
  DAYS = 21

  def initialize(rows)
    @days = Hash.new(0)
    rows.each { |day, cents, count| @days[day] += cents * count }
  end

  def trend
    days = @days.keys.sort
    days.each_index.map { |i| [days[i], smoothed(days, i)] }
  end

  private

  # A weighted mean of the days around, with the weights computed again each time.
  def smoothed(days, middle)
    sum = weights = 0.0
    (-DAYS..DAYS).each do |distance|
      day = days[middle + distance] if middle + distance >= 0
      next unless day

      weight = weight_of(distance)
      sum += weight * @days[day]
      weights += weight
    end
    sum / weights
  end

  def weight_of(distance)
    x = distance / DAYS.to_f
    term = total = 1.0
    1.upto(12) { |i| total += term *= -3 * x * x / i }
    total
  end
end
