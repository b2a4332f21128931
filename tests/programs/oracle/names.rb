# SPDX-License-Identifier: GPL-2.0-only
# frozen_string_literal: true

# Names that are long, odd, or not ASCII.

class Ünïcödé
  def größe
    [1].each { 日本 }
  end

  def 日本
    Oracle.checkpoint
  end

  def self.œuvre
    new.größe
  end

  class Ñandú
    def correr!
      Oracle.checkpoint
    end
  end

  def emoji_🦄
    Oracle.checkpoint
  end
end

class OddNames
  define_method(:'a name; with <odd> & "quoted" characters') { Oracle.checkpoint }
  define_method(:'') { Oracle.checkpoint }
  define_method(:"tab\tand\\backslash") { Oracle.checkpoint }

  LONG = :"long#{'_long' * 100}"
  class_eval "def #{LONG}\n  [1].each { Oracle.checkpoint }\nend", 'long_name.rb', 1
  define_method(:'Foo#bar') { Oracle.checkpoint }

  class_eval "def odd_method_#{'é' * 60}\n  Oracle.checkpoint\nend", 'long_utf8.rb', 1

  def Capital
    Oracle.checkpoint
  end

  def end
    Oracle.checkpoint
  end

  def _
    Oracle.checkpoint
  end
end

class ThisIsAClassWithAVeryLongNameThatGoesOnAndOnAndOnUntilItDoesNotFitIntoAnyReasonableBufferForNames
  module AndAModuleInsideOfItThatIsJustAsLongSoThatTheWholePathIsEvenLongerThanBothOfThemWouldBeAlone
    class X
      def x
        Oracle.checkpoint
      end
    end
  end
end

module Oracle
  scenario(:unicode) { Ünïcödé.œuvre }
  scenario(:unicode_nested_class) { Ünïcödé::Ñandú.new.correr! }
  scenario(:unicode_emoji) { Ünïcödé.new.emoji_🦄 }
  scenario(:unicode_60) { OddNames.new.public_send("odd_method_#{'é' * 60}") }
  scenario(:odd_characters) do
    OddNames.new.public_send(:'a name; with <odd> & "quoted" characters')
  end
  scenario(:odd_empty) { OddNames.new.public_send(:'') }
  scenario(:odd_tab) { OddNames.new.public_send(:"tab\tand\\backslash") }
  scenario(:odd_like_a_label) { OddNames.new.public_send(:'Foo#bar') }
  scenario(:long_method_name) { OddNames.new.public_send(OddNames::LONG) }
  scenario(:long_class_name) do
    ThisIsAClassWithAVeryLongNameThatGoesOnAndOnAndOnUntilItDoesNotFitIntoAnyReasonableBufferForNames::
      AndAModuleInsideOfItThatIsJustAsLongSoThatTheWholePathIsEvenLongerThanBothOfThemWouldBeAlone::
      X.new.x
  end
  scenario(:capital_method) { OddNames.new.Capital }
  scenario(:keyword_method) { OddNames.new.end }
  scenario(:underscore_method) { OddNames.new._ }
end
