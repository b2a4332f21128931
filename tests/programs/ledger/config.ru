# SPDX-License-Identifier: GPL-2.0-only
# frozen_string_literal: true

# A Rack application with a database in a file behind it: one request books an entry, which SQLite
# writes and syncs, the other adds up an account, which it reads. LEDGER names the file.

require 'sinatra/base'
require 'sqlite3'

# One connection a thread.
class Ledger
  ACCOUNTS = 50

  def self.current
    Thread.current[:ledger] ||= new(ENV.fetch('LEDGER'))
  end

  def initialize(file)
    @db = SQLite3::Database.new(file)
    @db.busy_timeout = 10_000
    @db.execute('PRAGMA cache_size = 10') # pages: most reads go to the file
    @db.execute('CREATE TABLE IF NOT EXISTS entries (account INTEGER, amount INTEGER, note TEXT)')
  end

  def book(account, amount)
    @db.execute('INSERT INTO entries VALUES (?, ?, ?)', [account, amount, 'x' * 200])
  end

  def balance(account)
    @db.get_first_value('SELECT SUM(amount) FROM entries WHERE account = ?', [account]).to_i
  end
end

class Books < Sinatra::Base
  post('/entries') do
    Ledger.current.book(params['account'].to_i, 1)
    204
  end

  get('/accounts/:account') { Ledger.current.balance(params['account'].to_i).to_s }
end

run Books
