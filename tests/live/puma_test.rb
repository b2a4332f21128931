# SPDX-License-Identifier: GPL-2.0-only
# frozen_string_literal: true

# A Puma under load: the profile points at the method that is slow.

require 'open3'

require_relative '../programs/puma_app/load'
require_relative 'puma'
require_relative 'support'

# Puma is a gem with a C extension, installed for the Ruby in PATH.
if RubyInstall.under_test.default?
  class PumaTest < LiveTest
    include Puma

    APP = File.join(Live::PROGRAMS, 'puma_app/config.ru')
    VALIDATE = File.expand_path('../validate/flame.sh', __dir__)
    SECONDS = 10

    def setup
      super
      start_puma(APP, 'puma, ruby-rack, ruby-sinatra')
    end

    def test_the_slow_method_stands_out
      load = Thread.new { Load.new(@port, 50_000, SECONDS + 1).run }
      load.report_on_exception = false
      result = Rbpf.run('record', '-p', @target.pid, '-d', "#{SECONDS}s", '-F', 199,
                        '-o', path('rbpf.data'))
      assert_equal 0, result.code, result.err
      assert_match(/attached to .*\b#{@target.pid}\b/, result.err)
      assert_operator load.value.answered, :>, 100
      assert_sane_recording(recording)

      methods = recording.rows.select { |row| %w[ruby cfunc].include?(row['kind']) }
      top = methods.max_by { |row| row['self_ns'] }
      assert_equal 'SlowReport#render_rows', top['label']
      assert_operator top['self_ns'], :>, 0.5 * recording.summary['cpu_sampled_ns']
      assert_has_its_callers
      assert_thread_names
      assert_match(/SlowReport#render_rows/, Rbpf.read('report', '-i', recording.file, '-n', 3))
      assert_includes Rbpf.read('flame', '-i', recording.file), 'SlowReport#render_rows'
      assert_works_in_a_browser
    end

    private

    # Clicked, searched and reloaded in Chromium, as tests/validate/flame.sh says.
    def assert_works_in_a_browser
      Rbpf.read('flame', '-i', recording.file, '-o', path('puma.svg'))
      output, status = Open3.capture2e(VALIDATE, path('puma.svg'))
      missing output if status.exitstatus == 77
      assert_predicate status, :success?, output
      assert_match(/^\d+ passed, 0 failed$/, output)
    end

    # From the method all the way through Sinatra, Rack and Puma.
    def assert_has_its_callers
      stacks = recording.samples.map { |sample| sample.frames.select(&:ruby?).map(&:label) }
      labels = stacks.find { |stack| stack.include?('SlowReport#render_rows') }
      assert_equal 'SlowReport#render', labels[labels.index('SlowReport#render_rows') + 1]
      %w[Sinatra::Base#route! Sinatra::Base#call Puma::Request#handle_request].each do |label|
        assert_includes labels, label
      end
      assert_match(/\Ablock in Puma::ThreadPool#spawn_thread|\Ablock \(2 levels\)/, labels.last)
    end

    def assert_thread_names
      assert(recording.samples.map(&:thread).uniq.any? { |name| name.start_with?('puma srv tp') })
    end
  end
end
