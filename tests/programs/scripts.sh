#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# Executes Ruby scripts from a program that is no Ruby, two at a time, once a line comes on standard
# input; ends when another comes. Prints what comings.rb does, but for "cpu".
#
# usage: scripts.sh N SECONDS RUBY [ARG...]
count=$1
seconds=$2
shift 2
script='
class Comings
  def self.cpu
    Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID)
  end

  def self.child
    life = Float(ARGV[0])
    own = cpu + (life / 2)
    nil while cpu < life || cpu < own
  end
end
Comings.child
'
echo "{\"waiting\":true,\"pid\":$$}"
read -r _
pids=
before=
while [ "$count" -gt 0 ]; do
	"$@" --disable-gems -e "$script" "$seconds" < /dev/null &
	[ -z "$before" ] || wait "$before"
	before=$!
	pids="${pids:+$pids,}$before"
	count=$((count - 1))
done
wait
echo "{\"ready\":true,\"pids\":[$pids]}"
read -r _
