#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only
#
# limits.sh PID: end the tests that make no progress any more. Each child of a child of process PID is a test,
# as Criterion's runner has them, together with the processes that it has started. It is killed when
#
#   RBPF_TEST_ASLEEP    seconds (60) have passed in which all of its processes slept, in all its life
#   RBPF_TEST_CPU       seconds (600) of CPU time have been used by its processes
#
# A limit by the clock on the wall would be reached by tests that have nothing wrong, on a machine whose CPUs
# others use: who waits for a CPU does not sleep here. What the kernel adds up of that (schedstat) it adds when
# the wait ends; before that the thread's state tells.
#
# Runs until PID ends or it is killed.
set -uo pipefail
parent=$1
asleep_limit=$((${RBPF_TEST_ASLEEP:-60} * 1000000))
cpu_limit=$((${RBPF_TEST_CPU:-600} * 1000000))

declare -A awake cpu    # by thread: us until the last look
declare -A asleep used  # by test: us so far
declare -A began        # by test: when it began, for a pid may be another process' later

# children PID...: the pids of their children, in the array "below".
children() {
	local file pid
	below=()
	for pid in "$@"; do
		for file in /proc/"$pid"/task/*/children; do
			{ read -r -a found <"$file"; } 2>/dev/null
			below+=(${found[@]+"${found[@]}"})
			found=()
		done
	done
}

# tree PID: it and all below it, in the array "all".
tree() {
	all=("$1")
	below=("$1")
	while children "${below[@]}" && [ ${#below[@]} != 0 ]; do
		all+=("${below[@]}")
	done
}

# The state and the time of the beginning from the "stat" of a process or thread, in "state" and "start".
read_stat() {
	local line rest
	state='' start=''
	{ read -r line <"$1/stat"; } 2>/dev/null || return
	read -r -a rest <<<"${line##*) }"
	state=${rest[0]-}
	start=${rest[19]-}
}

# look TEST US: US have passed since the last look at it.
look() {
	local pid dir key runs waits runnable=0 d_awake=0 d_cpu=0
	tree "$1"
	for pid in "${all[@]}"; do
		for dir in /proc/"$pid"/task/*; do
			{ read -r runs waits _ <"$dir/schedstat"; } 2>/dev/null || continue
			read_stat "$dir"
			[ "$state" != R ] || runnable=1
			key=$dir.$start
			d_awake=$((d_awake + (runs + waits) / 1000 - ${awake[$key]:-0}))
			d_cpu=$((d_cpu + runs / 1000 - ${cpu[$key]:-0}))
			awake[$key]=$(((runs + waits) / 1000))
			cpu[$key]=$((runs / 1000))
		done
	done
	used[$1]=$((${used[$1]:-0} + d_cpu))
	[ $runnable = 1 ] || [ $d_awake -ge "$2" ] || asleep[$1]=$((${asleep[$1]:-0} + $2 - d_awake))
}

# end TEST WHY: the test comes last, for with it the runner may end, and this script with that.
end() {
	local i
	echo "limits.sh: a test is ended (pid $1): $2" >&2
	tree "$1"
	kill -STOP "$1" 2>/dev/null
	for ((i = ${#all[@]}; i-- > 0; )); do
		kill -KILL "${all[i]}" 2>/dev/null
	done
}

last=${EPOCHREALTIME/[.,]/}
while sleep 1 >/dev/null 2>&1 && [ -d "/proc/$parent" ]; do
	now=${EPOCHREALTIME/[.,]/}
	children "$parent"
	children ${below[@]+"${below[@]}"}
	tests=(${below[@]+"${below[@]}"})
	for test in ${tests[@]+"${tests[@]}"}; do
		read_stat "/proc/$test"
		if [ "${began[$test]-}" != "$start" ]; then
			began[$test]=$start
			asleep[$test]=0 used[$test]=0
		fi
		look "$test" $((now - last))
		if [ "${asleep[$test]}" -gt $asleep_limit ]; then
			end "$test" "its processes have slept for $((asleep_limit / 1000000)) s"
		elif [ "${used[$test]}" -gt $cpu_limit ]; then
			end "$test" "its processes have used $((cpu_limit / 1000000)) s of CPU time"
		fi
	done
	last=$now
done
