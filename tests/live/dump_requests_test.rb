# SPDX-License-Identifier: GPL-2.0-only
# frozen_string_literal: true

# Which request dump says that a thread serves.

require_relative 'support'

class DumpRequestsTest < LiveTest
  UNKNOWN = '[unknown request]'
  # At least so many, and more if too few meet a thread in a request.
  DUMPS = 6
  MOST_DUMPS = 30

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
    paths = right.transform_values { |name| name == 'Puma request' ? 'GET /orders/:id' : name }
    assert_equal paths, requests(target, '--request-paths').slice(*right.keys)
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
    seen = dumps(target, NAMES)
    assert_operator seen.size, :>, DUMPS / 2
    assert_operator seen.count { |right, said| right != said }, :<=, seen.size / 3, seen.inspect
  end

  # While it is read, another one begins.
  def test_requests_that_change_while_they_are_read
    target = start('requests/quick.rb')
    target.wait_for('ready')
    names = %w[OrdersController#index UsersController#index].to_h { |name| [name, name] }
    assert_operator dumps(target, names).size, :>, DUMPS / 2
  end

  private

  # Which request each thread was in by the innermost method that tells it, and which one rbpf says: that, or that it is
  # unknown.
  def dumps(target, names)
    seen = []
    MOST_DUMPS.times do |i|
      break if i >= DUMPS && seen.size > DUMPS / 2

      seen.concat(Rbpf.dump(target.pid)['threads'].filter_map { |thread| in_request(thread, names) })
    end
    wrong = seen.reject { |right, said| [right, UNKNOWN].include?(said) || said&.end_with?('#[unknown]') }
    assert_empty wrong
    seen
  end

  def in_request(thread, names)
    label = thread['frames'].map { |frame| frame['label'] }.find { |text| names.key?(text) }
    [names[label], thread['request']] if label
  end

  def requests(target, *options)
    Rbpf.json('dump', '-p', target.pid, '--json', *options)['threads'].to_h { |thread| thread.values_at('tid', 'request') }
  end
end
