# SPDX-License-Identifier: GPL-2.0-only
# frozen_string_literal: true

# A Ruby whose methods, classes, files and threads have names that are no names.
#
#   ruby names.rb nasty|long|many|eval

def work
  i = 0
  i += 1 while i < 20_000
end

NASTY = ["\e[31mred\e[0m", "\e]0;title\a", "\u202Egnp.exe", "\u2066x\u2069", "\u009b31m", "\u2028line", "\u200Emark",
         "new\nline", "cr\rover", "back\b\b", '</script><script>alert(1)', '" onload="alert(1)',
         "\xff\xfe".dup.force_encoding('BINARY'), "%s%n", "nul\0nul"].freeze

# A method of this name, in a file of this name, of a class whose name was given to it.
def define(name, file)
  made = Class.new
  made.class_eval("def run(n)\nn.zero? ? work : run(n - 1)\nend", file.scrub.delete("\0"), 1)
  made.define_method(name) { work }
  made.new
end

def nasty
  objects = NASTY.map { |name| [define(name, name.b.force_encoding('UTF-8')), name] }
  NASTY.each do |name|
    Thread.new do
      Thread.current.name = name.delete("\0") if name.encoding == Encoding::UTF_8
      loop { objects.each { |object, called| object.public_send(called) } }
    end
  end
  -> { objects.each { |object, _| object.run(3) } }
end

def long
  objects = (0...40).map do |i|
    name = "#{i}#{"\u202E" * 10}#{'x' * (1 << 20)}"
    [define(name, "/#{name}"), name]
  end
  -> { objects.each { |object, name| object.public_send(name) } }
end

def many
  code = (0...60_000).map { |i| "def method_with_a_name_of_its_own_#{i}; i = 0; i += 1 while i < 300; end" }
  code.each_slice(10_000) { |slice| Object.class_eval(slice.join("\n")) }
  names = (0...60_000).map { |i| :"method_with_a_name_of_its_own_#{i}" }
  -> { names.each { |name| send(name) } }
end

def evaluated
  @turn = 0
  lambda do
    @turn += 1
    eval("def made_#{@turn}; work; end; made_#{@turn}", binding, "/a/file/number/#{@turn}.rb", @turn) # rubocop:disable Security/Eval
    Object.send(:remove_method, "made_#{@turn}")
  end
end

run = { 'nasty' => :nasty, 'long' => :long, 'many' => :many, 'eval' => :evaluated }.fetch(ARGV[0])
call = send(run)
puts '{"ready":true}'
$stdout.flush
loop { call.call }
