# SPDX-License-Identifier: GPL-2.0-only
# frozen_string_literal: true

# Recordings with native stacks, read back with all their frames, those that are internal too.

require_relative 'support'

MergedFrame = Struct.new(:kind, :label, :path, :line, :module, :address, :internal, :jit) do
  def ruby?
    %w[ruby cfunc unknown truncated].include?(kind)
  end

  def native?
    kind == 'native'
  end

  # Whether it is of the file of that name, with any version.
  def of?(name)
    native? && File.basename(self.module.to_s).start_with?(name)
  end

  # Whether no symbol gave it its name.
  def nameless?
    !label.match?(/\A[[:alpha:]_][\w.:@~$<>(), *&]*\z/)
  end

  # What is shown where there should be something else.
  def missing?
    %w[gap unknown truncated].include?(kind)
  end

  # As short as in a message of a failed test.
  def to_s
    file = self.module && File.basename(self.module)
    native? ? "#{label} [#{file}]#{' internal' if internal}" : "#{kind} #{label}"
  end
end

class MergedRecording < Recording
  def frames
    @frames ||= json['frames'].map do |f|
      MergedFrame.new(f['kind'], f['label'] || f['name'], f['path'].to_s, f['line'].to_i,
                     path_of(f['module']), f['address'], f['internal'] || false, f['jit'])
    end
  end

  # The samples that have code of a JIT compiler on their stack.
  def compiled
    samples.select { |sample| sample.frames.any?(&:jit) }
  end

  def json
    @json ||= Rbpf.json('export', '-f', 'json', '--stack', 'all', '-i', file)
  end

  private

  def path_of(of)
    of.is_a?(Integer) ? json['modules'][of]['path'] : of
  end
end

class MergedTest < LiveTest
  def recording
    @recording ||= MergedRecording.new(path('rbpf.data'))
  end

  private

  # The fibers of a sample, the running one first, each with its outermost frame first.
  def fibers_of(sample)
    parts = [[]]
    sample.frames.each { |f| f.kind == 'fiber' ? parts << [] : parts.last << f }
    parts.map(&:reverse)
  end

  # Outermost frame first.
  def shown(frames)
    frames.join(' > ')
  end
end
