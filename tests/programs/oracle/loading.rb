# SPDX-License-Identifier: GPL-2.0-only
# frozen_string_literal: true

# Files that stop while they are loaded, and the bodies of classes and modules.

module Oracle
  FIXTURES = File.join(__dir__, 'fixtures')
  private_constant :FIXTURES

  autoload :Autoloaded, File.join(FIXTURES, 'autoloaded.rb')

  scenario(:require) { require File.join(FIXTURES, 'required.rb') }
  scenario(:require_relative) { require_relative 'fixtures/required_relative' }
  scenario(:require_nested) { require_relative 'fixtures/requires_another' }
  scenario(:load) { load File.join(FIXTURES, 'loaded.rb') }
  scenario(:load_wrapped) { load File.join(FIXTURES, 'loaded.rb'), true }
  scenario(:autoload) { Autoloaded }
  scenario(:class_body) { load File.join(FIXTURES, 'class_body.rb') }
  scenario(:class_body_nested) { load File.join(FIXTURES, 'class_body_nested.rb') }
  scenario(:class_body_singleton) { load File.join(FIXTURES, 'class_body_singleton.rb') }
  scenario(:class_body_reopened) { load File.join(FIXTURES, 'class_body_reopened.rb') }
  scenario(:class_body_calls) { load File.join(FIXTURES, 'class_body_calls.rb') }
  scenario(:rescue_in_file) { load File.join(FIXTURES, 'rescues.rb') }
end
