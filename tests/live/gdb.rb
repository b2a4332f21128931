# SPDX-License-Identifier: GPL-2.0-only
# frozen_string_literal: true

# gdb as a second opinion on native stacks: tests/support/gdb_stacks.py.

require 'json'
require 'tmpdir'

require_relative 'programs'

# A gdb that is attached to a process, which it stops now and then.
class Gdb
  SCRIPT = File.join(Live::TOP, 'tests/support/gdb_stacks.py')
  SIGNAL = 62

  # How long the process may take to stop, and gdb to unwind.
  PATIENCE = 30 # s

  # The pcs, innermost first, that call frame information proves, and why there are no more.
  Thread = Struct.new(:tid, :pcs, :why) do
    # Whether there are no more frames.
    def whole?
      why == 'outermost'
    end
  end

  attr_reader :spent_ns

  def self.there?
    system('gdb', '-nx', '-batch', '-ex', 'python print(1)', out: File::NULL, err: File::NULL)
  end

  def initialize(pid)
    @target = pid
    @dir = Dir.mktmpdir('rbpf-gdb')
    @spent_ns = []
    fifos = %w[in out].map { |name| File.join(@dir, name) }
    fifos.each { |fifo| File.mkfifo(fifo) }
    @gdb = Process.spawn({ 'GDB_STACKS_PID' => pid.to_s, 'GDB_STACKS_IN' => fifos[0],
                           'GDB_STACKS_OUT' => fifos[1], 'HOME' => @dir },
                         'gdb', '-nx', '-batch', '-x', SCRIPT,
                         in: File::NULL, out: log, err: %i[child out])
    # Neither waits here for the other side.
    @out = File.open(fifos[1], File::RDWR)
    @in = File.open(fifos[0], File::RDWR)
    @in.sync = true
  end

  # The threads of the process, which stands still until resume; the first time as soon as gdb has
  # attached.
  def stop
    @started ? Process.kill(SIGNAL, @target) : @started = true
    raise "gdb says nothing: #{File.read(log)}" unless IO.select([@out], nil, nil, PATIENCE)

    said = JSON.parse(@out.gets)
    @spent_ns << said['ns']
    said['threads'].map do |thread|
      Thread.new(thread['tid'], thread['pcs'].map { |pc| Integer(pc) }, thread['why'])
    end
  end

  def resume
    @in.puts('go')
  end

  # The process, which stands still, runs on without gdb.
  def detach
    @in.puts('enough')
    Live.wait_until('end of gdb', PATIENCE) { Process.wait(@gdb, Process::WNOHANG) }
    @gdb = nil
  ensure
    dispose
  end

  def dispose
    if @gdb
      Process.kill(:KILL, @gdb)
      Process.wait(@gdb)
      @gdb = nil
    end
    [@in, @out].each(&:close)
    FileUtils.rm_rf(@dir)
  end

  private

  def log
    File.join(@dir, 'log')
  end
end
