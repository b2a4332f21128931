# SPDX-License-Identifier: GPL-2.0-only
# frozen_string_literal: true

# Time off the CPU, compared with what programs measure of themselves (tests/programs/states.rb).

require_relative 'waiting'

class StatesTest < LiveTest
  include Waiting

  SHARE_OF_KERNEL = 0.15 # by which samples of time in the kernel may differ from the kernel's account, which comes from ticks, too

  # Of what a program measured around its waits; and reading clocks and /proc. Beside nothing and beside four busy loops on two CPUs
  # each wait is as measured but for 0.1 % and 0.3 ms, where no other tolerance is named below.
  PART = 0.01
  CLOCKS = 3_000_000 # ns
  NOTICED = 30_000 # ns from when a thread is woken until its CPU, which may be idle and a virtual one, has queued it: at most, in the mean
  # What was the queue for a CPU, and is shown as what was waited for before, as BPF programs were not told of a wake-up or a return
  # (doc/states.md, Limits): at most, of a thread.
  UNTOLD = 150_000_000 # ns
  # Each time that a thread leaves a CPU or comes back: ns that are CPU time by the kernel's account, and a wait by its events, or neither.
  CHANGING = 10_000
  SUM = 0.01 # of a thread's time, by which the sum of its states may be another: up to a tick of its CPU time has no sample
  # What the kernel accounts to the wrong one of two threads that change places (doc/states.md), as a part of all time of a
  # thread: at most, where it is in long system calls; and where a crowded machine takes the CPU from it.
  GOING_ON = 0.05
  GOING_ON_CROWDED = 0.15
  SUM_CROWDED = 0.03

  SCENARIOS = %w[sleep_ burn pipe socket select_ select_several select_sockets child mutex monitor queue condition flock stopped gvl].freeze
  FILES = %w[cold_file fsync fault minor_fault].freeze
  MORE = %w[convoy pipeline timeout epoll forks].freeze
  HELD = RubyInstall.under_test.at_least?('3.0') ? %w[held] : []

  def test_each_state_is_what_the_program_measured
    check(SCENARIOS + HELD)
  end

  def test_convoys_and_others
    check(MORE)
  end

  # A Ruby up to 3.2 keeps native threads that wait for the next ones, for 3 s: they waited when the recording began.
  def test_native_threads_of_threads_that_ended
    target = start('kept_threads.rb', SECONDS)
    record_states([target])
    rows = recording.rows('--states', '-n', '0')
    lock, idle = %w[lock idle].map { |state| rows.sum { |row| row['states'][state] } }
    assert_operator lock, :<, SLACK, rows.to_s
    assert_operator idle, :>, SECONDS * 1e9, rows.to_s unless RubyInstall.under_test.mn_threads?
  end

  # The kernel says how much CPU time each had in user mode and in the kernel, and how many page faults.
  def test_page_faults_and_system_calls
    targets = %w[minor_fault system_calls].map { |name| start('states.rb', name, SECONDS) }
    before = targets.map { |target| account_of(target) }
    record_states(targets, '-F', '999')
    passed = targets.zip(before).map { |target, was| account_of(target).merge(was) { |_, now, then_| now - then_ } }
    faults, calls = targets.map { |target| cpu_states_of(target) }
    told = [passed, faults, calls].join("\n")
    assert_operator passed[0][:faults], :>, 100, told
    # The rest is for taking the pages away again.
    assert_of_kernel passed[0], faults['minor-fault'], told
    assert_of_kernel passed[0], faults['minor-fault'] + faults['system'], told
    assert_of_kernel passed[1], calls['system'], told
    assert_operator calls['minor-fault'], :<, calls['system'] * 0.03, told
  end

  # What another CPU has sent to this one is received in a soft interrupt, in the name of a thread that computes.
  def test_soft_interrupts_are_no_page_faults
    receiving, sending = allowed_cpus
    return missing('one CPU') unless sending
    return missing('the kernel has no RPS') unless File.exist?('/sys/class/net/lo/queues/rx-0/rps_cpus')
    return missing('the kernel does not tell where its preempt count is') unless knows_preempt_count?

    target = start('states.rb', 'interrupted', SECONDS)
    flood(receiving, sending) { record_states([target], '-F', '999') }
    states = cpu_states_of(target)
    assert_operator states['system'], :>, states.values.sum * 0.1, states
    # To make room for other threads is in it.
    assert_operator states['minor-fault'], :<, states['system'] * 0.2, states
  end

  # One after the other: several in long system calls at once are accounted each other's time.
  FILES.each do |name|
    define_method("test_#{name}") { check([name]) }
  end

  # What the BPF programs take for waits, and in all, is counted and told.
  def test_what_it_costs
    said = record_states([start('states.rb', 'pipe', SECONDS)])
    switches, wakeups, *took, all = recording.totals.values_at('switches', 'wakeups', 'switches_ns', 'wakeups_ns', 'bpf_ns')
    assert_operator [switches, wakeups].min, :>, 20
    took.zip([switches, wakeups]) { |ns, n| assert_includes 50..50_000, ns / n }
    assert_operator all, :>, took.sum
    assert_match(/^  kernel    .* \(\d+\.\d% of one core\)/, said.err)
    assert_match(/^  waits     .* at each of [\d,]+ switches of threads   .* at each of [\d,]+ wake-ups$/, said.err)
  end

  # A Ruby that is not root starts programs by vfork(): until they have begun it waits, with the GVL. The kernel counts it
  # as frozen meanwhile.
  VFORKS = <<~'RUBY'
    Process::UID.change_privilege(65_534)
    $stdout.sync = true
    puts '{"waiting": true}'
    gets
    began = Process.clock_gettime(Process::CLOCK_MONOTONIC)
    system('true') while Process.clock_gettime(Process::CLOCK_MONOTONIC) < began + 1.5
    ns = ((Process.clock_gettime(Process::CLOCK_MONOTONIC) - began) * 1e9).round
    puts %({"ready": true, "ns": #{ns}})
    gets
  RUBY

  def test_programs_that_are_started_by_vfork
    target = start_command(ruby.command('-e', VFORKS))
    record_states([target], '--no-children')
    ns = target.wait_for('ns')['ns']
    states = states_of(target.pid)
    told = "#{states} of #{ns}"
    assert_equal 0, sum(states, 'stopped'), told
    # It computes, and waits for a CPU, besides.
    assert_operator sum(states, 'child'), :>, ns * (crowded? ? 0.1 : 0.3), told
    assert_operator states[['child', true]], :>, sum(states, 'child') * 0.1, told
  end

  # All that its threads do is wait to be told to begin.
  def test_waits_that_are_longer_than_the_recording
    rbpf = attach([start('states.rb', 'sleep_', SECONDS)], '--mode', 'states')
    sleep 0.3
    rbpf.stop
    told = recording.report('--states')
    n = told['rows'].size
    assert_equal [n, n], told.values_at('began_before', 'went_on')
    assert_match(/^  #{n} waits? began before the recording, and #{n} went on after it \(.+\): only what is in it is counted$/,
                 Rbpf.read('report', '-i', recording.file, '--states'))
  end

  if RubyInstall.under_test.ractors?
    # Each has a GVL of its own, and says so of its threads.
    def test_ractors
      check(RubyInstall.under_test.mn_threads? ? %w[beside_ractor] : %w[beside_ractor in_ractor])
    end
  end

  if RubyInstall.under_test.at_least?('3.1')
    # To the kernel they are one thread, which waits where their scheduler does.
    def test_fibers_with_a_scheduler
      check(%w[scheduler])
      said = @targets[0].wait_for('threads')['threads'][0]
      rows = recording.rows('--state', 'wait', '--tid', said['tid'].to_s, '-n', '0').to_h { |row| row.values_at('label', 'total_ns') }
      assert_operator rows.fetch('SelectScheduler#close'), :>, rows.values.max * 0.8, rows
    end
  end

  if RubyInstall.under_test.mn_threads?
    # A thread that sleeps has no native thread then: its sleep is nobody's, and the native threads still add up.
    def test_shared_native_threads
      target = start('states.rb', 'sleep_', SECONDS, env: { 'RUBY_MN_THREADS' => '1' })
      record_states([target, start('states.rb', 'burn', SECONDS)])
      slept = target.wait_for('threads')['threads'][0]['waits']['timer']
      assert_operator slept, :>, SECONDS * 0.5e9
      rows = recording.rows_if_any('--state', 'wait', '--include', '^Scenarios\.sleep_$', '-n', '0')
      assert_operator rows.sum { |row| row['self_ns'] }, :<, slept * 0.2, rows
      check_sums
    end
  end

  # By its control group: one thread computes, the other one sleeps.
  def test_frozen
    target = start('states.rb', 'burn', SECONDS)
    frozen = nil
    in_control_group(target) { |group| record_states([target]) { frozen = freeze_for(group, SECONDS / 3) } }
    tids = target.wait_for('threads')['threads'].map { |thread| thread['tid'] }
    assert_equal 1, tids.size
    [target.pid, *tids].each do |tid|
      found = states_of(tid)
      slack = (frozen.end * PART) + CLOCKS
      assert_includes frozen.begin - slack..frozen.end + slack, sum(found, 'stopped'), "#{tid} of #{target.pid}: #{found}"
    end
    check_sums
  end

  # A program that waits before rbpf has found its Ruby: once that is known, so is where it waits. Each thread of the VM's own
  # has nothing to do.
  def test_waits_that_begin_before_the_ruby_is_known
    command = ruby.command('--disable-gems', '-e', 'def first() sleep(2.5) end; first')
    result = Rbpf.run('record', '-o', path('rbpf.data'), '--mode', 'states', '--as-root', '--', *command)
    assert_equal 0, result.code, result.err
    rows = recording.rows('--event', 'wait', '-n', '0')
    assert_operator total_of(rows, 'Object#first'), :>, 2.3e9, rows
    assert_idle_but_for('timer', 0.2)
  end

  # Nothing tells of a Ruby that uses no CPU time: it is found in time all the same, and so is where it waits.
  def test_waits_of_what_ends_soon
    command = ruby.command('--disable-gems', '-e', 'def first() sleep(0.5) end; first')
    result = Rbpf.run('record', '-o', path('rbpf.data'), '--mode', 'states', '--as-root', '--', *command)
    assert_equal 0, result.code, result.err
    assert_equal [ruby.version], recording.json['processes'].map { |process| process['ruby'] }.uniq
    assert_operator total_of(recording.rows('--event', 'wait', '-n', '0'), 'Object#first'), :>, 0.4e9
  end

  # One of them is sent in parts.
  def test_how_long_waits_were
    program = 'def short() 20.times { sleep 0.05 } end; def long() sleep 3 end; sleep 0.5; short; long'
    command = ruby.command('--disable-gems', '-e', program)
    result = Rbpf.run('record', '-o', path('rbpf.data'), '--mode', 'states', '--as-root', '--', *command)
    assert_equal 0, result.code, result.err
    rows = recording.rows('--state', 'timer', '-n', '0').to_h { |row| [row['label'], row] }
    short, long = rows.values_at('Object#short', 'Object#long')
    assert_equal [20, 1], [short, long].map { |row| row['waits'] }
    assert_in_delta 50_000_000, short['mean_wait_ns'], 5_000_000
    assert_in_delta 3_000_000_000, long['longest_wait_ns'], 15_000_000
    assert_equal long['total_ns'], long['longest_wait_ns']
    assert_operator long['total_samples'], :>, 1
    assert_equal [22, long['longest_wait_ns']], rows['Kernel#sleep'].values_at('waits', 'longest_wait_ns')
  end

  # Also where the descriptor is in memory, as that of poll() is: Ruby calls it before it reads.
  def test_waits_that_began_before_it_attached
    target = start('waits.rb')
    rbpf = attach([target], '--mode', 'states')
    sleep 1.5
    assert_equal 0, rbpf.stop.code
    tids = target.wait_for('waiting')['tids']
    expected = { 'read' => 'pipe', 'select' => 'pipe', 'select socket' => 'network', 'accept' => 'network' }
    found = expected.to_h do |name, _|
      states = states_of(tids.fetch(name)[0])
      [name, states.transform_keys(&:first)]
    end
    expected.each { |name, state| assert_equal [state], found[name].keys, found }
    found.each_value { |states| assert_operator states.values.sum, :>, 1e9, found }
  end

  def test_threads_of_the_vm
    target = start_command(ruby.command('-e', '$stdout.sync = true; puts %q({"waiting": true}); sleep'))
    rbpf = attach([target], '--mode', 'states')
    sleep 1.5
    assert_equal 0, rbpf.stop.code
    assert_idle_but_for('timer', 0.1)
  end

  # A fifth of a CPU for what would use all of it: what the kernel says of the control group.
  def test_throttled
    target = start_command(ruby.command('-e', '$stdout.sync = true; puts %q({"waiting": true}); loop { 1 + 1 }'))
    throttled = nil
    with_a_fifth_of_a_cpu(target) do |group|
      rbpf = attach([target], '--mode', 'states')
      before = throttled_ns(group)
      sleep 2
      throttled = throttled_ns(group) - before
      assert_equal 0, rbpf.stop.code
    end
    found = states_of(target.pid)
    # A part of the machine's own queue is in it, and the recording begins and ends within a period.
    assert_in_delta throttled, sum(found, 'throttled'), (throttled * 0.1) + (2 * PERIOD) + stolen_ns, found
    assert_operator sum(found, 'throttled'), :>, 0.5e9, found
    assert_operator found[['throttled', true]], :>, sum(found, 'throttled') * 0.8, found
    check_sums
  end

  # What is in nanosleep(), which the kernel goes on with as another system call.
  SLEEP_IN_KERNEL = <<~'RUBY'
    $stdout.sync = true
    puts '{"waiting": true}'
    $stdin.gets
    seconds, part = Float(ARGV[0]).divmod(1)
    time = [seconds, part * 1e9].pack('q2')
    syscall(RUBY_PLATFORM.start_with?('x86_64') ? 35 : 101, [time].pack('p').unpack1('J'), 0)
    puts '{"ready": true}'
    $stdin.gets
  RUBY

  def test_going_on_after_a_stop
    target = start_command(ruby.command('-e', SLEEP_IN_KERNEL, SECONDS.to_s))
    record_states([target, start('states.rb', 'burn', SECONDS)]) do
      sleep SECONDS / 4
      Process.kill(:STOP, target.pid)
      sleep SECONDS / 4
      Process.kill(:CONT, target.pid)
    end
    found = states_of(target.pid)
    assert_in_delta SECONDS * 0.25e9, sum(found, 'stopped'), (SECONDS * 0.1e9) + stolen_ns, found
    assert_in_delta SECONDS * 0.75e9, sum(found, 'timer'), (SECONDS * 0.1e9) + stolen_ns, found
  end

  # A name server that takes its time. From 3.3 on another thread asks it, which is none of Ruby's.
  def test_names
    FileUtils.cp_r(ruby.outside('/etc'), path('etc')) if ruby.chroot?
    FileUtils.mkdir_p(path('etc'))
    server = "127.53.#{Process.pid / 250 % 250}.#{(Process.pid % 250) + 1}"
    File.write(path('etc/resolv.conf'), "nameserver #{server}\noptions timeout:5\n")
    command = ruby.command(ruby.program('states.rb'), 'names', SECONDS.to_s, server)
    target = start_command(['unshare', '--mount', 'sh', '-c', <<~SHELL, 'sh', path('etc'), ruby.outside('/etc'), *command])
      from=$1 to=$2
      shift 2
      [ ! -e "$to/resolv.conf" ] || { from=$from/resolv.conf to=$to/resolv.conf; }
      mount --bind "$from" "$to" && exec "$@"
    SHELL
    # Who waits has hardly any CPU time, and a recording without samples of that is none.
    record_states([target, start('states.rb', 'burn', SECONDS)])
    said = target.wait_for('threads')['threads'][0]
    assert_operator said['waits']['network'], :>, SECONDS * 0.5e9
    assert_empty wrong_states('names', said)
    check_sums
  end

  # Of some ten thousand waits a second none is lost, and each is counted, as by the kernel.
  def test_waits_as_short_as_they_can_be
    target = start('pingpong.rb', SECONDS)
    pids = target.wait_for('pids')['pids']
    before, after = Array.new(2) { {} }
    pids.each { |pid| before[pid] = switches_of(pid) }
    record_states([target], '-F', '99') do
      target.wait_for('ready')
      pids.each { |pid| after[pid] = switches_of(pid) }
    end
    pids.each do |pid|
      switches = after[pid] - before[pid]
      assert_operator switches, :>, SECONDS * 1000
      assert_in_delta switches, waits_for_pipes(pid), (switches * 0.001) + 20, pid
    end
  end

  # By itself: nothing else gets the CPU that it is on.
  def test_four_on_one_cpu
    check(%w[crowd])
  end

  private

  # All at once: what waits takes no CPU time. One after the other they would take that many times as long.
  def check(scenarios)
    targets = scenarios.map { |name| [name, start('states.rb', name, SECONDS)] }
    # A thread without a sample of its CPU time has none in the sum of its states: so that there are few, often.
    record_states(targets.map(&:last), '--no-children', '-F', '999')
    wrong = targets.flat_map do |name, target|
      target.wait_for('threads')['threads'].flat_map { |said| wrong_states(name, said) }
    end
    assert_empty wrong, wrong.join("\n")
    check_sums(going_on(scenarios[0]))
    check_seconds
    check_processes
  end

  # All threads together were idle, or in @state, but for so many seconds each.
  def assert_idle_but_for(state, seconds)
    recording.rows('--states', '-n', '0').each do |row|
      other = row['states'].except(state, 'idle', 'user', 'system', 'minor-fault', 'wait-cpu').values.sum
      assert_operator other, :<, seconds * 1e9, row
    end
  end

  # Of all threads of the process, in ns; and its minor page faults.
  def account_of(target)
    faults, user, system = File.read("/proc/#{target.pid}/stat").rpartition(') ')[2].split.values_at(7, 11, 12).map(&:to_i)
    tick = 1_000_000_000 / Etc.sysconf(Etc::SC_CLK_TCK)
    { faults: faults, user: user * tick, system: system * tick }
  end

  def allowed_cpus
    ranges = File.read('/proc/self/status')[/^Cpus_allowed_list:\s+(\S+)/, 1].split(',')
    ranges.flat_map { |range| Range.new(*range.split('-').values_at(0, -1).map(&:to_i)).to_a }
  end

  # On x86_64 it is a variable of each CPU (src/engine/preempt_count.h).
  def knows_preempt_count?
    Etc.uname[:machine] != 'x86_64' || File.binread('/sys/kernel/btf/vmlinux').include?('.data..percpu')
  end

  # Nobody takes the datagrams: most are thrown away when they have been received.
  FLOOD = <<~RUBY
    require 'socket'
    to = UDPSocket.new
    to.ioctl(0x8914, ['lo', 1].pack('a16sx22')) # SIOCSIFFLAGS, IFF_UP
    to.bind('127.0.0.1', 0)
    from = UDPSocket.new
    from.connect('127.0.0.1', to.addr[1])
    File.write('/sys/class/net/lo/queues/rx-0/rps_cpus', ARGV[0])
    Process.setpriority(Process::PRIO_PROCESS, 0, -20) # as much as it can, on a machine that is busy, too
    puts 'begins'
    $stdout.close
    loop { from.send('x' * 60_000, 0) }
  RUBY

  # One CPU sends datagrams that another one receives, while the block runs; in a network of its own.
  def flood(receiving, sending)
    mask = (1 << (receiving % 32)).to_s(16) + (',00000000' * (receiving / 32))
    sender = IO.popen(['unshare', '--net', '--mount', 'sh', '-c', 'mount -t sysfs sysfs /sys && exec taskset -c "$@"', 'sh',
                       sending.to_s, RbConfig.ruby, '-e', FLOOD, mask])
    assert_equal "begins\n", sender.gets
    yield
  ensure
    Process.kill(:KILL, sender.pid)
    sender.close
  end

  # @found: about all of the time in the kernel.
  def assert_of_kernel(account, found, told)
    expected = account[:system]
    assert_operator expected, :>, 50_000_000, told
    assert_in_delta expected, found, (expected * SHARE_OF_KERNEL) + SLACK, told
  end

  def cpu_states_of(target)
    states = recording.rows('--states', '--by', 'process').find { |row| row['pid'] == target.pid }['states']
    states.slice('user', 'system', 'minor-fault')
  end

  # All time of a thread is in one of its states, and in no two. But when a thread changes places with another one, a moment may
  # be; and a part (@going_on) may be accounted to another thread, or be another one's.
  def check_sums(going_on = 0)
    threads = recording.rows('--states').select { |row| row['elapsed_ns'] > 1e9 }
    refute_empty threads
    wrong = threads.reject do |row|
      elapsed, sum = row.values_at('elapsed_ns', 'sum_ns')
      slack = (elapsed * (going_on + (crowded? ? SUM_CROWDED : SUM))) + (waits(row) * CHANGING) + stolen_ns
      (elapsed - slack..elapsed + slack).cover?(sum)
    end
    assert_empty wrong, wrong.join("\n")
  end

  # What a process has is what its threads have.
  def check_processes
    sums = recording.rows('--states', '-n', '0').group_by { |row| row['pid'] }.transform_values do |threads|
      [threads.size, *%w[elapsed_ns sum_ns gvl_held_ns].map { |key| threads.sum { |row| row[key] } }]
    end
    rows = recording.rows('--states', '--by', 'process', '-n', '0')
    assert_equal sums, rows.to_h { |row| [row['pid'], row.values_at('threads', 'elapsed_ns', 'sum_ns', 'gvl_held_ns')] }
  end

  # How often it waited: each time is one sample, and one more for the queue for a CPU.
  def waits(row)
    recording.rows('--by', 'state', '--event', 'wait', '--tid', row['tid'].to_s).sum { |state| state['samples'] } / 2
  end

  # What each second has of a state is together all of it, to the last nanosecond.
  def check_seconds
    seconds = recording.rows('--states', '--by', 'time')
    assert_operator seconds.size, :>, 1
    all = recording.rows('--by', 'state').group_by { |row| row['state'] }
    all.each do |state, rows|
      assert_equal rows.sum { |row| row['self_ns'] }, seconds.sum { |row| row['states'][state] }, state
    end
    check_filter(*all.max_by { |_, rows| rows.size })
  end

  # A filter leaves what is of the state, and no more.
  def check_filter(state, rows)
    passed = recording.rows('--filter', "state = #{state}", '-n', '0').sum { |row| row['self_ns'] }
    assert_equal rows.sum { |row| row['self_ns'] }, passed, state
  end

  PERIOD = 100_000_000 # ns: of the limit of a control group

  # Of version 1 or 2, whichever has the controller here.
  def with_a_fifth_of_a_cpu(target)
    version1 = File.exist?('/sys/fs/cgroup/cpu/cgroup.procs')
    top = version1 ? '/sys/fs/cgroup/cpu' : '/sys/fs/cgroup'
    group = "#{top}/rbpf-#{Process.pid}"
    begin
      File.write("#{top}/cgroup.subtree_control", '+cpu') unless version1
      FileUtils.mkdir(group)
      version1 ? File.write("#{group}/cpu.cfs_quota_us", '20000') : File.write("#{group}/cpu.max", '20000 100000')
    rescue SystemCallError => e
      return missing("no control group can limit the CPU time here: #{e.message}")
    end
    File.write("#{group}/cgroup.procs", target.pid.to_s)
    yield group
    File.write("#{top}/cgroup.procs", target.pid.to_s)
  ensure
    FileUtils.rmdir(group) if group && File.directory?(group)
  end

  def throttled_ns(group)
    stat = File.read("#{group}/cpu.stat")
    (stat[/^throttled_usec (\d+)/, 1].to_i * 1000) + stat[/^throttled_time (\d+)/, 1].to_i
  end

  # Returns for how long it was, in ns: at least from when it is seen to be frozen to before that is taken back, and at most from
  # before each thread is told, which needs a CPU for it, to after.
  def freeze_for(group, seconds)
    sleep seconds
    told = Live.now
    freeze(group)
    seen = Live.now
    sleep seconds
    last = Live.now
    File.write("#{group}/cgroup.freeze", '0')
    ((last - seen) * 1e9)..((Live.now - told) * 1e9)
  end

  # Those that read and write files and their pages.
  def going_on(name)
    return 0 unless FILES.include?(name)

    crowded? ? GOING_ON_CROWDED : GOING_ON
  end

  # What is other than the thread said.
  def wrong_states(name, said)
    found = states_of(said['tid'])
    queued = sum(found, 'wait-cpu')
    going_on = SECONDS * 1e9 * going_on(name)
    untold = untold_ns(said['queued'] - queued)
    # That is in what it measured as waits: from when it is woken until it is queued, or all of it where it could not ask.
    less = [queued - said['queued'], 0].max + said['unsure'] + going_on
    # Its wait is over and another thread has the GVL, or the CPU that it would need to give it away.
    less += sum(found, 'gvl') unless said['waits'].key?('gvl')
    wrong = said['waits'].reject { |state, ns| near?(ns, sum(found, state), less, untold) }
    held = said['held'].reject { |state, ns| near?(ns, found[[state, true]], less, untold) }
    wrong.update(held.transform_keys { |state| "#{state}, GVL held" })
    wrong['queued'] = said['queued'] unless said['queued'].zero? || queued_as_said?(said, queued, going_on + untold)
    wrong.map { |what, ns| "#{name}: #{what} #{ns}, not as in #{found}; it said #{said}" }
  end

  # @missing: from what was queued.
  def untold_ns(missing)
    crowded? || recording.totals['counters']['waits_missed'].positive? ? missing.clamp(0, UNTOLD) : 0
  end

  # Who is woken is queued by the kernel only when its CPU has noticed.
  def queued_as_said?(said, found, more)
    noticed = waits(said) * NOTICED
    (found - said['queued']).abs <= (said['queued'] * PART) + noticed + CLOCKS + stolen_ns + more
  end

  def near?(expected, found, less, more)
    slack = (expected * PART) + CLOCKS + stolen_ns
    (expected - less - slack..expected + more + slack).cover?(found)
  end

  # How often its only thread has left a CPU to wait.
  def switches_of(pid)
    Integer(File.read("/proc/#{pid}/status")[/^voluntary_ctxt_switches:\s+(\d+)/, 1])
  end

  def waits_for_pipes(pid)
    rows = recording.rows('--by', 'state', '--event', 'wait', '--tid', pid.to_s)
    rows.sum { |row| row['state'] == 'pipe' ? row['samples'] : 0 }
  end
end
