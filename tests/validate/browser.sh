#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# Sourced by the tests that need a browser, in the top directory: sets $out, where they leave files, and what
# their programs for Node find in the environment. Ends with 77 if something is missing.
# shellcheck disable=SC2034 # $out is for who sources this
out=$PWD/build/validate
mkdir -p "$out"

# 1.58 is the last one for the Node of Debian 12, which is 18.
playwright=1.58

for tool in node npm; do
	command -v $tool > /dev/null || { echo "${0##*/}: skipped: no $tool"; exit 77; }
done
CHROMIUM=${CHROMIUM:-$(command -v chromium || command -v chromium-browser || true)}
[ -n "$CHROMIUM" ] || { echo "${0##*/}: skipped: no chromium"; exit 77; }
export CHROMIUM NODE_MODULES="$out" RBPF="${RBPF:-$PWD/rbpf}"

if [ ! -d "$out/node_modules/playwright-core" ]; then
	npm install --prefix "$out" --no-save --no-audit --no-fund --silent "playwright-core@$playwright" ||
		{ echo "${0##*/}: skipped: cannot install playwright-core"; exit 77; }
fi
