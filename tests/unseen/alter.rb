# SPDX-License-Identifier: GPL-2.0-only
# frozen_string_literal: true

# alter.rb SEED DIR: gives the structs of the CRuby source tree DIR another layout, by a random seed, and prints
# what it did, a line for each struct.
#
# Words are added before members, and members change places. A member is anything of a struct down to the next
# semicolon outside of braces, with what the preprocessor decides about as one. The first members of some structs
# are pinned: Ruby itself relies on them, or a struct without them is no member's question (a list's node).

class Alteration
  # A struct, the files that may define it, the members at its start that stay there (their number, or the name of
  # the last one), how many words may be added in a place, and whether members change places.
  Layout = Struct.new(:name, :files, :pinned, :words, :swap)

  LAYOUTS = [
    Layout.new('rb_execution_context_struct', %w[vm_core.h], 4, 2, true),
    Layout.new('rb_thread_struct', %w[vm_core.h], 1, 1, true),
    Layout.new('rb_vm_struct', %w[vm_core.h], 1, 3, false),
    Layout.new('rb_ractor_struct', %w[ractor_core.h], 1, 3, true),
    Layout.new('rb_iseq_constant_body', %w[vm_core.h], 'iseq_encoded', 2, true),
    Layout.new('iseq_insn_info', %w[vm_core.h], 0, 0, true),
    Layout.new('rb_iseq_location_struct', %w[vm_core.h], 0, 1, true),
    Layout.new('iseq_insn_info_entry', %w[iseq.h], 0, 0, true),
    Layout.new('rb_method_definition_struct', %w[method.h], 'body', 3, true),
    Layout.new('rb_classext_struct', %w[internal/class.h], 0, 2, true),
    Layout.new('rb_fiber_struct', %w[cont.c], 1, 3, true),
    Layout.new('rb_objspace', %w[gc/default/default.c gc/default.c gc.c], 0, 3, true)
  ].freeze

  # A struct that fills its slot of the heap, as a class does from 3.3 on, has no room for more, and
  # in another order its members may need more.
  FULL = /STATIC_ASSERT\(sizeof_rb_classext_t/

  # Of those at constant offsets in rbpf (include/ruby_abi.h): altered in one of so many trees only, as all
  # other facts would else hardly be put to the test.
  RARE = { 'rb_iseq_location_struct' => 6, 'iseq_insn_info_entry' => 3, 'iseq_insn_info' => 6,
           'rb_classext_struct' => 2, 'rb_thread_struct' => 2 }.freeze

  def initialize(seed, dir)
    @random = Random.new(seed)
    @dir = dir
  end

  def run
    LAYOUTS.each do |layout|
      dice = @random.rand(RARE.fetch(layout.name, 1))
      random = Random.new(@random.rand(1 << 32))
      next puts("#{layout.name}: as it is") unless dice.zero?

      puts "#{layout.name}: #{alter(layout, random)}"
    end
  end

  private

  def alter(layout, random)
    path, text, range = find(layout)
    return 'not there' unless path
    return 'as it is: it is full' if text.match?(FULL)

    members = members_of(text[range])
    pinned = number_of_pinned(members, layout.pinned)
    done = []
    members = swap(members, pinned, random, done) if layout.swap
    members = pad(members, pinned, layout.words, random, done) if layout.words.positive?
    File.write(path, text[0...range.begin] + members.join + text[range.end..])
    done.empty? ? 'as it is' : done.join(', ')
  end

  # The file, its text, and where the members of the struct are in it.
  def find(layout)
    layout.files.map { |name| File.join(@dir, name) }.select { |path| File.file?(path) }.each do |path|
      text = File.read(path, encoding: 'BINARY')
      start = text =~ /^[ \t]*(?:typedef )?struct #{layout.name}\s*\{\n/ or next
      from = start + Regexp.last_match(0).size
      return path, text, from...from + closing(text[from..])
    end
    nil
  end

  # How far it is to the start of the line with the brace that closes.
  def closing(text)
    depth = 0
    offset = 0
    text.each_line do |line|
      code = line.gsub(%r{/\*.*?\*/|//.*}, '')
      depth += code.count('{') - code.count('}')
      return offset if depth.negative?

      offset += line.size
    end
    raise 'a struct without an end'
  end

  def members_of(body)
    members = []
    member = +''
    braces = conditions = 0
    comment = false
    body.each_line do |line|
      member << line
      code, comment = without_comments(line, comment)
      conditions += 1 if code =~ /^\s*#\s*if/
      conditions -= 1 if code =~ /^\s*#\s*endif/
      braces += code.count('{') - code.count('}')
      next unless braces.zero? && conditions.zero? && !comment && code =~ /;\s*$|^\s*#\s*endif/

      members << member
      member = +''
    end
    members << member
  end

  def without_comments(line, inside)
    code = line.chomp
    code = inside ? code.sub(%r{\A.*?\*/}) { inside = false } : code
    return ['', true] if inside

    code = code.gsub(%r{/\*.*?\*/}, '').sub(%r{//.*}, '')
    [code.sub(%r{/\*.*}, ''), code.include?('/*')]
  end

  def number_of_pinned(members, pinned)
    return pinned if pinned.is_a?(Integer)

    1 + (members.index { |member| name_of(member) == pinned } || raise("no member #{pinned}"))
  end

  # Members that change places: a third of them, each with another one.
  def swap(members, pinned, random, done)
    free = (pinned...members.size - 1).to_a
    (free.size + 1).div(3).times do
      a, b = free.sample(2, random: random)
      next if b.nil? || random.rand(2).zero?

      members[a], members[b] = members[b], members[a]
      done << "#{name_of(members[b])} <-> #{name_of(members[a])}"
    end
    members
  end

  def pad(members, pinned, most, random, done)
    members.each_with_index.map do |member, i|
      next member if i < pinned || i == members.size - 1 || !random.rand(4).zero?

      words = 1 + random.rand(most)
      done << "#{words} before #{name_of(member)}"
      "    uintptr_t rbpf_added_#{i}[#{words}];\n#{member}"
    end
  end

  def name_of(member)
    member.gsub(%r{/\*.*?\*/}m, '').gsub(%r{//.*}, '').scan(/(\w+)\)?(?:\[\w+\])?(?:\s*\([^()]*\))?(?:\s*:\s*\d+)?\s*;/m).flatten.last || '?'
  end
end

abort 'usage: alter.rb SEED DIR' unless ARGV.size == 2 && File.directory?(ARGV[1])
Alteration.new(Integer(ARGV[0]), ARGV[1]).run
