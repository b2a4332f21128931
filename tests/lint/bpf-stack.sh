#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# bpf-stack.sh [OBJECT]: no chain of calls in the BPF programs is deeper than 8 functions, or takes more
# than 512 bytes of stack, of which each function has a multiple of 32. Kernels from 6.13 on, on some
# machines, give a function a stack of its own and don't refuse what older ones do
# (check_max_stack_depth() in kernel/bpf/verifier.c).
set -eu
object=${1:-${BPF_OBJECT:-build/rbpf.bpf.o}}
objdump=${LLVM_OBJDUMP:-llvm-objdump}
[ -e "$object" ] || {
	echo "$object: there is none; run make"
	exit 1
}
"$objdump" -d -r --no-show-raw-insn --print-imm-hex=false "$object" | awk -v object="$object" '
	function use(bytes) { if (bytes > stack[name]) stack[name] = bytes }

	# "0000000000000000 <tick>:", and of a jump "<LBB3_7>:".
	/^[0-9a-f]+ <.*>:$/ && $2 !~ /^<LBB/ {
		name = substr($2, 2, length($2) - 3)
		stack[name] += 0
		functions++
	}
	match($0, /\(r10 - [0-9]+\)/) { use(substr($0, RSTART + 7, RLENGTH - 8) + 0) }
	# "r2 = r10", and within a few lines "r2 += -8".
	/ r[0-9] = r10$/ { pointer[$(NF - 2)] = NR }
	/ r[0-9] \+= -[0-9]+$/ && NR - pointer[$(NF - 2)] < 8 { use(-$NF) }
	/R_BPF_64_32/ { callees[name] = callees[name] " " $NF }

	# The chain below @f that is worst: bytes in worst[], functions in depth[].
	function look(f,    i, n, list, of) {
		if (f in worst)
			return
		n = split(callees[f], list, " ")
		for (i = 1; i <= n; i++) {
			look(list[i])
			if (worst[list[i]] > worst[f]) {
				worst[f] = worst[list[i]]
				of = list[i]
			}
			if (depth[list[i]] > depth[f])
				depth[f] = depth[list[i]]
		}
		bytes = stack[f] > 0 ? int((stack[f] + 31) / 32) * 32 : 32
		worst[f] += bytes
		depth[f]++
		chain[f] = f " " bytes (of ? ", " chain[of] : "")
	}

	END {
		for (f in stack) {
			look(f)
			if (worst[f] > 512)
				bad = bad sprintf("%s: %s: %d bytes of stack: %s\n", object, f, worst[f], chain[f])
			if (depth[f] > 8)
				bad = bad sprintf("%s: %s: %d functions deep\n", object, f, depth[f])
		}
		if (!functions)
			bad = object ": no functions found\n"
		printf "%s", bad
		exit bad != ""
	}'
