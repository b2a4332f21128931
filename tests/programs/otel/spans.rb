# SPDX-License-Identifier: GPL-2.0-only
# frozen_string_literal: true

# Threads that publish which span they are in, each another one every few ms, and note it themselves.
#
#   ruby spans.rb LIBRARY SECONDS change|swap [late|fork|misbehave]
#
# late: the library is loaded, and the process context published, a second after the beginning. fork: a child does
# what is to be done. At last one line says {"ready": true, "spans": [[TID, FROM_NS, TO_NS, TRACE + SPAN in hex or null], …]}
# (CLOCK_MONOTONIC); outside of these times the thread was changing it.

require_relative '../requests/log'
require_relative 'context'

# The functions of spans.c.
class Publisher
  RANDOM = Random.new(77)
  CHANCE = Mutex.new

  def initialize(library, way)
    Context.publish({ 'service.name' => 'spans' }, 'threadlocal.schema_version' => 'tls_v1')
    handle = Fiddle.dlopen(library)
    pointers = [Fiddle::TYPE_VOIDP, Fiddle::TYPE_VOIDP]
    @attach = Fiddle::Function.new(handle["spans_#{way}"], pointers, Fiddle::TYPE_VOID)
    @detach = Fiddle::Function.new(handle['spans_detach'], [], Fiddle::TYPE_VOID)
    @spans = Queue.new
    @handle = handle
    @detach.call # what has been used once is where it stays
  end

  # In one span after the other, or none, until the deadline.
  def work(deadline)
    tid = RequestLog.tid
    while RequestLog.now < deadline
      ids, ms = CHANCE.synchronize { [RANDOM.rand(8).zero? ? nil : RANDOM.bytes(24), RANDOM.rand(2..8)] }
      ids ? @attach.call(ids[0, 16], ids[16, 8]) : @detach.call
      from = RequestLog.now
      RequestLog.spin(ms)
      @spans << [tid, from, RequestLog.now, ids&.unpack1('H*')]
    end
    @detach.call
  end

  # What no SDK does: pointers to anything, then records that another thread changes.
  def misbehave(seconds)
    garbage = Fiddle::Function.new(@handle['spans_garbage'], [Fiddle::TYPE_INT], Fiddle::TYPE_VOID)
    record = Fiddle::Function.new(@handle['spans_record'], [], Fiddle::TYPE_VOIDP)
    race = Fiddle::Function.new(@handle['spans_race'], [Fiddle::TYPE_VOIDP, Fiddle::TYPE_LONG], Fiddle::TYPE_VOID)
    5.times do |kind|
      garbage.call(kind)
      RequestLog.spin(seconds * 100)
    end
    @attach.call("\1" * 16, "\1" * 8)
    shared = record.call
    done = false
    racer = Thread.new { race.call(shared, 20_000) until done }
    RequestLog.spin(seconds * 500)
    done = true
    racer.join
    { spans: [] }
  end

  def run(seconds)
    deadline = RequestLog.now + (seconds * 1e9)
    Array.new(2) { Thread.new { work(deadline) } }.each(&:join)
    { spans: Array.new(@spans.size) { @spans.pop } }
  end
end

library, seconds, way, when_ = ARGV.shift(4)
ARGV.replace([seconds])
publisher = Publisher.new(library, way) unless when_ == 'late'
RequestLog.run_for do |time|
  case when_
  when 'late'
    RequestLog.spin(1000)
    Publisher.new(library, way).run(time)
  when 'misbehave'
    publisher.misbehave(time)
  when 'fork'
    from, to = IO.pipe
    fork { to.write(JSON.generate(publisher.run(time))) }
    to.close
    JSON.parse(from.read).tap { Process.wait }
  else
    publisher.run(time)
  end
end
