#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# Sourced by the tests that need a browser, in the top directory: sets $out, where they leave files, and what
# their programs for Node find in the environment, and installs what these import. Ends with 77 if something is missing.
# shellcheck disable=SC2034 # $out is for who sources this
out=$PWD/build/validate
mkdir -p "$out"

for tool in node npm; do
	command -v $tool > /dev/null || { echo "${0##*/}: skipped: no $tool"; exit 77; }
done
CHROMIUM=${CHROMIUM:-$(command -v chromium || command -v chromium-browser || true)}
[ -n "$CHROMIUM" ] || { echo "${0##*/}: skipped: no chromium"; exit 77; }
export CHROMIUM NODE_MODULES="$out" RBPF="${RBPF:-$PWD/rbpf}"

# install DIRECTORY PACKAGE...: from the npm registry, unless they are there. Tests run side by side.
install() {
	into=$1
	shift
	mkdir -p "$into"
	(
		flock 9
		for package; do
			[ -d "$into/node_modules/${package%@*}" ] && continue
			npm install --prefix "$into" --no-save --no-audit --no-fund --silent "$@"
			exit
		done
	) 9> "$into/lock"
}

# The last ones for the Node of Debian 12, which is 18.
install "$out" playwright-core@1.58 speedscope@1.25.0 ajv@8.17.1 ||
	{ echo "${0##*/}: skipped: cannot install what it needs from the npm registry"; exit 77; }
