# SPDX-License-Identifier: GPL-2.0-only
# frozen_string_literal: true

# Defines code from strings some thousand times a second, runs it for a moment, drops it and lets
# the garbage collector have it: addresses are used again and again by code of another name.
#
#   ruby reuse.rb SECONDS KEPT {gc|compact|auto} [KIND]
#
# It runs for SECONDS of CPU time, so that a busy machine takes no samples away. KEPT pieces of code
# are made between two collections: GC.start, GC.compact or GC.start with GC.auto_compact. Each piece
# has a number and that of its parent, the one that made it and called it, in its name and in that of
# its file: gen_00007_of_00005. They are of different kinds in turn, or all of KIND, and then all the
# same but for the numbers.
#
# Begins when a line comes on standard input, prints {"ready": true, "lives": [[ID, PARENT, KIND,
# FROM, TO], ...], "kinds": {KIND: [[LABEL, PATH, LINE], ...]}}, and ends when another line comes.
# FROM and TO: when the piece was there (CLOCK_MONOTONIC, ns). Of a piece of that kind the stack
# between Reuse.spawn and Reuse.inside has those frames, innermost first, with ID and PARENT for its
# numbers and lines counted from its first.

require_relative 'oracle/checkpoint'

class Reuse
  DEPTH = 3

  class Host
  end

  class List < Array
  end
  LIST = List.new([1])

  # Array's own C functions, which are called through aliases.
  C_FUNCTIONS = %w[map select reject each_index any? count find_index each_with_index].freeze
  KINDS = %w[method defined singleton defined_singleton class module lambda proc block] +
          C_FUNCTIONS.map { |name| "c_#{name}" }

  LIVES = []
  SHAPES = {}

  class << self
    def run(seconds, kept, collector, kind)
      @kinds = kind ? [kind] : KINDS
      @kept = kept
      @collector = collector
      @id = 0
      GC.auto_compact = true if collector == 'auto'
      stop = used + seconds
      inside(0, DEPTH) while used < stop
    end

    # The stack above this frame belongs to a piece of code that has this number.
    def inside(id, depth)
      note(id) if id.positive?
      burn
      return unless depth.positive?

      spawn(id, depth - 1)
      burn
    end

    def spawn(parent, depth)
      from = now
      @id += 1
      id = @id
      collect if (id % @kept).zero?
      kind = @kinds[(id * 7) % @kinds.size]
      @kind = kind
      name = format('gen_%05d_of_%05d', id, parent)
      code = "Reuse.inside(#{id}, #{depth})"
      __send__(kind.start_with?('c_') ? 'c_function' : kind, name, code, line_of(id))
      LIVES << [id, parent, kind, from, now]
    end

    private

    def collect
      @collector == 'compact' ? GC.compact : GC.start
    end

    def burn
      i = 0
      i += 1 while i < 2_000
    end

    def now
      Process.clock_gettime(Process::CLOCK_MONOTONIC, :nanosecond)
    end

    # CPU time, in s.
    def used
      Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID)
    end

    def line_of(id)
      (id * 10) + 1
    end

    # What Ruby says of a piece of this kind, once.
    def note(id)
      return if SHAPES.key?(@kind)

      frames = caller_locations(2).take_while { |l| l.label !~ /\bspawn\z/ || l.path != __FILE__ }
      frames.pop # the method of this kind
      SHAPES[@kind] = frames.map do |l|
        [mask(l.label), mask(l.path), l.lineno - line_of(id)]
      end
    end

    def mask(text)
      text.gsub(/_\d+_of_\d+/, '_ID_of_PARENT')
    end

    def method(name, code, line)
      Host.class_eval("def #{name}\n  #{code}\nend", "#{name}.rb", line)
      Host.new.__send__(name)
      Host.__send__(:remove_method, name)
    end

    def defined(name, code, line)
      Host.class_eval("define_method(:#{name}) do\n  #{code}\nend", "#{name}.rb", line)
      Host.new.__send__(name)
      Host.__send__(:remove_method, name)
    end

    def singleton(name, code, line)
      object = Object.new
      object.instance_eval("def self.#{name}\n  #{code}\nend", "#{name}.rb", line)
      object.__send__(name)
    end

    def defined_singleton(name, code, line)
      object = Object.new
      definition = "define_singleton_method(:#{name}) do\n  #{code}\nend"
      object.instance_eval(definition, "#{name}.rb", line)
      object.__send__(name)
    end

    def class(name, code, line)
      owner = name.sub('gen', 'Class')
      class_eval("class #{owner}\n  def #{name}\n    #{code}\n  end\nend", "#{name}.rb", line)
      const_get(owner).new.__send__(name)
      remove_const(owner)
    end

    def module(name, code, line)
      owner = name.sub('gen', 'Module')
      class_eval("module #{owner}\n  def self.#{name}\n    #{code}\n  end\nend", "#{name}.rb", line)
      const_get(owner).__send__(name)
      remove_const(owner)
    end

    def lambda(name, code, line)
      eval("->(_x) do\n  #{code}\nend", binding, "#{name}.rb", line).call(1)
    end

    def proc(name, code, line)
      Host.class_eval("def #{name}\n  proc do\n    #{code}\n  end\nend", "#{name}.rb", line)
      Host.new.__send__(name).call
      Host.__send__(:remove_method, name)
    end

    def block(name, code, line)
      Host.class_eval("def #{name}\n  [1].map do\n    #{code}\n  end\nend", "#{name}.rb", line)
      Host.new.__send__(name)
      Host.__send__(:remove_method, name)
    end

    def c_function(name, code, line)
      c_name = "c_#{name}"
      List.__send__(:alias_method, c_name, @kind.delete_prefix('c_'))
      Host.class_eval("def #{name}\n  LIST.#{c_name} { |*| #{code} }\nend", "#{name}.rb", line)
      Host.new.__send__(name)
      Host.__send__(:remove_method, name)
      List.__send__(:remove_method, c_name)
    end
  end

  class Host
    LIST = Reuse::LIST
  end
end

seconds, kept, collector, kind = ARGV
Oracle.say(waiting: true, pid: Process.pid)
Oracle.wait_for_test
Reuse.run(Float(seconds), Integer(kept), collector, kind)
Oracle.say(ready: true, lives: Reuse::LIVES, kinds: Reuse::SHAPES)
Oracle.wait_for_test
