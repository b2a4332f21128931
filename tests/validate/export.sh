#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# Exports as their real consumers read them: each gives back the samples and times of `rbpf report`.
# Needs Node; fetches what it needs of the npm registry into build/validate/ the first time.
#
# usage: export.sh [RECORDING]...    without any: those of export_sample, which EXPORT_SAMPLE names
#        ONLY=pprof export.sh …      one format
#
# RBPF names the program, ./rbpf if unset. Prints "N passed, N failed" and what was skipped. Exit
# status 77: something that it needs is missing.
set -eu
cd "$(dirname "$0")/../.."
# shellcheck source=tests/validate/browser.sh
. tests/validate/browser.sh

# The Firefox Profiler needs a Node of its own, which is kept apart so that all else uses the system's.
export FIREFOX_NODE="$out/firefox"
install "$FIREFOX_NODE" @firefox-devtools/profiler-cli@0.10.0 node@24.9.0 || rm -rf "$FIREFOX_NODE"

if [ $# -eq 0 ]; then
	for recording in awkward merged random gc states; do
		"$EXPORT_SAMPLE" $recording "$out/$recording.data"
		set -- "$@" "$out/$recording.data"
	done
fi
exec node tests/validate/export.mjs "$@"
