# SPDX-License-Identifier: GPL-2.0-only
# frozen_string_literal: true

# A Puma that listens on a port of its own. It is a gem with a C extension, installed for the Ruby in
# PATH.

require 'socket'

require_relative 'support'

module Puma
  # Sets @port and @target; app is the rackup file.
  def start_puma(app, packages, env: {})
    puma = ENV['PATH'].split(':').map { |dir| File.join(dir, 'puma') }
                      .find { |file| File.executable?(file) }
    missing "puma (Debian packages #{packages})" unless puma
    @port = TCPServer.open('127.0.0.1', 0) { |server| server.addr[1] }
    bind = "tcp://127.0.0.1:#{@port}"
    @target = start_command([RbConfig.ruby, puma, '-q', '-t', '2:2', '-b', bind, app],
                            env: env, err: File::NULL)
    Live.wait_until('puma to listen') { @target.ended? ? flunk(@target.output) : listening? }
  end

  private

  def listening?
    TCPSocket.new('127.0.0.1', @port).close || true
  rescue Errno::ECONNREFUSED
    false
  end
end
