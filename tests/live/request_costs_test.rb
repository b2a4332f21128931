# SPDX-License-Identifier: GPL-2.0-only
# frozen_string_literal: true

# What requests take and what they make others wait, compared with what a program measures itself
# (tests/programs/requests/costs.rb): light requests, and a heavy job that keeps the GVL from them.

require_relative 'support'

class RequestCostsTest < LiveTest
  HERTZ = 499
  SECONDS = 7
  LIGHT = 'OrdersController#index'
  HEAVY = 'ThumbnailJob'
  CPU_PART = 0.02
  WALL_PART = 0.03
  GVL_PART = 0.05
  # Standard deviations, and the period of a clock, which is up to a tenth longer than was asked for.
  DEVIATIONS = 4
  PERIOD = 1.1e9 / HERTZ # ns

  # One recording, for it takes as long as the program.
  def test_costs_are_what_the_program_measured
    record_costs
    [LIGHT, HEAVY].each { |name| assert_costs(name, @costs[name]['walls'].sort) }
    assert_blame
    assert_picture_of_slow_ones
    assert_slow(@costs[LIGHT]['walls'].sort)
  end

  private

  def record_costs
    target = start('requests/costs.rb', SECONDS)
    rbpf = attach([target], '-F', HERTZ, '--mode', 'states')
    target.go
    said = target.wait_for('ready')
    assert_equal 0, rbpf.stop.code
    assert_equal 0, recording.totals['lost']
    @costs = said['costs']
    @job_share = said['job_share']
    report = recording.report('--requests')
    @rows = report['requests'].to_h { |row| [row['request'], row] }
    @pairs = report['gvl_waits'].to_h { |pair| [pair.values_at('request', 'held_by'), pair['waited_ns']] }
    @unknown = @rows.fetch('[unknown request]', { 'self_ns' => 0, 'seen' => 0 })
    @said = "program: #{@costs.transform_values { |c| c.reject { |k| k == 'walls' } }}, rbpf: #{@rows}"
  end

  def assert_costs(name, walls)
    # In doubt a part of one is unknown; and of what follows a wait that is missing it is not known that it goes on.
    doubtful = @unknown['seen'] + recording.totals['counters']['waits_missed']
    assert_in_delta walls.size, @rows[name]['seen'], doubtful, @said
    assert_cpu(name, walls.size)
    assert_near walls.sum, @rows[name]['self_ns'], (walls.sum * WALL_PART) + chance(walls.size), "wall time of #{name}"
    assert_percentiles(name, walls)
  end

  # All that the light requests wait for the GVL the other thread causes: its job, and what is of no request.
  def assert_blame
    waited = @costs[LIGHT]['gvl']
    waited -= @rows[LIGHT]['states']['wait-cpu'] if @costs[LIGHT]['queued'].zero?
    assert_operator waited, :>, SECONDS * 0.2e9, @said
    allowed = waited * GVL_PART
    assert_near waited, @rows[LIGHT]['states']['gvl'], allowed, 'suffered'
    assert_near waited * @job_share, @rows[HEAVY]['gvl_caused_ns'], allowed, 'caused'
    assert_near waited * @job_share, @pairs.fetch([LIGHT, HEAVY]), allowed, 'whom it made wait'
    most = @rows.values.max_by { |row| row['gvl_caused_ns'] }
    assert_equal HEAVY, most['request'], @said
    assert_operator @rows['[no request]']['gvl_caused_ns'], :>, waited * (1 - @job_share) / 2, @said
  end

  def assert_near(expected, found, allowed, what)
    assert_in_delta expected, found, allowed + stolen_ns + @unknown['self_ns'], "#{what}; #{@said}"
  end

  # A clock ticks by CPU time: the number of its ticks in a request is wrong by half a tick (standard deviation).
  def chance(requests)
    DEVIATIONS * Math.sqrt(requests) / 2 * PERIOD
  end

  def assert_cpu(name, requests)
    cpu = @costs[name]['cpu']
    found = @rows[name]['states'].values_at('user', 'system', 'minor-fault').sum
    assert_near cpu, found, (cpu * CPU_PART) + chance(requests), "CPU time of #{name}"
  end

  # That so many of 100 took so long at most is known but for the ends of each, a tick at most: those of the requests
  # around it in order. What took that long is between the two bounds.
  def assert_percentiles(name, walls)
    [50, 95, 99].each do |percent|
      wall = walls[(walls.size * percent / 100.0).ceil - 1]
      least, most = @rows[name].values_at("p#{percent}_ns", "p#{percent}_most_ns")
      assert_near wall, least, 2 * PERIOD, "p#{percent} of #{name}"
      assert_near wall, wall.clamp(least, most), 0, "bounds of p#{percent} of #{name}"
    end
  end

  # Half of the heavy jobs are slow; what they are compared with is all other requests.
  def assert_picture_of_slow_ones
    # As many take less time as more. A light one that waits for the GVL may take longer than a heavy job does.
    walls = @costs[HEAVY]['walls'].sort
    limit = ['--request-slower-than', "#{walls[walls.size / 2] / 1_000}us"]
    samples = ->(*options) { recording.report('--requests', '--event', 'wall', '--request', '^[^[]', *options)['requests'].sum { |r| r['samples'] } }
    said = Rbpf.read('flame', '-i', recording.file, '--event', 'wall', '--request', '^[^[]', *limit)
    others = said[/compared with the other requests \(([\d,]+) samples\)/, 1]
    assert_equal samples.call - samples.call(*limit), others&.delete(',').to_i
    assert_includes said, 'ThumbnailJob#perform'
  end

  # Half of the requests took longer than the median, but for those that took about as long.
  def assert_slow(walls)
    limit = walls[walls.size / 2]
    rows = recording.report('--requests', '--request', LIGHT, '--request-slower-than', "#{limit / 1_000}us")['requests']
    near = walls.count { |wall| (wall - limit).abs <= (2 * PERIOD) + stolen_ns }
    assert_in_delta walls.count { |wall| wall > limit }, rows.sum { |row| row['seen'] }, near, @said
    assert_equal([LIGHT], rows.map { |row| row['request'] })
  end
end
