# SPDX-License-Identifier: GPL-2.0-only
# frozen_string_literal: true

# The yardstick itself, without rbpf: whether the recorded labels of Ruby 3.4 fit what the Ruby
# under test prints for the same programs.

require 'minitest/autorun'

require_relative 'oracle'

class LabelsTest < Minitest::Test
  def test_plain_is_what_older_rubies_print
    {
      'Foo#bar' => 'bar', 'Foo.bar' => 'bar', 'A::B2::C#bar!' => 'bar!', 'bar' => 'bar',
      'block in Foo#bar' => 'block in bar', 'block (2 levels) in A::B.c' => 'block (2 levels) in c',
      'Foo#<=>' => '<=>', 'Foo#[]=' => '[]=', '<=>' => '<=>', 'Foo#Foo' => 'Foo',
      'Ünïcödé#größe' => 'größe', '<main>' => '<main>',
      'block in <class:Foo>' => 'block in <class:Foo>', '<top (required)>' => '<top (required)>',
      'singleton class' => 'singleton class', 'Capital' => 'Capital', 'Foo#`' => '`'
    }.each { |label, plain| assert_equal plain, Labels.plain(label) }
  end

  def test_clauses_stand_above_their_method
    printed = ['rescue in ensure in foo', 'ensure in foo', 'foo', 'block in bar', 'each']
    expected = ['rescue in ensure in A#foo', 'ensure in A#foo', 'A#foo', 'block in A#bar',
                'Array#each']
    assert_equal expected, Labels.qualify(printed, ['A#foo', 'block in A#bar', 'Array#each'])
  end

  def test_a_record_that_does_not_fit_is_refused
    assert_raises(Labels::Misfit) { Labels.qualify(%w[foo], %w[A#bar]) }
    assert_raises(Labels::Misfit) { Labels.qualify(%w[foo bar], %w[A#foo]) }
    assert_raises(Labels::Misfit) { Labels.qualify(%w[foo], %w[A#foo A#bar]) }
    assert_raises(Labels::Misfit) { Labels.qualify(['rescue in foo'], %w[A#foo]) }
  end

  %w[spin threads sleep].each do |mode|
    define_method("test_record_fits_this_ruby_#{mode}") do
      truths = Oracle.run(ruby, mode)
      assert_equal truths.map(&:name), truths.map(&:name).uniq
      assert_operator truths.size, :>, 300
      truths.each { |truth| assert_fits(truth, mode) }
      next unless ruby.version.start_with?('3.4.')

      assert_equal Oracle.record['scenarios'].keys.sort, truths.map(&:name).sort
    end
  end

  def test_record_fits_this_ruby_main
    Oracle.main_programs(ruby).each_value { |argv| assert_fits(Oracle.run_main(argv), 'main') }
  end

  private

  def ruby
    RubyInstall.under_test
  end

  def assert_fits(truth, mode)
    recorded = Oracle.recorded(truth.name, mode)
    if !ruby.at_least?('3.4')
      assert_equal truth.labels.size, Labels.qualify(truth.labels, recorded).size
    elsif ruby.version.start_with?('3.4.')
      assert_equal recorded, truth.labels, "#{truth.name}: update_labels.rb has to be run"
    end
  rescue Labels::Misfit => e
    flunk "#{truth.name}: #{e.message}"
  end
end
