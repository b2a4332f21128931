# SPDX-License-Identifier: GPL-2.0-only
# frozen_string_literal: true

# rescue, ensure, else, retry, throw. Up to Ruby 3.3 the body of a rescue or ensure clause has a
# frame of its own, above that of its method; from 3.4 on backtraces show one frame for both.

class Exceptions
  def rescued
    raise 'one'
  rescue StandardError
    Oracle.checkpoint
  end

  def rescued_inside
    begin
      Integer('x')
    rescue ArgumentError
      Oracle.checkpoint
    end
    nil
  end

  def rescued_in_block
    [1].each do
      raise 'one'
    rescue StandardError
      Oracle.checkpoint
    end
  end

  def block_in_rescue
    raise 'one'
  rescue StandardError
    [1].each { [2].each { Oracle.checkpoint } }
  end

  def block_in_rescue_in_block
    [1].each do
      raise 'one'
    rescue StandardError
      [2].each { Oracle.checkpoint }
    end
  end

  def rescued_in_rescue
    raise 'one'
  rescue StandardError
    begin
      raise 'two'
    rescue StandardError
      Oracle.checkpoint
    end
  end

  def raised_deep
    begin
      one_deep
    rescue StandardError
      Oracle.checkpoint
    end
  end

  def one_deep
    [1].each { two_deep }
  end

  def two_deep
    raise 'deep'
  end

  def called_from_rescue
    raise 'one'
  rescue StandardError
    stop
  end

  def stop
    Oracle.checkpoint
  end

  def else_clause
    1 + 1
  rescue StandardError
    nil
  else
    Oracle.checkpoint
  end

  def ensured
    1 + 1
  ensure
    Oracle.checkpoint
  end

  def ensured_in_exception
    raise 'one'
  ensure
    Oracle.checkpoint
  end

  def outer_of_ensure
    ensured_in_exception
  rescue StandardError
    nil
  end

  def ensured_in_throw
    catch(:done) do
      begin
        throw :done
      ensure
        Oracle.checkpoint
      end
    end
  end

  def ensured_in_break
    [1].each do
      begin
        break
      ensure
        Oracle.checkpoint
      end
    end
  end

  def ensured_in_return
    [1].each do
      begin
        return
      ensure
        [2].each { Oracle.checkpoint }
      end
    end
  end

  def ensured_in_rescue
    begin
      raise 'one'
    rescue StandardError
      begin
        raise 'two'
      ensure
        Oracle.checkpoint
      end
    end
  rescue StandardError
    nil
  end

  def rescued_in_ensure
    raise 'one'
  ensure
    begin
      raise 'two'
    rescue StandardError
      Oracle.checkpoint
    end
  end

  def outer_of_rescued_in_ensure
    rescued_in_ensure
  rescue StandardError
    nil
  end

  def retried
    tries ||= 0
    tries += 1
    raise 'again' if tries < 3

    Oracle.checkpoint
  rescue StandardError
    retry
  end

  def self.rescued_in_singleton
    raise 'one'
  rescue StandardError
    Oracle.checkpoint
  end

  define_method(:rescued_in_bmethod) do
    raise 'one'
  rescue StandardError
    Oracle.checkpoint
  end

  def exception_method
    raise Exceptional, 'one'
  rescue Exceptional
    nil
  end

  def matched
    raise 'one'
  rescue Matcher
    nil
  end

  def in_timeout
    raise StopIteration
  rescue *[ArgumentError, StopIteration] => e
    e.message
    Oracle.checkpoint
  end
end

class Exceptional < StandardError
  def initialize(message)
    super
    Oracle.checkpoint
  end
end

module Matcher
  def self.===(_exception)
    Oracle.checkpoint
    true
  end
end

module Oracle
  scenario(:rescue) { Exceptions.new.rescued }
  scenario(:rescue_inside) { Exceptions.new.rescued_inside }
  scenario(:rescue_in_block) { Exceptions.new.rescued_in_block }
  scenario(:rescue_then_block) { Exceptions.new.block_in_rescue }
  scenario(:rescue_in_block_then_block) { Exceptions.new.block_in_rescue_in_block }
  scenario(:rescue_in_rescue) { Exceptions.new.rescued_in_rescue }
  scenario(:rescue_of_deep_raise) { Exceptions.new.raised_deep }
  scenario(:rescue_calls) { Exceptions.new.called_from_rescue }
  scenario(:rescue_else) { Exceptions.new.else_clause }
  scenario(:rescue_singleton) { Exceptions.rescued_in_singleton }
  scenario(:rescue_bmethod) { Exceptions.new.rescued_in_bmethod }
  scenario(:rescue_several) { Exceptions.new.in_timeout }
  scenario(:ensure) { Exceptions.new.ensured }
  scenario(:ensure_in_exception) { Exceptions.new.outer_of_ensure }
  scenario(:ensure_in_throw) { Exceptions.new.ensured_in_throw }
  scenario(:ensure_in_break) { Exceptions.new.ensured_in_break }
  scenario(:ensure_in_return) { Exceptions.new.ensured_in_return }
  scenario(:ensure_in_rescue) { Exceptions.new.ensured_in_rescue }
  scenario(:rescue_in_ensure) { Exceptions.new.outer_of_rescued_in_ensure }
  scenario(:retry) { Exceptions.new.retried }
  scenario(:exception_initialize) { Exceptions.new.exception_method }
  scenario(:exception_matcher) { Exceptions.new.matched }
  scenario(:rescue_in_scenario) do
    raise 'one'
  rescue StandardError
    Oracle.checkpoint
  end
end
