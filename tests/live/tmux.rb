# SPDX-License-Identifier: GPL-2.0-only
# frozen_string_literal: true

require 'open3'
require 'shellwords'

# A terminal with a shell in it, in a tmux server of its own.
class Tmux
  def self.available?
    system('tmux', '-V', out: File::NULL, err: File::NULL)
  end

  def initialize(dir, width: 100, height: 30, env: {})
    @socket = File.join(dir, "tmux-#{object_id}")
    @dir = dir
    variables = { 'PS1' => '$ ', 'LC_ALL' => 'C.UTF-8', 'NO_COLOR' => '' }.merge(env)
    words = variables.map { |name, value| "#{name}=#{value.shellescape}" }
    tmux('-f', '/dev/null', 'new-session', '-d', '-x', width, '-y', height, '-c', dir,
         "env #{words.join(' ')} sh -i")
    wait_for(/^\$ *$/)
  end

  def tmux(*arguments)
    out, status = Open3.capture2e({ 'TMUX' => nil, 'TERM' => 'xterm' }, 'tmux', '-S', @socket,
                                  *arguments.map(&:to_s))
    raise "tmux #{arguments.first}: #{out}" unless status.success?

    out.force_encoding('UTF-8')
  end

  # Names of keys, or texts.
  def press(*keys)
    tmux('send-keys', *keys)
    self
  end

  def type(line)
    tmux('send-keys', '-l', line)
    press('Enter')
  end

  # What is on it: lines without the blanks at their ends.
  def screen
    tmux('capture-pane', '-p')
  end

  # The same with the escape sequences of its colours.
  def colours
    tmux('capture-pane', '-p', '-e')
  end

  def resize(width, height)
    tmux('resize-window', '-x', width, '-y', height)
  end

  # Waits until the screen matches; returns it.
  def wait_for(pattern, seconds = Live::PATIENCE)
    now = nil
    Live.wait_until("#{pattern.inspect} on the screen", seconds) { (now = screen).match?(pattern) }
    now
  rescue RuntimeError => e
    raise "#{e.message}; on it is\n#{now}"
  end

  # How the terminal is set: what a program must leave as it found it.
  def settings
    name = File.join(@dir, 'stty')
    FileUtils.rm_f(name)
    type("stty -a > #{name}.new; mv #{name}.new #{name}")
    Live.wait_until('settings of the terminal') { File.exist?(name) }
    File.read(name).sub(/rows.*?columns \d+;/, '')
  end

  # The pid of what the shell runs.
  def running
    shell = tmux('display-message', '-p', '#{pane_pid}').strip
    File.read("/proc/#{shell}/task/#{shell}/children").split.last.to_i
  end

  # Whether a program has the screen to itself.
  def alternate?
    tmux('display-message', '-p', '#{alternate_on}').strip == '1'
  end

  def close
    tmux('kill-server')
  rescue RuntimeError
    nil
  end
end
