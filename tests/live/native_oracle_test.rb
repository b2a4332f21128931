# SPDX-License-Identifier: GPL-2.0-only
# frozen_string_literal: true

# gdb as the oracle of native stacks: a process is stopped at random moments, and while it stands
# still gdb and rbpf's walker, as it runs in user space (rbpf dump --native), both unwind all of its
# threads. Where gdb's stack is proven by call frame information rbpf's has to be the same.
#
# gdb stops early in code without such information: that of a JIT compiler, Ruby's switch from fiber
# to fiber, the assembler of libgmp, the first instruction of a new thread in glibc's clone3(). What
# rbpf finds outside of that is not compared.
#
#   NATIVE_STOPS=500   how many moments in all; 60 with the Ruby in PATH if not set
#   NATIVE_SEED=N      of the moments

require_relative 'gdb'
require_relative 'support'

if RubyInstall.under_test.default? || ENV['NATIVE_STOPS']
  class NativeOracleTest < LiveTest
    KINDS = %w[deflate digest json oj nokogiri regexp strings sort calls bignum files pipes threads
               gc fibers enumerators exceptions require evaluate].freeze

    STOPS = [Integer(ENV.fetch('NATIVE_STOPS', '60')) / KINDS.size, 1].max

    SEED = Integer(ENV.fetch('NATIVE_SEED') { rand(1 << 30) })

    # How long it runs in between, at most.
    PAUSE = 0.02 # s

    # Where gdb stops early seldom or never most of what it says has to be of use.
    WHOLE = 0.9
    EARLY = %w[bignum fibers enumerators threads].freeze

    # Callers that have to be compared with what gdb proved, and how many times as many stops there may be until
    # they are: where gdb stops early it may prove none but the innermost frame, several times in a row.
    ENOUGH = 10
    MORE_STOPS = 10

    # Stacks compared and callers on them, of these stacks those that gdb unwound to the end, and stops that could
    # not be.
    Count = Struct.new(:stacks, :callers, :whole, :refused, :whys)

    def setup
      super
      missing 'gdb, with Python, is needed' unless Gdb.there?
    end

    KINDS.each do |kind|
      define_method("test_#{kind}") do
        count = compare(kind)
        next if EARLY.include?(kind)

        assert_operator count.whole, :>=, count.stacks * WHOLE, "seed #{SEED}: #{count.whys}"
      end
    end

    RubyInstall.under_test.jits.each do |name, options|
      %w[sort calls fibers exceptions].each do |kind|
        define_method("test_#{kind}_with_#{name}") { compare(kind, options) }
      end
    end

    private

    def compare(kind, options = [])
      target = start_work(kind, options)
      random = Random.new(SEED)
      count = Count.new(0, 0, 0, 0, Hash.new(0))
      gdb = Gdb.new(target.pid)
      stops = 1.step.find do |i|
        compare_stop(target, gdb.stop, count, "#{kind}, seed #{SEED}, stop #{i}")
        next gdb.detach || true if i >= STOPS && (count.callers >= ENOUGH || i == STOPS * MORE_STOPS)

        gdb.resume
        sleep random.rand * PAUSE
        false
      end
      assert_operator count.refused, :<=, (stops + 1) / 2, 'refused to attach'
      assert_operator count.callers, :>=, ENOUGH, "of #{count.stacks} stacks, seed #{SEED}: #{count.whys}"
      count
    ensure
      gdb&.dispose
    end

    def start_work(kind, options)
      target = start('native.rb', kind, 'forever', options: options)
      why = target.wait_for('waiting')['missing']
      ruby.default? ? missing(why) : skip(why) if why
      target.go
      target
    end

    # nil: stopped between two fibers, where no thread has a Ruby stack, it cannot be attached to.
    def dump(target)
      result = Rbpf.run('dump', '-p', target.pid, '--native', '--stack', 'native', '--json')
      return if result.code == 3 && result.err.include?('no thread of it runs Ruby code')

      assert_equal 0, result.code, result.err
      JSON.parse(result.out).fetch('threads').to_h { |thread| [thread['tid'], thread] }
    end

    def compare_stop(target, threads, count, where)
      got = dump(target) or return count.refused += 1
      threads.each do |thread|
        rbpf = got[thread.tid] or flunk "#{where}: rbpf has not thread #{thread.tid}"
        problem = difference(thread, rbpf)
        flunk "#{where}: thread #{thread.tid}: #{problem}" if problem
        count.stacks += 1
        count.callers += [thread.pcs.size - 1, 0].max
        count.whole += 1 if thread.whole?
        count.whys[thread.why] += 1
      end
    end

    # Says where rbpf parts from what gdb has proven; nil if it does not.
    def difference(gdb, rbpf)
      pcs = rbpf.fetch('frames').map { |frame| frame['pc'] && Integer(frame['pc']) }
      ends = rbpf.fetch('native').fetch('end')
      proven = gdb.pcs
      at = proven.zip(pcs).index { |theirs, ours| theirs != ours }
      if at
        "number #{at} of #{proven.size} is the first that differs (gdb #{gdb.why}, rbpf " \
          "#{ends})\n  gdb  #{hex(proven)}\n  rbpf #{hex(pcs)}"
      elsif gdb.whole? && pcs.size > proven.size
        "#{pcs.size} frames instead of #{proven.size}\n  gdb  #{hex(proven)}\n  rbpf #{hex(pcs)}"
      elsif gdb.whole? && ends != 'outermost'
        "the stack is complete, but rbpf ends for #{ends}"
      end
    end

    def hex(pcs)
      pcs.map { |pc| pc ? pc.to_s(16) : '-' }.join(' ')
    end
  end
end
