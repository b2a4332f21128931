# SPDX-License-Identifier: GPL-2.0-only
# frozen_string_literal: true

# Top on a screen of 40 lines, with somebody who types a key now and then, and serve with a client that asks for what its
# page asks for: what both take.

require 'io/console'
require 'json'
require 'net/http'
require 'pty'

require_relative 'bpf_statistics'

# A command of rbpf that watches processes.
class Watcher
  RBPF = File.expand_path('../rbpf', __dir__)
  TICKS = 100.0 # of /proc/PID/stat, a second

  # CPU seconds so far, of its processes and those that they have waited for.
  def cpu
    tree(@pid).sum { |pid| ticks(pid) } / TICKS
  end

  # KiB
  def memory
    rollup = pids.map { |pid| File.read("/proc/#{pid}/smaps_rollup") }
    %w[Rss Pss].to_h { |name| [name, rollup.sum { |text| text[/^#{name}:\s+(\d+)/, 1].to_i }] }
  end

  def pids
    [@pid, *File.read("/proc/#{@pid}/task/#{@pid}/children").split.map(&:to_i).select { |pid| stays?(pid) }]
  end

  # Its BPF programs.
  def programs
    BpfStatistics.of(@pid)
  end

  def stop
    Process.kill(:TERM, @pid)
    Process.wait(@pid)
    $?.exitstatus
  end

  private

  def tree(pid)
    [pid, *File.read("/proc/#{pid}/task/#{pid}/children").split.flat_map { |child| tree(child) }]
  rescue Errno::ENOENT, Errno::ESRCH
    [] # it has ended
  end

  def ticks(pid)
    File.read("/proc/#{pid}/stat")[/\) (.*)/, 1].split[11, 4].sum(&:to_i)
  rescue Errno::ENOENT, Errno::ESRCH
    0
  end

  # Processes for one snapshot have the name of their parent.
  def stays?(pid)
    File.read("/proc/#{pid}/comm") == "rbpf-serve\n"
  rescue SystemCallError
    false
  end
end

class Top < Watcher
  KEYS = %w[p t r m c 2 3 4 1].freeze # each view and each window in turn

  # @watch: the options that say which processes.
  def initialize(watch)
    super()
    @screen, @keys, @pid = PTY.spawn({ 'TERM' => 'xterm-256color' }, RBPF, 'top', *watch)
    @screen.winsize = [40, 120]
    @reader = Thread.new { @screen.readpartial(65_536) while true rescue nil }
    @typist = Thread.new { KEYS.cycle { |key| sleep(7) && @keys.write(key) } }
  end

  def stop
    @typist.kill
    super
  end
end

class Serve < Watcher
  VIEWS = %w[table flame.svg overview timeline.html].freeze
  RENEWED = 5 # s: how often the page shows its last minute anew
  STAY = 60 # s at each view

  attr_reader :failed, :answers

  def initialize(watch)
    super()
    out, write = IO.pipe
    @pid = Process.spawn(RBPF, 'serve', *watch, out: write)
    write.close
    @url = URI(out.gets.strip)
    @failed = @answers = 0
    @client = Thread.new { live }
  end

  def stop
    @client.kill
    super
  end

  private

  def live
    sleep 3
    (1..).each do |second|
      sleep 1
      look(second)
      @answers += 1
    rescue StandardError => e
      @failed += 1
      warn e.full_message
    end
  end

  def look(second)
    to = JSON.parse(get('state.json'))['to']
    return unless (second % RENEWED).zero? || to <= 10

    range = "from=#{[to - 60, 0].max}s&to=#{to}s"
    case view = VIEWS[second / STAY % VIEWS.size]
    when 'table' then get("report.json?#{range}&sort=self&limit=200")
    when 'overview' then %w[thread process].each { |by| get("report.json?#{range}&by=#{by}&limit=20") }
    else get("#{view}?#{range}")
    end
  end

  def get(what)
    answer = Net::HTTP.get_response(@url + what)
    raise "#{what}: #{answer.code} #{answer.body}" unless answer.code == '200'

    answer.body
  end
end
