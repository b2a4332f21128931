# SPDX-License-Identifier: GPL-2.0-only
# frozen_string_literal: true

require 'fiddle'

# A process context of OpenTelemetry.
module Context
  PROT_READ_WRITE = 3
  MAP_PRIVATE = 2
  MFD_CLOEXEC_ALLOW_SEALING = 3
  MADV_DONTFORK = 10
  PR_SET_VMA = 0x53564d41
  BOOTTIME = 7
  SIZE = 4096
  HEADER = 32

  module_function

  def call(name, *args)
    types = args.map { |arg| arg.is_a?(String) ? Fiddle::TYPE_VOIDP : Fiddle::TYPE_LONG }
    Fiddle::Function.new(Fiddle::Handle::DEFAULT[name.to_s], types, Fiddle::TYPE_LONG).call(*args)
  end

  def bytes(number, content)
    raise ArgumentError, 'one byte tells the length' if content.bytesize > 0x7f

    [number << 3 | 2, content.bytesize].pack('CC') + content.b
  end

  def pair(number, key, value)
    bytes(number, bytes(1, key) + bytes(2, bytes(1, value)))
  end

  def map
    fd = call(:memfd_create, 'OTEL_CTX', MFD_CLOEXEC_ALLOW_SEALING)
    call(:ftruncate, fd, SIZE)
    memory = Fiddle::Pointer.new(call(:mmap, 0, SIZE, PROT_READ_WRITE, MAP_PRIVATE, fd, 0), SIZE)
    IO.for_fd(fd).close
    call(:madvise, memory.to_i, SIZE, MADV_DONTFORK)
    memory
  end

  def publish(resource, others = {})
    payload = bytes(1, resource.map { |key, value| pair(1, key, value) }.join) +
              others.map { |key, value| pair(2, key, value) }.join
    memory = map
    memory[HEADER, payload.bytesize] = payload
    memory[0, 16] = ['OTEL_CTX', 2, payload.bytesize].pack('a8LL')
    memory[24, 8] = [memory.to_i + HEADER].pack('Q')
    memory[16, 8] = [Process.clock_gettime(BOOTTIME, :nanosecond)].pack('Q')
    call(:prctl, PR_SET_VMA, 0, memory.to_i, SIZE, 'OTEL_CTX')
  end
end
