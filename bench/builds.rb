# SPDX-License-Identifier: GPL-2.0-only
# frozen_string_literal: true

# What several builds of rbpf cost, measured in turns.
#
#   BUILDS=FILE[:FILE...] TURNS=3 ruby bench/builds.rb

require 'tmpdir'

require_relative 'real_program'
require_relative 'synthetic'

top = File.expand_path('..', __dir__)
builds = ENV.fetch('BUILDS', File.join(top, 'rbpf')).split(':')
idle = File.join(top, 'build/bench/idle_cost')
turns = Integer(ENV.fetch('TURNS', '3'))
Dir.mktmpdir('rbpf-bench') do |dir|
  Synthetic.new(builds, idle, dir).run(turns)
  RealProgram.new(builds, idle, dir).run(turns)
end
