#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# parts.sh LANES MAKE TARGET...: make the targets, up to LANES of them at once, also after one that failed, and
# say at the end how long each took. What a target prints comes in one piece when it has ended. Ends with 1 if
# one failed.
set -uo pipefail
lanes=$1 make=$2 failed=0 lines=
shift 2
dir=$(mktemp -d) || exit 1
trap 'rm -rf "$dir"' EXIT
declare -A name=() begin=()

# The next target that ends: what it printed, and its line of the table.
ended() {
	local pid status=ok
	wait -n -p pid "${!name[@]}" || {
		status=FAILED
		failed=1
	}
	cat "$dir/${name[$pid]}"
	lines+=$(printf '%-24s %5d s  %s' "${name[$pid]}" $((SECONDS - begin[$pid])) $status)$'\n'
	unset "name[$pid]"
}

for target in "$@"; do
	[ ${#name[@]} -lt "$lanes" ] || ended
	echo "== $target begins"
	# A background job of a shell ignores SIGINT, and so would all that make starts; but tests and the benchmark
	# end an rbpf by SIGINT, and one that was started so goes on.
	env --default-signal "$make" --no-print-directory "$target" >"$dir/$target" 2>&1 &
	name[$!]=$target
	begin[$!]=$SECONDS
done
while [ ${#name[@]} != 0 ]; do ended; done
printf '%s' "$lines"
exit $failed
