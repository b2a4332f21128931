# SPDX-License-Identifier: GPL-2.0-only
# frozen_string_literal: true

# All Rubies of the machine, as they come and go. The tests choose their own among them, because
# others may run, too.

require_relative 'support'

class SystemWideTest < LiveTest
  # Forks are many for one Ruby, and for the others enough.
  MANY = RubyInstall.under_test.default? ? 200 : 40

  def test_forked_children
    said = record_comings('forks', MANY, 0.1)
    children = assert_all_present(said['pids'], /block .*in (?:Comings#forks|forks)|Comings#child/)
    assert_equal [process(said['parent'])['id']], children.map { |c| c['parent'] }.uniq
    assert_account(said)
  end

  def test_executed_scripts
    said = record_comings('scripts', MANY, 0.1)
    scripts = assert_all_present(said['pids'], /\AComings\.child\z/)
    assert_equal [ruby.version], scripts.map { |p| p['ruby'] }.uniq
    assert(scripts.all? { |p| p['command'].include?('class Comings') })
    assert_account(said)
    # The main thread is Ruby's to its end, though the VM is gone before it.
    ends = scripts.flat_map { |p| samples_of(p).drop_while { |s| s.frames.none? { |f| f.label == 'Comings.child' } } }
    assert_empty(ends.select { |s| s.pid == s.tid && s.frames.any? { |f| f.label == '[native thread]' } })
  end

  # The first of its kind is found when it uses CPU, those after it are known from their first tick;
  # but 2.7 has to be found each time, which may take as long as such a script lives. While a Ruby
  # starts it collects garbage, and not all that is sampled at that moment can be proven.
  def test_scripts_that_live_for_a_moment
    assert_most_named(30, 0.05, 499, may_be_late: true)
  end

  # rbpf runs ahead of what keeps the machine busy. At 99 Hz a script's own 50 ms are met by five ticks,
  # and by none one time in a hundred.
  def test_scripts_beside_busy_loops
    beside_busy_loops do
      assert_most_named(30, 0.05, 499)
      forget_recording
      assert_most_named(MANY, 0.1, 99)
      assert_cost_of_ticks(recording.totals)
    end
  end

  # The program that executes them is no Ruby, so that none was met before the first.
  def test_scripts_of_a_shell_beside_busy_loops
    target = start_command(['sh', File.join(Live::PROGRAMS, 'scripts.sh'), '30', '0.05', *ruby.command])
    target.wait_for('waiting')
    beside_busy_loops do
      record_while('class Comings', '-F', 499) do
        target.go
        target.wait_for('ready', BUSY_PATIENCE)
      end
    end
    assert_named(target.wait_for('ready')['pids'])
  end

  # What it used before it was a Ruby is another program's.
  def test_a_program_that_has_used_the_cpu_executes_a_ruby
    code = 'class Comings; end; now = -> { Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID) }; ' \
           'begin_at = now.call; nil while now.call < begin_at + 0.3'
    busy = 'read x; i=0; while [ $i -lt 400000 ]; do i=$((i+1)); done; exec "$@"'
    used = nil
    record_while('class Comings', '-F', 499) do
      before = Process.times.then { |t| t.cutime + t.cstime }
      target = start_command(['sh', '-c', busy, 'sh', *ruby.command('--disable-gems', '-e', code)])
      target.go
      target.finish
      used = (Process.times.then { |t| t.cutime + t.cstime } - before) * 1e9
    end
    kernel = recording.totals['cpu_kernel_ns']
    assert_operator used - kernel, :>, 0.1e9, 'the shell is not counted'
    assert_operator kernel, :>, 0.25e9
    assert_sampled(kernel, recording.samples.map(&:value), 0.05)
  end

  # Before 3.0 a Ruby is walked by addresses, which the BPF programs cannot know of a program that was
  # only just executed: it does not follow it, and so cannot count it.
  if RubyInstall.under_test.at_least?('3.0')
    # Scripts that rbpf comes too late for are counted: it stands still while they live. What they execute
    # is known from the program that executes them.
    def test_scripts_that_end_unseen
      target = start('comings.rb', 'scripts', 4, 0.05, options: ['--disable-gems'])
      target.wait_for('waiting')
      rbpf = Rbpf::Running.new('record', '-o', path('rbpf.data'), '-F', 499, '--comm', 'comings.rb').wait_attached
      rbpf.signal(:STOP)
      target.go
      target.wait_for('ready', BUSY_PATIENCE)
      rbpf.signal(:CONT)
      result = rbpf.stop
      assert_equal 0, result.code, result.err
      assert_equal 4, recording.totals['counters']['ended_unseen']
      assert_match(/^  4 Ruby processes ended before rbpf looked:/, result.err)
    end
  end

  def test_a_grandchild_whose_parent_has_ended
    said = record_comings('daemon', 0.2)
    assert_all_present(said['pids'].last(1), /\AComings#child\z/)
    middle, grandchild = said['pids'].map { |pid| process(pid) }
    assert_equal middle['id'], grandchild['parent']
  end

  # Other roots have no other programs.
  if RubyInstall.under_test.default?
    def test_what_executes_something_else_is_no_ruby_any_more
      said = record_comings('exec', 0.2)
      assert_all_present(said['pids'], /\AComings#child\z/)
      row = process(said['pids'].first)
      assert_equal ruby.version, row['ruby']
      assert_includes row['command'], 'comings.rb', 'not what it executed'
      refute_nil row['exit_ns']
      assert_cpu_ns 0.2e9, recording.totals['cpu_kernel_ns'], 0.2, 'the shell is not counted'
      assert_sampled(0.2e9, samples_of(row).map(&:value), 0)
    end
  end

  def test_what_runs_already
    targets = [start('heartbeat.rb'), start('heartbeat.rb')]
    targets.each { |target| target.wait_for('waiting') }
    sleep 1 # which is not of the recording
    record_while('heartbeat.rb', '-F', 499) { sleep 1 }
    targets.each { |target| refute_empty samples_of(process(target.pid)) }
    assert_sane_recording(recording)
    assert_sampled(recording.totals['cpu_kernel_ns'], recording.samples.map(&:value), 0.05)
  end

  # So what works and rests in step with the clock of its CPU is not sampled at the same place for long.
  def test_periods_are_drawn_anew
    target = start('burn.rb', 60, 1)
    target.wait_for('waiting')
    target.go
    record_while('burn.rb', '-F', 499) { sleep 2 }
    target.kill
    values = recording.samples.map { |sample| sample.value * 499 / 1e9 }
    assert_operator values.uniq.size, :>, 8
    assert_operator values.min, :>, 0.89
    # A period, and a part of the one before.
    assert_operator values.max, :>, 1.11
    assert_operator values.max, :<, 1.39
    assert_operator(values.count { |value| value > 1.11 }, :<, values.size / 5)
  end

  def test_a_stopped_process
    target = start('heartbeat.rb')
    target.wait_for('waiting')
    target.kill(:STOP)
    record_while('heartbeat.rb', '-F', 499) do
      sleep 0.5
      target.kill(:CONT)
      sleep 0.5
    end
    refute_empty samples_of(process(target.pid))
  end

  if RubyInstall.under_test.default?
    OTHERS = { '2.7' => /\A2\.7\./, '3.3' => /\A3\.3\./ }.freeze

    def test_rubies_of_other_roots
      expected = others.map { |root, _| start_in(root) } << start('burn.rb', 1)
      expected.each { |target| target.wait_for('waiting') }
      record_while('burn.rb', '-F', 499) do
        expected.each(&:go)
        expected.each { |target| target.wait_for('ready') }
      end
      versions = expected.map { |target| process(target.pid)['ruby'] }
      assert_equal 3, versions.uniq.size, versions.inspect
      OTHERS.each_value.zip(versions) { |pattern, version| assert_match(pattern, version) }
      expected.each do |target|
        labels = labels_of(process(target.pid))
        assert_includes labels, 'Burner#heavy'
        assert_includes labels, 'Burner#light'
      end
      assert_sane_recording(recording)
    end
  end

  # Only root can enter another root.
  unless RubyInstall.under_test.chroot?
    def test_selection
      mine = start('heartbeat.rb')
      nobody = start_command(['setpriv', '--reuid=65534', '--clear-groups', *ruby.command(ruby.program('heartbeat.rb'))])
      [mine, nobody].each { |target| target.wait_for('waiting') }
      { ['--user', 'nobody'] => [nobody], ['--user', '65534'] => [nobody],
        ['--user', 'root', '--comm', 'heart[b]eat'] => [mine],
        ['--comm', 'heartbeat\.rb$'] => [mine, nobody] }.each do |options, targets|
        forget_recording
        record_while(nil, *options) { sleep 0.3 }
        pids = recording.json['processes'].map { |p| p['pid'] }
        assert_equal targets.map(&:pid).sort, (pids & [mine.pid, nobody.pid]).sort,
                     options.inspect
      end
    end
  end

  def test_a_selection_that_nothing_matches
    result = Rbpf.run('record', '--container', 'decaf', '--user', '54321', '-d', '300ms', '-o', path('none'))
    assert_equal 3, result.code, result.err
    assert_match(/^rbpf: recording all Rubies that match --container decaf --user 54321: 0 processes/, result.err)
    assert_match(/^rbpf: error: .* matches --container decaf --user 54321\n  hint: 'rbpf ps' /, result.err)
  end

  # A control group may come later, but may also be mistyped. Only the hierarchy of version 2 has one place for it.
  def test_a_control_group_that_is_not_there
    v2 = 'mount -t tmpfs tmpfs /sys/fs/cgroup && touch /sys/fs/cgroup/cgroup.controllers && mkdir /sys/fs/cgroup/here'
    %w[here nosuch].each do |group|
      result = Rbpf.run('--mount', 'sh', '-c', "#{v2} && exec \"$@\"", 'sh', Live::RBPF, 'record', '--cgroup', "/#{group}",
                        '-d', '100ms', '-o', path('none'), binary: 'unshare')
      assert_equal 3, result.code, result.err
      assert_equal group == 'nosuch', result.err.include?('rbpf: warning: there is no control group /nosuch yet'), result.err
    end
  end

  CGROUPS = '/sys/fs/cgroup'

  if File.writable?("#{CGROUPS}/cgroup.procs")
    def test_containers
      id = 'c0ffee' + (format('%058d', Process.pid))
      group = File.join(CGROUPS, "rbpf-test-#{Process.pid}", "docker-#{id}.scope")
      FileUtils.mkdir_p(group)
      target = start('heartbeat.rb')
      target.wait_for('waiting')
      File.write("#{group}/cgroup.procs", target.pid.to_s)
      inside = [['--container', 'c0ffee'], ['--container', id],
                ['--cgroup', File.dirname(group)],
                ['--cgroup', File.dirname(group).delete_prefix(CGROUPS)]]
      inside.each do |options|
        forget_recording
        record_while(nil, *options) { sleep 0.3 }
        assert_equal([[target.pid, id]],
                     recording.json['processes'].map { |p| p.values_at('pid', 'container') })
      end
      row = Rbpf.json('ps', '--json').find { |r| r['pid'] == target.pid }
      assert_equal [id, group.delete_prefix(CGROUPS)], row.values_at('container', 'cgroup')
      assert_match(/^ *#{target.pid} .*  #{id[0, 12]}  .*heartbeat.rb$/, Rbpf.read('ps'))
    ensure
      target&.dispose
      Live.wait_until('the control groups to be empty') do
        [group, File.dirname(group)].each { |dir| Dir.rmdir(dir) if File.exist?(dir) } || true
      rescue Errno::EBUSY
        false
      end
    end
  end

  def test_a_ruby_that_cannot_be_walked_is_named
    target = start('heartbeat.rb')
    target.wait_for('waiting')
    # Code alone does not tell the layout of any Ruby.
    result = record_while('heartbeat.rb', '--layout-from', 'code') { sleep 1 }
    refute_includes labels_of(process(target.pid)), 'Heartbeat#beat'
    assert_match(/warning: .*cannot find out the memory layout of Ruby .*: '[^']+' is unknown/, result.err)
    refute target.ended?
  end

  def test_no_ruby_at_all
    result = Rbpf.run('record', '--all-ruby', '--comm', 'no such command line', '-d', '300ms',
                      '-o', path('rbpf.data'))
    assert_equal 3, result.code, result.err
    assert_match(/no Ruby process/, result.err)
  end

  # With little memory it forgets names, and learns them again.
  def test_a_limit_of_memory
    said = record_comings('forks', 40, 0.05, options: ['--memlimit', '32M'])
    assert_all_present(said['pids'], /\AComings#child\z/)
  end

  # Of a program that has ended rbpf keeps no file system busy.
  if RubyInstall.under_test.default?
    def test_what_has_ended_can_be_unmounted
      mount_library
      record_while('class Unmounted', '-F', 499) do
        assert system('ruby', '--disable-gems', '-e', <<~RUBY)
          class Unmounted; end
          require '#{path('container')}/bigdecimal.so'
          600.times { BigDecimal('2').sqrt(500) }
        RUBY
        Live.wait_until('nothing keeps it busy') { system('umount', path('container'), err: File::NULL) }
      end
      assert(recording.json['modules'].any? { |file| file['path'].end_with?('container/bigdecimal.so') })
    ensure
      system('umount', '-l', path('container'), err: File::NULL)
    end
  end

  # With as few as it asks for (src/base/fds.h), it records.
  def test_few_open_files
    least = 62 + 2 * Etc.nprocessors
    target = start('heartbeat.rb')
    target.wait_for('waiting')
    result = Rbpf.run_with_files(least, 'record', '--comm', 'heartbeat.rb', '-d', '700ms', '-F', '499', '-o',
                                 path('rbpf.data'))
    assert_equal 0, result.code, result.err
    refute_empty samples_of(process(target.pid))
  end

  # A CPU that comes back is sampled again.
  ONLINE = '/sys/devices/system/cpu/cpu1/online'

  if RubyInstall.under_test.default? && File.writable?(ONLINE)
    def test_a_cpu_goes_and_comes
      target = start('burn.rb', 3)
      target.wait_for('waiting')
      record_while('burn.rb', '-F', 499) do
        target.go
        [[0, 0.6], [1, 1.2]].each do |state, seconds|
          File.write(ONLINE, state.to_s)
          sleep seconds
        end
      end
      assert_sane_recording(recording)
      totals = recording.totals
      assert_cpu_ns totals['cpu_kernel_ns'], totals['cpu_sampled_ns'], 0.1
    ensure
      File.write(ONLINE, '1')
    end
  end

  CAPABILITIES = '-all,+bpf,+perfmon,+sys_ptrace'

  if RubyInstall.under_test.default?
    def test_capabilities_instead_of_root
      FileUtils.chmod(0o777, @dir)
      rbpf = path('rbpf').tap { |copy| FileUtils.cp(Live::RBPF, copy) }
      target = start('heartbeat.rb')
      target.wait_for('waiting')
      [['--comm', 'heartbeat.rb'], ['-p', target.pid.to_s]].each_with_index do |options, i|
        file = path("#{i}.data")
        assert system('setpriv', '--reuid=65534', '--regid=65534', '--clear-groups',
                      "--inh-caps=#{CAPABILITIES}", "--ambient-caps=#{CAPABILITIES}",
                      "--bounding-set=#{CAPABILITIES}", rbpf, '-q', 'record', '-F', '499', '-d',
                      '700ms', '-o', file, *options)
        assert_includes Recording.new(file).frames.map(&:label), 'Heartbeat#beat'
      end
    end
  end

  private

  def assert_most_named(count, seconds, hertz, may_be_late: false)
    assert_named(record_comings('scripts', count, seconds, hz: hertz, sane: false)['pids'], may_be_late: may_be_late)
    totals = recording.totals
    assert_operator totals['unresolved'], :<=, totals['samples'] * 0.05
    assert_nothing_lost(recording)
  end

  # 95 % of the scripts are seen in their own code. Other processes that make the kernel wait, those above all that get
  # memory and give it back all the time, can make rbpf as late as if it did not run ahead: then it is fewer.
  def assert_named(pids, may_be_late: false)
    recorded = pids.select { |pid| recording.json['processes'].any? { |p| p['pid'] == pid } }
    others = recorded.to_h { |pid| [pid, labels_of(process(pid))] }.reject { |_, labels| labels.include?('Comings.child') }
    share = ruby.at_least?('3.0') && !(may_be_late && crowded?) ? 0.95 : 0.66
    assert_operator recorded.size - others.size, :>=, pids.size * share,
                    "#{recorded.size} of #{pids.size} are recorded, without it #{others}"
  end

  # Most ticks are of CPUs that run something else. They cost little, and none of it is a sample's.
  def assert_cost_of_ticks(totals)
    taken, in_samples = totals['counters'].values_at('ticks', 'sample_ns')
    assert_operator totals['other_ticks'], :>, 100
    assert_operator totals['kernel_ns_per_sample'], :>=, in_samples / taken
    assert_operator totals['other_ticks_ns'] / totals['other_ticks'], :<, totals['kernel_ns_per_sample'] / 2
    assert_operator totals['other_ticks_ns'], :>, 0
    assert_operator totals['machine_busy_ns'], :>, totals['cpu_kernel_ns'] / 2
  end

  def forget_recording
    File.write(path('rbpf.data'), '')
    @recording = nil
  end

  # What comings.rb has said, with its pid.
  def record_comings(*arguments, hz: 99, options: [], sane: true)
    target = start('comings.rb', *arguments, options: ['--disable-gems'])
    target.wait_for('waiting')
    record_while('comings.rb|class Comings', '-F', hz, *options) do
      target.go
      target.wait_for('ready', BUSY_PATIENCE)
    end
    assert_sane_recording(recording) if sane
    target.wait_for('ready').merge('parent' => target.pid)
  end

  def record_while(comm, *options)
    options = ['--comm', comm, *options] if comm
    rbpf = Rbpf::Running.new('record', '-o', path('rbpf.data'), *options).wait_attached
    begin
      yield
    ensure
      result = rbpf.stop
    end
    assert_equal 0, result.code, result.err
    result
  end

  # A library of Ruby's in a file system of its own.
  def mount_library
    Dir.mkdir(path('container'))
    assert system('mount', '-t', 'tmpfs', 'none', path('container'))
    FileUtils.cp("#{RbConfig::CONFIG['archdir']}/bigdecimal.so", path('container'))
  end

  def others
    OTHERS.keys.map do |version|
      root = File.join(Live::TOP, 'build/rubies', version)
      File.directory?(root) or missing "#{root}: make check-live puts it there"
      [root, version]
    end
  end

  # A copy of the programs is put there, as RubyInstall does for the Ruby under test.
  def start_in(root)
    place = "/srv/rbpf-system-#{Process.pid}"
    FileUtils.mkdir_p(File.join(root, 'srv'))
    FileUtils.cp_r(Live::PROGRAMS, File.join(root, place))
    (@copies ||= []) << File.join(root, place)
    start_command(['chroot', root, 'ruby', "#{place}/burn.rb", '1'])
  end

  def teardown
    super
    FileUtils.rm_rf(@copies || [])
  end

  # The process of a recording, with its id; the last one of that pid.
  def process(pid)
    id = recording.json['processes'].rindex { |p| p['pid'] == pid }
    refute_nil id, "pid #{pid} is not in the recording"
    recording.json['processes'][id].merge('id' => id)
  end

  def samples_of(process)
    @by_process ||= {}
    @by_process[recording] ||= recording.samples.group_by(&:pid)
    @by_process[recording].fetch(process['pid'], [])
  end

  def labels_of(process)
    samples_of(process).flat_map { |sample| sample.frames.map(&:label) }.uniq
  end

  # Each has a Ruby stack with such a frame, and none has a frame without a name; but for the moment
  # when a collection begins or ends, at which objects may be moved, and little can be proven, and for
  # what rbpf comes too late for on a busy machine.
  def assert_all_present(pids, label)
    rows = pids.map { |pid| process(pid) }
    without = rows.reject { |row| labels_of(row).any? { |l| l.match?(label) } }
    seen = rows - without
    # On a machine that others keep busy what these scripts cost rbpf may be more than it may use at its priority,
    # and then it is as late as any other process (doc/system-wide.md, the first row of the table).
    assert_operator without.size, :<=, crowded? ? pids.size * 0.15 : 0,
                    "have no such frame: #{without.map { |row| [row['pid'], labels_of(row)] }.first(5)}"
    unknown = rows.flat_map { |row| samples_of(row) }.select(&:unresolved?)
                  .reject { |sample| sample.frames.first.label == '(garbage collection)' }
    assert_operator unknown.size, :<=, rows.sum { |row| samples_of(row).size } * DOUBTFUL,
                    unknown.map { |sample| sample.frames.join(' < ') }.first(3).inspect
    seen
  end

  # In a process that has just begun more pages are only being brought in when a tick comes.
  def assert_nothing_lost(recording)
    totals = recording.totals
    assert_operator totals['samples'], :>, 0
    assert_equal 0, totals['lost'], 'lost samples'
    assert_operator totals['failed'], :<=, 2 + (totals['samples'] / 25), 'walks that failed'
  end

  # What was sampled of processes that have ended is what the kernel accounts for them. Ruby's is
  # that of all their lives, also before and after they were Rubies.
  def assert_account(said)
    samples = said['pids'].flat_map { |pid| samples_of(process(pid)) }
    assert_sampled(said['cpu'] * 1e9, samples.map(&:value), 0.05)
    assert_sampled(recording.totals['cpu_kernel_ns'], recording.samples.map(&:value), 0.03)
  end
end
