# SPDX-License-Identifier: GPL-2.0-only
# frozen_string_literal: true

# Code from strings, and blocks evaluated somewhere else.

class Evaluated
  def with_place
    eval('Oracle.checkpoint', binding, 'made_up.rb', 1_000)
  end

  def without_place
    eval('Oracle.checkpoint')
  end

  def block_in_eval
    eval("\n[1].each do\n  Oracle.checkpoint\nend", nil, 'made_up.rb', 20)
  end

  def eval_in_block
    [1].each { eval('Oracle.checkpoint', binding, 'made_up.rb', 7) }
  end

  def nested_eval
    eval("eval('Oracle.checkpoint', nil, 'inner.rb', 5)", nil, 'outer.rb', 6)
  end

  def own_binding
    binding
  end

  def negative_line
    eval("\n\nOracle.checkpoint", nil, 'made_up.rb', -1)
  end

  def path_with_spaces
    eval('Oracle.checkpoint', nil, "a path;with\tsome <odd> & \"quoted\" ünïcödé", 3)
  end

  def far_line
    eval('Oracle.checkpoint', nil, 'far.rb', 2_000_000)
  end
end

class EvaluatedClass
  class_eval <<~METHODS, 'class_eval.rb', 50
    def from_class_eval
      [1].each { Oracle.checkpoint }
    end

    def self.singleton_from_class_eval
      Oracle.checkpoint
    end
  METHODS

  %w[one two].each do |name|
    class_eval <<~METHOD, __FILE__, __LINE__ + 1
      def generated_#{name}        # def generated_one
        Oracle.checkpoint          #   Oracle.checkpoint
      end                          # end
    METHOD
  end
end

EvaluatedClass.class_eval do
  def from_class_eval_block
    Oracle.checkpoint
  end
end

EvaluatedClass.class_exec(:from_class_exec) do |name|
  define_method(name) { Oracle.checkpoint }
end

EvaluatedClass.instance_eval do
  def singleton_from_instance_eval
    Oracle.checkpoint
  end
end

# A body long enough that its line table has more than one block, and more than one word per block.
class LongBody
  source = +"def long(n)\n"
  300.times { |i| source << "  n = n + #{i} if n < 0\n" }
  source << "  Oracle.checkpoint\n"
  300.times { |i| source << "  n = n + #{i} if n < 0\n" }
  source << "end\n"
  class_eval source, 'long_body.rb', 1
end

module Oracle
  scenario(:eval_with_place) { Evaluated.new.with_place }
  scenario(:eval_without_place) { Evaluated.new.without_place }
  scenario(:eval_block) { Evaluated.new.block_in_eval }
  scenario(:eval_in_block) { Evaluated.new.eval_in_block }
  scenario(:eval_nested) { Evaluated.new.nested_eval }
  scenario(:eval_negative_line) { Evaluated.new.negative_line }
  scenario(:eval_odd_path) { Evaluated.new.path_with_spaces }
  scenario(:eval_far_line) { Evaluated.new.far_line }
  scenario(:binding_eval) { Evaluated.new.own_binding.eval('Oracle.checkpoint', 'bound.rb', 9) }
  scenario(:binding_eval_plain) { Evaluated.new.own_binding.eval('Oracle.checkpoint') }
  scenario(:instance_eval_string) do
    Plain.new.instance_eval('helper(1)', 'instance_eval.rb', 12)
  end
  scenario(:instance_eval_block) { Plain.new.instance_eval { secret } }
  scenario(:instance_eval_checkpoint) do
    Plain.new.instance_eval { [1].each { Oracle.checkpoint } }
  end
  scenario(:class_eval_string) { Plain.class_eval('Oracle.checkpoint', 'class_eval.rb', 13) }
  scenario(:class_eval_block) { Plain.class_eval { [1].each { Oracle.checkpoint } } }
  scenario(:class_exec_block) { Plain.class_exec(1) { |_x| Oracle.checkpoint } }
  scenario(:module_eval_string) { Outer.module_eval('[1].each { Oracle.checkpoint }', 'm.rb', 14) }
  scenario(:class_eval_method) { EvaluatedClass.new.from_class_eval }
  scenario(:class_eval_singleton) { EvaluatedClass.singleton_from_class_eval }
  scenario(:class_eval_generated) { EvaluatedClass.new.generated_two }
  scenario(:class_eval_block_method) { EvaluatedClass.new.from_class_eval_block }
  scenario(:class_exec_method) { EvaluatedClass.new.from_class_exec }
  scenario(:instance_eval_method) { EvaluatedClass.singleton_from_instance_eval }
  scenario(:class_new_block) { Class.new { Oracle.checkpoint } }
  scenario(:module_new_block) { Module.new { [1].each { Oracle.checkpoint } } }
  scenario(:struct_new_block) { Struct.new(:a) { Oracle.checkpoint } }
  scenario(:eval_toplevel_binding) { eval('Oracle.checkpoint', TOPLEVEL_BINDING, 'top.rb', 15) }
  scenario(:eval_class_body) do
    eval("class EvalBody\n  Oracle.checkpoint\nend", TOPLEVEL_BINDING, 'body.rb', 1)
  end
  scenario(:long_body) { LongBody.new.long(1) }
  scenario(:iseq_eval) do
    RubyVM::InstructionSequence.compile('Oracle.checkpoint', 'compiled.rb', 'compiled.rb', 3).eval
  end
end
