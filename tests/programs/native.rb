# SPDX-License-Identifier: GPL-2.0-only
# frozen_string_literal: true

# Work that is done by C code of many kinds.
#
#   ruby native.rb KIND SECONDS
#
# Prints {"waiting": true, …} and begins when a line comes on standard input. Having burned so many
# seconds of CPU time it prints {"ready": true, "span": [FROM, TO], "rounds": N} (CLOCK_MONOTONIC,
# ns) and ends when another line comes. For what this Ruby cannot do it prints {"waiting": true,
# "missing": WHY} and ends.
#
#   ruby native.rb KIND forever     goes on until a line comes, or the pipe is closed

require_relative 'oracle/checkpoint'
require 'tmpdir'

# Each kind is a method, that does something that takes some milliseconds. Those that need more than
# Ruby itself load it first.
class Work
  KINDS = %i[deflate inflate digest json oj nokogiri regexp strings sort calls bignum files pipes
             threads gc fibers enumerators exceptions require evaluate].freeze

  NEEDS = {
    deflate: 'zlib', inflate: 'zlib', digest: 'openssl', json: 'json', oj: 'oj',
    nokogiri: 'nokogiri', fibers: 'fiber', enumerators: 'fiber'
  }.freeze

  TEXT = Array.new(4_000) { |i| "#{i * 7919 % 1009} lorem ipsum #{i} dolor-sit_amet\n" }.join.freeze
  TREE = Array.new(200) do |i|
    { 'id' => i, 'name' => "name #{i}", 'parts' => [i, i * 1.5, nil, true, { 'x' => %w[a b c] }] }
  end.freeze
  XML = "<list>#{Array.new(300) { |i| "<item id='#{i}'><b>#{i}</b></item>" }.join}</list>"

  def initialize(kind)
    @kind = kind
    __send__("prepare_#{kind}") if respond_to?("prepare_#{kind}", true)
  end

  def round
    __send__("do_#{@kind}")
  end

  private

  def do_deflate
    Zlib.deflate(TEXT, 9)
  end

  def prepare_inflate
    @deflated = Zlib.deflate(TEXT * 10)
  end

  def do_inflate
    Zlib.inflate(@deflated)
  end

  def prepare_digest
    @data = TEXT * 20
  end

  def do_digest
    digest = OpenSSL::Digest.new('SHA256')
    digest.update(@data)
    digest.hexdigest
  end

  def do_json
    JSON.parse(JSON.generate(TREE))
  end

  def do_oj
    Oj.load(Oj.dump(TREE))
  end

  def do_nokogiri
    Nokogiri::XML(XML).xpath('//item[b > 100]').map { |node| node['id'] }
  end

  def do_regexp
    TEXT.scan(/\b(\d+) (\w+)\s+(?:[a-z]+ )+/)
    TEXT.gsub(/(\w+)-(\w+?)_/) { |m| m.upcase }
  end

  def do_strings
    copy = TEXT.upcase.tr('A-M', 'n-z').reverse
    copy.encode('UTF-16LE').encode('UTF-8').unpack('C*').pack('C*')
    copy.split("\n").map { |line| format('%-60s|%05d', line, line.size) }.join(',').hash
    copy.each_char.first(2_000).inspect
  end

  # C that calls Ruby that calls C …
  def do_sort(deep = 5)
    return [3, 1, 2].sort_by { |x| burn(x) } if deep.zero?

    (1..3).sort_by { |x| do_sort(deep - 1).first + x }
  end

  def do_calls(deep = 6)
    return burn(1) if deep.zero?

    [1, 2].each { { 1 => 2 }.each { |_, _| 1.times { [0].map { do_calls(deep - 1) } } } }
  end

  def burn(number)
    i = 0
    i += 1 while i < 200
    number
  end

  def do_bignum
    ((3**9_000) * (7**4_000) / (5**3_000)).to_s.size
  end

  def prepare_files
    @dir = Dir.mktmpdir('native')
    at_exit { FileUtils.rm_rf(@dir) }
  end

  def do_files
    path = File.join(@dir, 'file')
    5.times do
      File.open(path, 'wb') { |file| 8.times { file.write(TEXT) } }
      File.read(path).size
    end
    Dir.children(@dir).each { |name| File.stat(File.join(@dir, name)) }
  end

  def do_pipes
    reader, writer = IO.pipe
    100.times do
      writer.write('x' * 10_000)
      writer.flush
      reader.readpartial(20_000)
    end
    writer.close
    reader.close
  end

  def do_threads
    queue = Queue.new
    mutex = Mutex.new
    threads = Array.new(4) do |i|
      Thread.new do
        20.times do |k|
          # Long enough that it works more than it waits for the others, however slowly the kernel wakes them.
          mutex.synchronize { { 1 => 2 }.each { |_, _| 50.times { burn(i) } } }
          queue << k if (k % 5).zero?
        end
      end
    end
    16.times { queue.pop }
    threads.each(&:join)
  end

  def do_gc
    Array.new(300) { Array.new(300) { Object.new } }
    GC.start if (@round = @round.to_i + 1) % 10 == 0
  end

  def do_fibers
    @fibers ||= Array.new(20) do
      Fiber.new { loop { { 1 => 2 }.each { |_, _| burn(1) && Fiber.yield } } }
    end
    5.times { @fibers.each(&:resume) }
    Fiber.new { Fiber.new { burn(1) }.resume }.resume
  end

  def do_enumerators
    @enumerators ||= Array.new(20) { (1..Float::INFINITY).each_with_index }
    20.times { @enumerators.each(&:next) }
  end

  def do_exceptions
    50.times do
      begin
        raising(10)
      rescue ArgumentError => e
        e.message.size
      ensure
        burn(1)
      end
      catch(:done) { { 1 => 2 }.each { |_, _| throw :done } }
    end
  end

  def raising(deep)
    raise ArgumentError, 'deep enough' if deep.zero?

    { 1 => 2 }.each { |_, _| raising(deep - 1) }
  rescue ArgumentError
    burn(1)
    raise
  end

  def prepare_require
    @dir = Dir.mktmpdir('native')
    at_exit { FileUtils.rm_rf(@dir) }
    @features = Array.new(10) do |i|
      path = File.join(@dir, "feature_#{i}.rb")
      body = Array.new(50) { |k| "def self.m#{k}(a, b = #{k}) = nil" }
      body.map! { |line| line.sub(' = nil', '; [a, b].map { |x| x + 1 }; end') }
      File.write(path, "module Feature#{i}\n#{body.join("\n")}\nend\n")
      path
    end
  end

  def do_require
    verbose = $VERBOSE
    $VERBOSE = nil
    @features.each do |path|
      require path
      $LOADED_FEATURES.delete(path)
      $LOADED_FEATURES.delete(File.realpath(path))
    end
  ensure
    $VERBOSE = verbose
  end

  def do_evaluate
    10.times do |i|
      code = "[#{i}].map { |x| x.instance_eval { |y| y.then { |z| z + #{i} } } }"
      eval(code, binding, 'evaluated', 1)
    end
  end
end

def cpu
  Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID)
end

def now
  Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond)
end

kind, seconds = ARGV
abort "native.rb: no work is called #{kind}" unless Work::KINDS.include?(kind.to_sym)
begin
  require Work::NEEDS[kind.to_sym] if Work::NEEDS[kind.to_sym]
rescue LoadError => e
  Oracle.say(waiting: true, missing: e.message)
  exit
end

work = Work.new(kind.to_sym)
work.round
Oracle.say(waiting: true, pid: Process.pid)
Oracle.wait_for_test
from = now
rounds = 0
if seconds == 'forever'
  limit = cpu + Oracle::LIMIT
  work.round until IO.select([$stdin], nil, nil, 0) || cpu > limit
else
  stop = cpu + Float(seconds)
  while cpu < stop
    work.round
    rounds += 1
  end
  Oracle.say(ready: true, span: [from, now], rounds: rounds)
  Oracle.wait_for_test
end
exit
