# SPDX-License-Identifier: GPL-2.0-only
# frozen_string_literal: true

# A thread that holds a Mutex in one span and computes in another one, when it has unlocked it. From Ruby 3.3 on the thread that
# waits for the Mutex sleeps on until it gets the GVL.
#
#   ruby late_charge.rb LIBRARY SECONDS
#
# At last one line says {"ready": true, "holding": TRACE + SPAN in hex, "after": [[FROM_NS, TO_NS], …]}: when it was in the other
# one (CLOCK_MONOTONIC).

require_relative '../requests/log'
require_relative 'context'

class LateCharge
  HOLDING = 'h' * 24
  AFTER = 'a' * 24

  def initialize(library)
    Context.publish({ 'service.name' => 'late' }, 'threadlocal.schema_version' => 'tls_v1')
    handle = Fiddle.dlopen(library)
    pointers = [Fiddle::TYPE_VOIDP, Fiddle::TYPE_VOIDP]
    # Neither gives the GVL to who waits for the Mutex.
    @attach = Fiddle::Function.new(handle['spans_change'], pointers, Fiddle::TYPE_VOID, need_gvl: true)
    @detach = Fiddle::Function.new(handle['spans_detach'], [], Fiddle::TYPE_VOID, need_gvl: true)
    @detach.call # what has been used once is where it stays
    @mutex = Mutex.new
    @after = []
  end

  def enter(ids)
    @attach.call(ids[0, 16], ids[16, 8])
  end

  def computes
    enter(AFTER)
    from = RequestLog.now
    RequestLog.spin(5)
    @after << [from, RequestLog.now]
  end

  # It is known to hold it when it leaves its CPU for the second time.
  def holds
    @mutex.synchronize { 2.times { sleep 0.002 } }
  end

  def run(seconds)
    deadline = RequestLog.now + (seconds * 1e9)
    waiter = Thread.new { sleep 0.0005 until @mutex.synchronize { RequestLog.now >= deadline } }
    while RequestLog.now < deadline
      enter(HOLDING)
      holds
      computes
      @detach.call
    end
    waiter.join
    { holding: HOLDING.unpack1('H*'), after: @after }
  end
end

library = ARGV.shift
charge = LateCharge.new(library)
RequestLog.run_for { |seconds| charge.run(seconds) }
