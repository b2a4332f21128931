# SPDX-License-Identifier: GPL-2.0-only
# frozen_string_literal: true

# Recordings that nobody has recorded.

require 'zlib'

require_relative 'support'

# A recording, record by record (man/rbpf-file.5).
class ForgedRecording
  def initialize(meta: '{"frequency":99}')
    @bytes = +''.b
    head = "\x89RBPF\r\n\x1a".b + [1, 3, 64, 1, 1, 0].pack('vvVQ<Q<V') + ("\0" * 24).b
    @bytes << head << [Zlib.crc32(head)].pack('V')
    chunk(1, meta)
  end

  def chunk(type, payload, flags: 0, raw: payload.bytesize)
    head = ['RBC1', type, flags, 0, payload.bytesize, raw, Zlib.crc32(payload)].pack('a4CCvVVV')
    @bytes << head << [Zlib.crc32(head)].pack('V') << payload.b << ("\0" * (-payload.bytesize % 8)).b
    self
  end

  def zipped(type, payload)
    chunk(type, Zlib::Deflate.deflate(payload, 9), flags: 1, raw: payload.bytesize)
  end

  def self.varint(value)
    out = +''.b
    while value > 0x7f
      out << ((value & 0x7f) | 0x80)
      value >>= 7
    end
    out << value
  end

  def self.record(kind, *fields)
    body = fields.map { |f| f.is_a?(String) ? f.b : varint(f) }.join
    varint(kind) + varint(body.bytesize) + body
  end

  # A string, process 0 and thread 0, frame 0 and stack 1.
  def self.beginning
    record(1, 'a name') + record(2, 42, 1, 1, 1, 1, 0, 1, 1, 7, 0) + record(3, 0, 42, 1) +
      record(5, 0, 1, 1, 5, 0, 0, 1, 0) + record(6, 0, 0)
  end

  def self.sample
    record(7, 0, 2, 1, 1000, 0, 0)
  end

  def write(path)
    File.binwrite(path, @bytes)
    path
  end

  attr_reader :bytes
end

class HostileRecordingsTest < HostileTest
  F = ForgedRecording
  VIEWS = [%w[report], %w[report --tree], %w[report --info], %w[report --json], %w[flame], %w[export -f folded],
           %w[export -f json], %w[export -f speedscope], %w[export -f pprof], %w[export -f callgrind],
           %w[export -f perf-script], %w[export -f firefox]].freeze

  # What a command may take for a file of some KB: memory, and CPU time of its own.
  MEMORY = 256 << 20
  CPU = 4.0

  # What each view has to make of it: its exit status.
  def read_all(file, *statuses, views: VIEWS)
    views.each { |view| run_limited(*view, '-i', file, statuses: statuses) }
  end

  # Too much memory or time ends it.
  def run_limited(*arguments, statuses:)
    result = run_rbpf(*arguments, statuses: statuses, seconds: 100, rlimit_cpu: [CPU.ceil, CPU.ceil + 1],
                                  out: path('out'))
    assert_operator @last_run.hwm, :<=, MEMORY, "VmHWM of #{arguments.join(' ')}"
    result
  end

  def test_repeated_samples
    run = F.beginning + ((F.sample + F.record(8, (1 << 20) - 1)) * 1)
    forged = F.new
    400.times { forged.zipped(2, run_of_chunk(run)) }
    read_all(forged.write(path('runs')), 5)
  end

  def test_one_run_of_too_many
    [1 << 30, (1 << 64) - 1].each do |n|
      read_all(F.new.chunk(2, F.beginning + F.sample + F.record(8, n)).write(path('run')), 5, views: VIEWS.first(2))
    end
  end

  def test_compressed_chunks_that_are_bombs
    forged = F.new.chunk(2, F.beginning + F.sample)
    bomb = "\0" * (16 << 20)
    60.times { forged.zipped(4, bomb).zipped(2, F.record(1, 'x' * (1 << 20)) * 15) }
    read_all(forged.write(path('bomb')), 5, views: VIEWS.first(3))
  end

  def test_definitions_that_nothing_uses
    strings = F.record(1, 'string') * 200_000
    frames = F.record(5, 0, 1, 1, 5, 0, 0, 1, 0) * 100_000
    forged = F.new.zipped(2, F.beginning + F.sample)
    60.times { forged.zipped(2, strings + frames) }
    read_all(forged.write(path('definitions')), 5, views: VIEWS.first(3))
  end

  def test_stacks_that_are_deep
    stacks = (1..65_000).map { |i| F.record(6, i, 0) }.join
    read_all(F.new.zipped(2, F.beginning + stacks + F.record(7, 0, 2, 65_000, 1000, 0, 0)).write(path('deep')), 0)
  end

  def test_many_deep_stacks
    stacks = (1..60_000).map { |i| F.record(6, i, 0) }.join
    samples = (59_960..60_000).map { |i| F.record(7, 0, 2, i, 1000, 0, 0) }.join
    read_all(F.new.zipped(2, F.beginning + stacks + samples).write(path('many')), 0)
  end

  def test_weights_and_times_that_wrap
    samples = [0, (1 << 64) - 1, 1 << 63].flat_map do |t|
      [0, (1 << 64) - 1, 1 << 63].map { |w| F.record(7, 0, t, 1, w, 0, 0) }
    end
    read_all(F.new.chunk(2, F.beginning + samples.join).write(path('wrap')), 0)
  end

  def test_records_that_refer_to_themselves
    forged = F.beginning + F.record(2, 43, 1, 1, 1, 1, 2) + F.record(6, 2, 0) + F.record(12, 0, 42, 1, 1, 1, 1, 1) + F.sample
    read_all(F.new.chunk(2, forged).write(path('itself')), 6)
  end

  def test_meta_that_is_nested_deep
    { '[' * 500_000 => 5, '{"a":' * 100_000 => 5, "{\"command\":\"#{'\\u001b[31m' * 1000}\"}" => 0,
      '{"frequency":1e400}' => 5 }.each do |meta, status|
      read_all(F.new(meta: meta).chunk(2, F.beginning + F.sample).write(path('meta')), status, views: VIEWS.first(3))
    end
  end

  def test_text_that_is_no_text
    names = ["\e[2J\e[31m", "\u202Egnp", "\u009b31m", "\xff\xfe", "a\nb", '</text><script>alert(1)</script>', "\u2028"]
    data = names.each_with_index.map { |name, i| F.record(1, name) + F.record(5, 0, 2 + i, 2 + i, 5, 0, 0, 1, 0) + F.record(6, 0, 1 + i) }
    samples = names.each_index.map { |i| F.record(7, 0, 2, 2 + i, 1000, 0, 0) }
    meta = JSON.generate('frequency' => 99, 'command' => names.reject { |n| !n.valid_encoding? }.join, 'hostname' => "\e[2J")
    file = F.new(meta: meta).chunk(2, F.beginning + data.join + samples.join).write(path('text'))
    assert_views_clean(file)
    refute_includes Rbpf.read('flame', '-i', file), '<script>alert'
  end

  def test_recording_that_is_cut_anywhere
    whole = F.new.zipped(2, F.beginning + (F.sample * 50)).chunk(3, '{"samples":50}').bytes
    codes = (0...whole.bytesize).step(17).map do |at|
      File.binwrite(path('cut'), whole[0, at])
      result = run_rbpf('report', '-i', path('cut'), statuses: [0, 5, 6])
      # What is there is used, and it is said that there was more.
      assert_match(result.code.zero? ? /^rbpf: warning: .*not closed properly/ : /^rbpf: error: /, result.err)
      result.code
    end
    assert_equal [0, 5, 6], codes.uniq.sort
  end

  def test_bytes_of_a_recording_that_are_others
    random = Random.new(3)
    40.times do
      payload = F.beginning + (F.sample * 50)
      10.times { payload.setbyte(random.rand(payload.bytesize), random.rand(256)) }
      read_all(F.new.chunk(2, payload).write(path('other')), 0, 5, 6, views: [%w[report], %w[export -f json]].sample(1, random: random))
    end
  end

  # A file that is no file.
  def test_recording_that_is_a_fifo_or_a_directory
    Dir.mkdir(path('directory'))
    run_rbpf('report', '-i', path('directory'), statuses: [5])
    run_rbpf('report', '-i', '/dev/null', statuses: [5])
    File.open(path('sparse'), 'w') { |f| f.truncate(1 << 40) }
    run_rbpf('report', '-i', path('sparse'), statuses: [5])
  end

  private

  # Chunks after the first define nothing.
  def run_of_chunk(first)
    @defined ? F.sample + F.record(8, (1 << 20) - 1) : first.tap { @defined = true }
  end
end
