# SPDX-License-Identifier: GPL-2.0-only
# frozen_string_literal: true

# The Ruby that the live tests run programs on, and those programs as processes.
#
#   TEST_RUBY  the Ruby that programs run on: "" for the one in PATH, the root directory of a Debian
#              (tests/support/rubies.sh makes one), or the prefix of an installation (bin/ruby)

require 'fileutils'
require 'json'
require 'tempfile'

# A shell's background job is told to ignore them, and so would be what it starts: rbpf, which ends by
# them, and the programs.
%w[HUP INT QUIT].each { |name| trap(name, 'DEFAULT') }

module Live
  TOP = File.expand_path('../..', __dir__)
  PROGRAMS = File.join(TOP, 'tests/programs')
  RBPF = File.expand_path(ENV.fetch('RBPF', 'rbpf'), TOP)

  # How long anything may take that is not given a time of its own: see wait_until.
  PATIENCE = 60 # s

  # By the wall clock, whatever progress there is: an rbpf that waits for ever uses a little CPU time each
  # time it looks.
  LONGEST = 600 # s

  module_function

  def now
    Process.clock_gettime(Process::CLOCK_MONOTONIC)
  end

  # Calls the block until it returns something true, which is returned; raises after seconds. If a process is
  # waited for (pid), these are seconds of its CPU time or seconds in which it used none: by the wall clock it
  # may need any time on a busy machine.
  def wait_until(what, seconds = PATIENCE, pid: nil)
    first = used = cpu_time(pid)
    last = now + [seconds, LONGEST].max
    deadline = now + seconds
    until (result = yield)
      before = used
      used = cpu_time(pid)
      deadline = [now + seconds, last].min if used > before
      if now > deadline || used - first > seconds
        raise "gave up waiting after #{seconds} s: #{what}"
      end

      sleep 0.01
    end
    result
  end

  def readable_by_all?(path)
    path == '/' || (File.stat(path).mode & 0o005 == 0o005 && readable_by_all?(File.dirname(path)))
  end

  # "steal" of the first line of /proc/stat, of all CPUs, in ns.
  def stolen_ns
    File.read('/proc/stat').split[8].to_i * 0.01e9
  end

  # For how long some task waited for a CPU, since the machine started; 0 if the kernel does not say.
  def pressure_ns
    File.read('/proc/pressure/cpu')[/^some .*total=(\d+)/, 1].to_i * 1000
  rescue SystemCallError
    0
  end

  # What a process and those of its children that it has waited for have used, in s; 0 if there is none.
  def cpu_time(pid)
    fields = pid ? File.binread("/proc/#{pid}/stat").split(') ').last.split : []
    fields[11..14].to_a.sum(&:to_i) / 100.0
  rescue SystemCallError
    0
  end
end

# An interpreter that programs are run on.
class RubyInstall
  def self.under_test
    @under_test ||= new(ENV.fetch('TEST_RUBY', ''))
  end

  def initialize(dir)
    @chroot = !dir.empty? && File.exist?(File.join(dir, 'usr/bin/ruby')) ? dir : nil
    @ruby = dir.empty? || @chroot ? 'ruby' : File.join(dir, 'bin/ruby')
  end

  # Whether it runs in a root directory of its own, which only root can enter.
  def chroot?
    !@chroot.nil?
  end

  # The root directory in which its files are.
  def root
    @chroot || '/'
  end

  # Its name in command().
  def executable
    @ruby
  end

  # Whether this is the Ruby in PATH.
  def default?
    @ruby == 'ruby' && !@chroot
  end

  # Whether its structs are others than those of any release (tests/unseen).
  def altered?
    File.exist?(File.join(File.dirname(@ruby, 2), 'altered'))
  end

  def version
    @version ||= IO.popen(command('-e', 'print RUBY_VERSION'), &:read)
  end

  # What it is run with so that each of its JIT compilers, as far as it has them, compiles a method
  # when it is called for the first time: { 'yjit' => [option...] }
  def jits
    @jits ||= %w[yjit zjit].select { |name| jit?(name) }.to_h do |name|
      [name, ["--#{name}", "--#{name}-call-threshold=1"]]
    end
  end

  # Whether Ruby threads can share native ones: RUBY_MN_THREADS=1
  def mn_threads?
    at_least?('3.3')
  end

  def ractors?
    at_least?('3.0')
  end

  def at_least?(minimum)
    (Gem::Version.new(version) <=> Gem::Version.new(minimum)) >= 0
  end

  # The argv that runs Ruby with these arguments. The process that is spawned with it is the Ruby.
  def command(*arguments)
    run_command(@ruby, *arguments)
  end

  # The argv that runs a program where this Ruby is.
  def run_command(*argv)
    @chroot ? ['chroot', @chroot, *argv] : argv
  end

  # The path of its libruby, as it finds that; nil if it has none.
  def library
    code = 'c = RbConfig::CONFIG; print Dir["#{c["libdir"]}{,/*}/#{c["LIBRUBY_SO"]}"].first'
    path = IO.popen(command('-e', code), &:read)
    path unless path.empty?
  end

  # The path of its executable, as it finds that.
  def binary
    IO.popen(command('-e', 'print RbConfig.ruby'), &:read)
  end

  # A path of its own, as we find it.
  def outside(file)
    @chroot ? File.join(@chroot, file) : file
  end

  # Puts a file where this Ruby finds it, and returns that path.
  def install(file)
    return file unless @chroot

    File.join(copied_programs, File.basename(file)).tap { |to| FileUtils.cp(file, outside(to)) }
  end

  # A file of tests/programs as this Ruby finds it. There is a copy of them while the tests run in a root, and
  # for a clone that only its owner can read (below /root): some tests run programs as other users.
  def program(name)
    File.join(@chroot || !Live.readable_by_all?(Live::PROGRAMS) ? copied_programs : Live::PROGRAMS, name)
  end

  private

  def jit?(name)
    check = "exit RubyVM.const_defined?(:#{name.upcase}) && RubyVM::#{name.upcase}.enabled? ? 0 : 1"
    system(*command("--#{name}", '-e', check), err: File::NULL)
  end

  def copied_programs
    @copied_programs ||= "/srv/rbpf-#{Process.pid}".tap do |place|
      copy = outside(place)
      FileUtils.mkdir_p(File.dirname(copy))
      FileUtils.cp_r(Live::PROGRAMS, copy)
      owner = Process.pid
      at_exit { FileUtils.rm_rf(copy) if Process.pid == owner }
    end
  end
end

# A running program of tests/programs. Its standard output is a file, its standard input a pipe.
class Target
  attr_reader :pid, :status

  def initialize(argv, env: {}, **options)
    @out = Tempfile.new('rbpf-target')
    reader, @stdin = IO.pipe
    @pid = Process.spawn({ 'LC_ALL' => 'C.UTF-8', 'GEM_HOME' => nil }.merge(env), *argv,
                         in: reader, out: @out.path, **options)
    reader.close
  end

  def output
    File.read(@out.path, encoding: 'UTF-8')
  end

  # The complete lines of JSON that the program has printed so far.
  def said
    output.lines.select { |line| line.end_with?("\n") && line.start_with?('{') }
          .map { |line| JSON.parse(line) }
  end

  # The first object printed that has this key.
  def wait_for(key, seconds = Live::PATIENCE)
    Live.wait_until("#{key} of pid #{pid}", seconds, pid: pid) do
      last = ended? # whatever it said, it has said before
      found = output.include?(%("#{key}":)) && said.find { |object| object.key?(key) }
      raise "pid #{pid} ended (#{status}) without #{key}:\n#{output}" if last && !found

      found
    end
  end

  def go
    @stdin.write("go\n")
  end

  def ended?
    return true if @status

    _, @status = Process.wait2(pid, Process::WNOHANG)
    !@status.nil?
  end

  # Waits for the end, closing standard input: the programs take that as a sign to end.
  def finish(seconds = Live::PATIENCE)
    @stdin.close unless @stdin.closed?
    Live.wait_until("end of pid #{pid}", seconds, pid: pid) { ended? }
    status
  end

  def kill(signal = :KILL)
    Process.kill(signal, pid) unless ended?
  end

  def dispose
    kill
    finish
    @out.close!
  end
end
