# frozen_string_literal: true

# A Puma under load: the profile points at the method that is slow.

require 'socket'

require_relative '../programs/puma_app/load'
require_relative 'support'

# Puma is a gem with a C extension, installed for the Ruby in PATH.
if RubyInstall.under_test.default?
  class PumaTest < LiveTest
    APP = File.join(Live::PROGRAMS, 'puma_app/config.ru')
    SECONDS = 10

    def setup
      super
      @puma = ENV['PATH'].split(':').map { |dir| File.join(dir, 'puma') }.find { |file| File.executable?(file) }
      missing 'puma (Debian packages puma, ruby-rack, ruby-sinatra)' unless @puma
      @port = TCPServer.open('127.0.0.1', 0) { |server| server.addr[1] }
      @target = start_command([RbConfig.ruby, @puma, '-q', '-t', '2:2', '-b', "tcp://127.0.0.1:#{@port}", APP],
                              err: File::NULL)
      Live.wait_until('puma to listen') { @target.ended? ? flunk(@target.output) : listening? }
    end

    def test_the_slow_method_stands_out
      load = Thread.new { Load.new(@port, 50_000, SECONDS + 1).run }
      result = Rbpf.run('record', '-p', @target.pid, '-d', "#{SECONDS}s", '-F', 199, '-o', path('rbpf.data'))
      assert_equal 0, result.code, result.err
      assert_match(/attached to puma/, result.err)
      assert_operator load.value.answered, :>, 100
      recording = Recording.new(path('rbpf.data'))
      assert_sane_recording(recording)

      top = recording.rows.select { |row| %w[ruby cfunc].include?(row['kind']) }.max_by { |row| row['self_ns'] }
      assert_equal 'SlowReport#render_rows', top['label']
      assert_operator top['self_ns'], :>, 0.5 * recording.summary['cpu_sampled_ns']
      assert_has_its_callers(recording)
      assert_thread_names(recording)
      assert_match(/SlowReport#render_rows/, Rbpf.read('report', '-i', recording.file, '-n', 3))
      assert_includes Rbpf.read('flame', '-i', recording.file), 'SlowReport#render_rows'
    end

    private

    def listening?
      TCPSocket.new('127.0.0.1', @port).close || true
    rescue Errno::ECONNREFUSED
      false
    end

    # From the method all the way through Sinatra, Rack and Puma.
    def assert_has_its_callers(recording)
      sample = recording.samples.find { |s| s.frames.any? { |frame| frame.label == 'SlowReport#render_rows' } }
      labels = sample.frames.select(&:ruby?).map(&:label)
      assert_equal %w[SlowReport#render_rows SlowReport#render], labels[labels.index('SlowReport#render_rows'), 2]
      %w[Sinatra::Base#route! Sinatra::Base#call Puma::Request#handle_request].each do |label|
        assert_includes labels, label
      end
      assert_match(/\Ablock in Puma::ThreadPool#spawn_thread|\Ablock \(2 levels\)/, labels.last)
    end

    def assert_thread_names(recording)
      assert(recording.samples.map(&:thread).uniq.any? { |name| name.start_with?('puma srv tp') })
    end
  end
end
