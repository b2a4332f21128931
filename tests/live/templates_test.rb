# SPDX-License-Identifier: GPL-2.0-only
# frozen_string_literal: true

# Templates and anonymous classes have the same labels in all processes.

require_relative 'support'

class TemplatesTest < LiveTest
  SECONDS = 0.1
  VIEWS = ['app/views/orders/_order-2.html.erb', 'app/views/café/Menü.html.haml',
           'devise-4.9.3/app/views/devise/sessions/new.html.erb'].freeze
  TILT_VIEWS = ['views/index.erb', 'views/layout.erb'].freeze
  ANONYMOUS = %w[in_anonymous_class in_class_of_an_anonymous_one in_anonymous_module
                 in_single_object].freeze

  def setup
    super
    @target = start('templates.rb', SECONDS)
    @recording = record(@target, '-F', 999)
  end

  # The program itself is in the first template at its end, and may be sampled there.
  def test_a_template_is_one_row
    (VIEWS + TILT_VIEWS).each do |label|
      assert_row label, 4 * SECONDS
      assert_row "block in #{label}", 2 * SECONDS
      assert_equal 2, (pids_of(label) - [@target.pid]).size, label
    end
    ANONYMOUS.each { |label| assert_row label, 2 * SECONDS }
  end

  def test_only_raw_labels_have_ids
    labels = frames.select { |frame| frame['kind'] == 'ruby' }.map { |frame| frame['label'] }
    assert_operator labels.size, :>, 20
    assert_empty(labels.grep(/\d{4}|0x\h|__tilt|_html_|#</))
    raw = frames(VIEWS[0]).map { |frame| frame['raw_label'] }.uniq
    assert_equal 2, raw.size
    assert(raw.all?(/\A_app_views_orders__order___html_erb__+\d+_\d+\z/), raw.inspect)
    tilt = frames(TILT_VIEWS[0])
    assert(tilt.all? { |f| f['raw_label'].match?(/\ACompiledTemplates#__tilt_\d+\z/) })
    assert_equal [0], tilt.map { |frame| frame['func_line'] }.uniq
  end

  def test_dump
    frames = Rbpf.dump(@target.pid)['threads'].flat_map { |thread| thread['frames'] }
    frame = frames.find { |f| f['raw_label']&.start_with?('_app_views_') }
    assert_equal [VIEWS[0], 1], frame.values_at('label', 'line')
    assert_equal(1, frames.count { |f| f['raw_label'] })
  end

  private

  def frames(label = nil)
    all = Rbpf.json('export', '-f', 'json', '-i', @recording.file)['frames']
    label ? all.select { |frame| frame['label'] == label } : all
  end

  def assert_row(label, seconds)
    rows = @recording.rows.select { |row| row['label'] == label }
    assert_equal 1, rows.size, label
    assert_cpu_ns seconds * 1e9, rows[0]['total_ns'], 0.15, label
  end

  def pids_of(label)
    @recording.samples_with(label).map(&:pid).uniq
  end
end
