# SPDX-License-Identifier: GPL-2.0-only
# frozen_string_literal: true

# Core methods that take a block. Some are C functions in one version of Ruby and Ruby in another
# (Integer#times, Array#each, Kernel#tap ...).

module Oracle
  PAIRS = { a: 1, b: 2 }.freeze
  private_constant :PAIRS

  scenario(:integer_times) { 2.times { Oracle.checkpoint } }
  scenario(:integer_upto) { 1.upto(2) { Oracle.checkpoint } }
  scenario(:integer_downto) { 2.downto(1) { Oracle.checkpoint } }
  scenario(:integer_step) { 1.step(5, 2) { Oracle.checkpoint } }
  scenario(:float_step) { 1.0.step(2.0, 0.5) { Oracle.checkpoint } }
  scenario(:range_each) { (1..2).each { Oracle.checkpoint } }
  scenario(:range_step) { (1..9).step(4) { Oracle.checkpoint } }
  scenario(:range_each_string) { ('a'..'c').each { Oracle.checkpoint } }
  scenario(:range_endless) { (1..).each { break Oracle.checkpoint } }

  scenario(:array_each) { [1].each { Oracle.checkpoint } }
  scenario(:array_each_with_index) { [1].each_with_index { Oracle.checkpoint } }
  scenario(:array_each_index) { [1].each_index { Oracle.checkpoint } }
  scenario(:array_reverse_each) { [1].reverse_each { Oracle.checkpoint } }
  scenario(:array_map) { [1].map { Oracle.checkpoint } }
  scenario(:array_map_bang) { [1].dup.map! { Oracle.checkpoint } }
  scenario(:array_select) { [1].select { Oracle.checkpoint } }
  scenario(:array_reject) { [1].reject { Oracle.checkpoint } }
  scenario(:array_filter_map) { [1].filter_map { Oracle.checkpoint } }
  scenario(:array_sort) { [2, 1].sort { |a, b| Oracle.checkpoint || (a <=> b) } }
  scenario(:array_sort_bang) { [2, 1].dup.sort! { |a, b| Oracle.checkpoint || (a <=> b) } }
  scenario(:array_sort_by) { [2, 1].sort_by { |a| Oracle.checkpoint || a } }
  scenario(:array_sort_by_bang) { [2, 1].dup.sort_by! { |a| Oracle.checkpoint || a } }
  scenario(:array_min_by) { [2, 1].min_by { |a| Oracle.checkpoint || a } }
  scenario(:array_sum) { [2, 1].sum { |a| Oracle.checkpoint || a } }
  scenario(:array_group_by) { [2, 1].group_by { Oracle.checkpoint } }
  scenario(:array_partition) { [2, 1].partition { Oracle.checkpoint } }
  scenario(:array_flat_map) { [2, 1].flat_map { [Oracle.checkpoint] } }
  scenario(:array_inject) { [2, 1].inject { |a, b| Oracle.checkpoint || (a + b) } }
  scenario(:array_any) { [1].any? { Oracle.checkpoint } }
  scenario(:array_all) { [1].all? { Oracle.checkpoint } }
  scenario(:array_find) { [1].find { Oracle.checkpoint } }
  scenario(:array_index) { [1].index { Oracle.checkpoint } }
  scenario(:array_delete_if) { [1].dup.delete_if { Oracle.checkpoint } }
  scenario(:array_zip) { [1].zip([2]) { Oracle.checkpoint } }
  scenario(:array_product) { [1].product([2]) { Oracle.checkpoint } }
  scenario(:array_each_slice) { [1, 2].each_slice(1) { Oracle.checkpoint } }
  scenario(:array_each_with_object) { [1].each_with_object([]) { Oracle.checkpoint } }
  scenario(:array_map_with_index) { [1].map.with_index { Oracle.checkpoint } }
  scenario(:array_each_with_index_map) { [1].each_with_index.map { Oracle.checkpoint } }
  scenario(:array_new) { Array.new(1) { Oracle.checkpoint } }
  scenario(:array_fetch) { [].fetch(1) { Oracle.checkpoint } }
  scenario(:array_fill) { [1].dup.fill { Oracle.checkpoint } }
  scenario(:array_bsearch) { [1].bsearch { Oracle.checkpoint } }
  scenario(:array_cycle) { [1].cycle(1) { Oracle.checkpoint } }
  scenario(:array_combination) { [1, 2].combination(2) { Oracle.checkpoint } }
  scenario(:array_permutation) { [1, 2].permutation { Oracle.checkpoint } }

  scenario(:hash_each) { PAIRS.each { |_k, _v| Oracle.checkpoint } }
  scenario(:hash_each_value) { PAIRS.each_value { Oracle.checkpoint } }
  scenario(:hash_map) { PAIRS.map { |_k, _v| Oracle.checkpoint } }
  scenario(:hash_each_with_index) { PAIRS.each_with_index { Oracle.checkpoint } }
  scenario(:hash_each_with_object) { PAIRS.each_with_object({}) { Oracle.checkpoint } }
  scenario(:hash_select) { PAIRS.select { |_k, _v| Oracle.checkpoint } }
  scenario(:hash_transform_values) { PAIRS.transform_values { Oracle.checkpoint } }
  scenario(:hash_to_h) { PAIRS.to_h { |k, v| Oracle.checkpoint || [k, v] } }
  scenario(:hash_sort_by) { PAIRS.sort_by { |_k, v| Oracle.checkpoint || v } }
  scenario(:hash_fetch) { PAIRS.fetch(:c) { Oracle.checkpoint } }
  scenario(:hash_merge) { PAIRS.merge(PAIRS) { Oracle.checkpoint } }
  scenario(:hash_any) { PAIRS.any? { |_k, _v| Oracle.checkpoint } }
  scenario(:hash_sum) { PAIRS.sum { |_k, v| Oracle.checkpoint || v } }

  scenario(:string_each_char) { 'ab'.each_char { Oracle.checkpoint } }
  scenario(:string_each_line) { "a\nb".each_line { Oracle.checkpoint } }
  scenario(:string_each_byte) { 'ab'.each_byte { Oracle.checkpoint } }
  scenario(:string_gsub) { 'ab'.gsub(/a/) { Oracle.checkpoint.to_s } }
  scenario(:string_sub) { 'ab'.sub('a') { Oracle.checkpoint.to_s } }
  scenario(:string_gsub_bang) { 'ab'.dup.gsub!(/a/) { Oracle.checkpoint.to_s } }
  scenario(:string_scan) { 'ab'.scan(/a/) { Oracle.checkpoint } }
  scenario(:string_upto) { 'a'.upto('b') { Oracle.checkpoint } }

  scenario(:struct_each) { Point.new(1, 2).each { Oracle.checkpoint } }
  scenario(:struct_each_pair) { Point.new(1, 2).each_pair { Oracle.checkpoint } }
  scenario(:struct_map) { Point.new(1, 2).map { Oracle.checkpoint } }
  scenario(:lazy_chain) do
    (1..20).lazy.select(&:even?).map { |x| x * 2 }.reject { |_x| Oracle.checkpoint }.first(2)
  end
  scenario(:lazy_each) { (1..3).lazy.map { |x| x }.each { Oracle.checkpoint } }
  scenario(:chained_enumerators) { ([1].each + [2].each).each { Oracle.checkpoint } }
  scenario(:each_entry) { PAIRS.each_entry { Oracle.checkpoint } }
  scenario(:file_open) { File.open(__FILE__) { Oracle.checkpoint } }
  scenario(:file_each_line) { File.open(__FILE__) { |io| io.each_line { Oracle.checkpoint } } }
  scenario(:file_foreach) { File.foreach(__FILE__) { Oracle.checkpoint } }
  scenario(:dir_each) { Dir.each_child(__dir__) { Oracle.checkpoint } }
  scenario(:pipe) { IO.pipe { |_reader, _writer| Oracle.checkpoint } }
end
