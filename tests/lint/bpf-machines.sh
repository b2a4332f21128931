#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# bpf-machines.sh: the BPF programs build for each machine that rbpf supports, and keep to the limits of
# bpf-stack.sh there. make builds them for one machine only.
set -eu
cd "$(dirname "$0")/../.."
[ -n "${BPFFLAGS-}" ] || {
	echo "bpf-machines.sh: run it by make lint, which sets BPFFLAGS"
	exit 1
}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
status=0
for machine in x86 arm64; do
	# shellcheck disable=SC2086 # a list of flags
	if "${CLANG:-clang}" $BPFFLAGS -D__TARGET_ARCH_$machine -MF /dev/null -c -o "$dir/$machine.bpf.o" bpf/rbpf.bpf.c; then
		tests/lint/bpf-stack.sh "$dir/$machine.bpf.o" || status=1
	else
		echo "bpf/rbpf.bpf.c: does not build for $machine"
		status=1
	fi
done
exit $status
