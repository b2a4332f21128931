# SPDX-License-Identifier: GPL-2.0-only
# frozen_string_literal: true

# What is printed of a real recording agrees with the recording.

require_relative 'support'

class ViewsTest < LiveTest
  def setup
    super
    @recording = record(start('burn.rb', 0.8, 2), '-F', 999)
  end

  def test_summary_of_record
    totals = @recording.totals
    err = @recorded.err
    assert_match(/^rbpf: attached to .*#{Regexp.escape(ruby.version)}/, err)
    assert_match(/samples\s+#{with_commas(totals['samples'])}\b/, err)
    assert_match(/lost\s+0\b/, err)
    assert_match(/truncated stacks 0\b/, err)
    assert_match(/unresolved\b.* 0$/, err)
    assert_match(/cpu\s+0\.\d|cpu\s+\d+ ms/, err)
    assert_match(/overhead\s+rbpf/, err)
    assert_empty @recorded.out
  end

  def test_quiet
    target = start('heartbeat.rb')
    target.wait_for('waiting')
    result = Rbpf.run('-q', 'record', '-p', target.pid, '-d', '300ms', '-o', path('quiet.data'))
    assert_equal [0, ''], [result.code, result.err]
  end

  def test_report
    text = Rbpf.read('report', '-i', @recording.file)
    assert_match(/samples at 999 Hz/, text)
    assert_match(/Burner#heavy\b.*burn\.rb/, text)
    assert_match(/Array#sort\b/, text)
    tree = Rbpf.read('report', '-i', @recording.file, '--tree')
    assert_match(/Burner#heavy/, tree)
  end

  def test_rows_add_up
    rows = @recording.rows
    assert_equal @recording.totals['samples'], rows.sum { |row| row['samples'] }
    assert_equal @recording.totals['cpu_sampled_ns'], rows.sum { |row| row['self_ns'] }
    rows.each { |row| assert_operator row['self_ns'], :<=, row['total_ns'], row['label'] }
    assert_equal 'cfunc', @recording.row('Array#sort')['kind']
    assert_equal 'ruby', @recording.row('Burner#heavy')['kind']
  end

  def test_rows_by_line
    source = File.readlines(File.join(Live::PROGRAMS, 'burn.rb'))
    rows = @recording.rows('--by', 'line').select { |row| row['label'] == 'Burner#heavy' }
    refute_empty rows
    rows.each { |row| assert_match(/i = 0|i \+= 1|^  end$/, source[row['line'] - 1]) }
    assert(rows.any? { |row| row['line'] == source.index { |line| line.include?('450_000') } + 1 })
    check_kept_source(source)
  end

  def check_kept_source(source)
    files = JSON.parse(Rbpf.read('annotate', '-i', @recording.file, '--json', 'burn.rb'))['files']
    assert_equal [[true, false]], files.map { |file| file.values_at('kept', 'changed') }
    files[0]['lines'].each { |row| assert_equal source[row['line'] - 1].chomp, row['text'] }
  end

  def test_folded_adds_up
    lines = Rbpf.read('export', '-f', 'folded', '-i', @recording.file).lines
    counts = lines.map do |line|
      assert_match(/\A[^;]+(;[^;]+)* \d+\n\z/, line)
      line[/\d+$/].to_i
    end
    assert_equal @recording.totals['samples'], counts.sum
    stack = 'Burner#run;Burner#measure;block in Burner#run;Burner#heavy'
    assert(lines.any? { |line| line.match?(/;#{stack} \d+$/) })
  end

  def test_flame_graph
    svg = Rbpf.read('flame', '-i', @recording.file)
    assert_match(/\A<\?xml|\A<svg/, svg)
    assert_includes svg, 'Burner#heavy'
    assert svg.rstrip.end_with?('</svg>')
    well_formed(svg)
  end

  def test_record_and_flame_graph_at_once
    target = start('heartbeat.rb')
    target.wait_for('waiting')
    result = Rbpf.run('record', '-p', target.pid, '-F', 999, '-d', '500ms', '-f', 'flame',
                      '-o', 'out.svg', chdir: @dir)
    assert_equal 0, result.code, result.err
    assert_includes File.read(path('out.svg')), 'Heartbeat#beat'
  end

  # There is nothing to draw, but the recording says so much.
  def test_record_and_flame_graph_of_what_only_waits
    target = start('burn.rb', 60, 1)
    target.wait_for('waiting')
    File.write(path('out.svg'), 'older')
    result = Rbpf.run('record', '-p', target.pid, '-d', '500ms', '-f', 'flame', '-o', 'out.svg', chdir: @dir)
    assert_equal Recording::NO_SAMPLES, result.code, result.err
    assert_match(/^rbpf: error: there are no samples to export$/, result.err)
    assert_match(/; kept the recording that was in rbpf\.data$/, result.err)
    assert_match(/^recorded \S+ ms of 1 process$/, result.err)
    refute_match(/^wrote /, result.err)
    assert_equal 'older', File.read(path('out.svg'))
  end

  def test_every_format
    refused = Rbpf.run('export', '-f', 'no-such-format', '-i', @recording.file)
    assert_equal 2, refused.code
    formats = refused.err[/takes one of (.*)/, 1].split(', ')
    assert_includes formats, 'folded'
    formats.each do |format|
      refute_empty Rbpf.read('export', '-f', format, '-i', @recording.file), format
    end
  end

  def test_filters
    names = @recording.samples.map(&:thread)
    name = names.uniq.find { |thread| names.count(thread) < names.size }
    refute_nil name, 'a thread of several'
    assert_equal names.count(name), samples_shown('--thread', "^#{Regexp.escape(name)}$")
    heavy = @recording.samples_with('Burner#heavy').size
    assert_includes 1...names.size, heavy
    assert_equal heavy, samples_shown('--include', '^Burner#heavy$')
    assert_equal names.size - heavy, samples_shown('--exclude', '^Burner#heavy$')
  end

  private

  def samples_shown(*options)
    @recording.rows(*options).sum { |row| row['samples'] }
  end

  def with_commas(number)
    number.to_s.reverse.scan(/\d{1,3}/).join(',').reverse
  end

  # Debian's ruby brings REXML along.
  def well_formed(xml)
    require 'rexml/document'
    assert REXML::Document.new(xml).root
  rescue LoadError
    missing 'REXML (Debian package ruby-rexml)'
  end
end
