# SPDX-License-Identifier: GPL-2.0-only
# frozen_string_literal: true

# Blocks, procs and lambdas, and who calls them.

class Blocks
  def two_levels
    [1].each do |x|
      [x].each do |_y|
        Oracle.checkpoint
      end
    end
  end

  def three_levels
    [1].each { |x| [x].each { |y| [y].each { |_z| Oracle.checkpoint } } }
  end

  def self.in_singleton
    [1].each { [2].each { Oracle.checkpoint } }
  end

  def yields
    yield 1, 2
  end

  def passes(&block)
    yields(&block)
  end

  def passes_on
    passes { |_a, _b| Oracle.checkpoint }
  end

  def for_loop
    for _x in [1, 2] # rubocop:disable Style/For
      Oracle.checkpoint
    end
  end

  def proc_called
    a = proc { Oracle.checkpoint }
    a.call
  end

  def lambda_called
    a = ->(_x) { Oracle.checkpoint }
    a.(1)
  end

  def lambda_in_brackets
    a = lambda { |_x| Oracle.checkpoint }
    a[1]
  end

  def lambda_yielded
    a = ->(_x, _y) { Oracle.checkpoint }
    yields(&a)
  end

  def lambda_in_case
    case 1
    when ->(_x) { Oracle.checkpoint } then nil
    end
  end

  def proc_by_send
    proc { Oracle.checkpoint }.send(:call)
  end

  def proc_by_method
    proc { Oracle.checkpoint }.method(:call).call
  end

  def proc_from_elsewhere
    ProcMaker.new.make.call
  end

  def symbol_to_proc
    [self].each(&:stop)
  end

  def symbol_to_proc_called
    :stop.to_proc.call(self)
  end

  def method_to_proc
    [1].each(&method(:stop_with))
  end

  def method_to_proc_called
    method(:stop_with).to_proc.call(1)
  end

  def curried
    ->(_a, _b, _c) { Oracle.checkpoint }.curry[1][2][3]
  end

  def curried_method
    method(:stop_with).curry(2)[1][2]
  end

  def composed
    (->(x) { x + 1 } >> ->(_x) { Oracle.checkpoint }).call(1)
  end

  def composed_backwards
    (method(:stop_with) << ->(x) { x }).call(1)
  end

  def stop
    Oracle.checkpoint
  end

  def stop_with(*_arguments)
    Oracle.checkpoint
  end

  def numbered
    [1].each { _1 && Oracle.checkpoint }
  end

  def block_in_argument
    stop_with([1].map { Oracle.checkpoint })
  end

  def block_local
    yields { |x; y| y = x; y && Oracle.checkpoint }
  end

  def default_in_block
    yields { |_x, _y, _z = Oracle.checkpoint| nil }
  end

  def returns_from_block
    [1].each { |_x| return Oracle.checkpoint }
  end

  def tail
    yields { tail_block }
  end

  def tail_block
    yields { [1].each { Oracle.checkpoint } }
  end

  def tapped
    tap { |_x| Oracle.checkpoint }
  end

  def then_called
    self.then { |_x| Oracle.checkpoint }
  end

  def looped
    loop { break if Oracle.checkpoint.nil? }
  end

  def caught
    catch(:done) { throw :done, Oracle.checkpoint }
  end

  def thrown_past
    catch(:outer) do
      catch(:inner) { throw :inner }
      Oracle.checkpoint
    end
  end

  def instance_executed
    Plain.new.instance_exec(1) { |_x| helper(1) }
  end

  def synchronized
    Mutex.new.synchronize { Oracle.checkpoint }
  end
end

class ProcMaker
  def make
    proc { [1].each { Oracle.checkpoint } }
  end
end

module Oracle
  scenario(:block_two_levels) { Blocks.new.two_levels }
  scenario(:block_three_levels) { Blocks.new.three_levels }
  scenario(:block_in_singleton) { Blocks.in_singleton }
  scenario(:block_in_scenario) { [1].each { |x| [x].each { Oracle.checkpoint } } }
  scenario(:block_passed_on) { Blocks.new.passes_on }
  scenario(:block_for_loop) { Blocks.new.for_loop }
  scenario(:proc_call) { Blocks.new.proc_called }
  scenario(:proc_send) { Blocks.new.proc_by_send }
  scenario(:proc_method) { Blocks.new.proc_by_method }
  scenario(:proc_from_elsewhere) { Blocks.new.proc_from_elsewhere }
  scenario(:lambda_call) { Blocks.new.lambda_called }
  scenario(:lambda_brackets) { Blocks.new.lambda_in_brackets }
  scenario(:lambda_yield) { Blocks.new.lambda_yielded }
  scenario(:lambda_case) { Blocks.new.lambda_in_case }
  scenario(:symbol_to_proc) { Blocks.new.symbol_to_proc }
  scenario(:symbol_to_proc_call) { Blocks.new.symbol_to_proc_called }
  scenario(:method_to_proc) { Blocks.new.method_to_proc }
  scenario(:method_to_proc_call) { Blocks.new.method_to_proc_called }
  scenario(:curry) { Blocks.new.curried }
  scenario(:curry_method) { Blocks.new.curried_method }
  scenario(:compose) { Blocks.new.composed }
  scenario(:compose_backwards) { Blocks.new.composed_backwards }
  scenario(:numbered_parameter) { Blocks.new.numbered }
  scenario(:block_in_argument) { Blocks.new.block_in_argument }
  scenario(:block_local_variable) { Blocks.new.block_local }
  scenario(:block_default_argument) { Blocks.new.default_in_block }
  scenario(:return_from_block) { Blocks.new.returns_from_block }
  scenario(:block_calls_block) { Blocks.new.tail }
  scenario(:tap) { Blocks.new.tapped }
  scenario(:then) { Blocks.new.then_called }
  scenario(:loop) { Blocks.new.looped }
  scenario(:catch) { Blocks.new.caught }
  scenario(:catch_nested) { Blocks.new.thrown_past }
  scenario(:instance_exec_block) { Blocks.new.instance_executed }
  scenario(:mutex_synchronize) { Blocks.new.synchronized }
  scenario(:fiber) { Fiber.new { [1].each { Oracle.checkpoint } }.resume }
  scenario(:fiber_nested) do
    Fiber.new { Fiber.new { Blocks.new.proc_called }.resume }.resume
  end
  scenario(:enumerator_next) do
    Enumerator.new { |yielder| yielder << Plain.new.run }.next
  end
  scenario(:after_fiber) do
    fiber = Fiber.new { 2.times { Fiber.yield } }
    fiber.resume
    Plain.new.run
  end
end
