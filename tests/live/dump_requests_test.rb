# SPDX-License-Identifier: GPL-2.0-only
# frozen_string_literal: true

# Which request dump says that a thread serves.

require_relative 'support'

class DumpRequestsTest < LiveTest
  UNKNOWN = '[unknown request]'
  DUMPS = 12

  # The method by which a request of tests/programs/requests/like.rb works, where that tells which one it is.
  NAMES = {
    'OrdersController#index' => 'OrdersController#index', 'OrdersController#show' => 'OrdersController#show',
    'UserMailer#welcome' => 'UserMailer#welcome', 'ChatChannel#speak' => 'ChatChannel#speak',
    'InboxMailbox#process' => 'InboxMailbox', 'MailJob#perform' => 'MailJob',
    'ThumbnailWorker#perform' => 'ThumbnailWorker', 'Delayable#perform' => 'Delayable',
    'ShowBook#handle' => 'ShowBook', 'Tree#route' => 'Tree', 'OrderTest#test_it' => 'OrderTest',
    'PumaServer#app' => 'Puma request', 'UnicornServer#app' => 'Unicorn request',
    'InlineController#create' => 'InlineController#create', 'ArchiveJob.perform' => 'ArchiveJob'
  }.freeze

  def test_threads_that_stay_where_they_are
    target = start('requests/parked.rb')
    right = target.wait_for('threads')['threads'].transform_keys(&:to_i)
    said = requests(target)
    assert_equal right, said.slice(*right.keys)
    assert_empty said.except(*right.keys).values.compact
    assert_empty requests(target, '--no-requests').values.compact
    text = Rbpf.read('dump', '-p', target.pid)
    assert_equal right.values.compact.sort, text.scan(/^ {4}in request (.*)$/).flatten.sort
  end

  # One that goes on is unknown rather than wrong.
  def test_threads_that_go_on
    target = start('requests/like.rb', 60)
    target.wait_for('waiting')
    target.go
    sleep 1
    seen = Array.new(DUMPS) { Rbpf.dump(target.pid)['threads'] }.flatten.filter_map do |thread|
      label = thread['frames'].map { |frame| frame['label'] }.find { |text| NAMES.key?(text) }
      [NAMES[label], thread['request']] if label
    end
    other = seen.reject { |right, said| right == said }
    assert_operator seen.size, :>, DUMPS / 2
    assert_empty(other.reject { |_, said| said == UNKNOWN || said&.end_with?('#[unknown]') })
    assert_operator other.size, :<=, seen.size / 3, other.inspect
  end

  private

  def requests(target, *options)
    Rbpf.json('dump', '-p', target.pid, '--json', *options)['threads'].to_h { |thread| thread.values_at('tid', 'request') }
  end
end
