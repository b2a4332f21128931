#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# The layers of src/: who may include whom, and what only src/cmd/ may call. See `allowed` below.
#
# usage: includes.sh [ROOT]     prints file:line: message for each violation, then exits 1
set -eu
cd "${1:-$(dirname "$0")/../..}"

# shellcheck disable=SC2016 # awk's own $0
find src include -name '*.[ch]' 2>/dev/null | LC_ALL=C sort | xargs -r awk '
BEGIN {
	layers = "base target elf worker request ruby symbol engine native sample profile view page export ui report top dump serve cmd"
	n_layers = split(layers, name, " ")
	for (i = 1; i <= n_layers; i++)
		is_layer[name[i]] = 1

	# A layer may always include itself and the headers of include/.
	allowed["base"] = ""
	allowed["target"] = "base"
	allowed["elf"] = "base"
	allowed["worker"] = "base target elf"
	allowed["request"] = "base"
	allowed["ruby"] = "base target elf worker"
	allowed["symbol"] = "base target elf worker request ruby profile"
	allowed["engine"] = "base target profile"
	allowed["native"] = "base target elf worker ruby profile symbol engine"
	allowed["sample"] = "base target elf worker request ruby profile symbol engine native"
	allowed["profile"] = "base"
	allowed["view"] = "base profile"
	allowed["page"] = "base"
	allowed["export"] = "base profile view page"
	allowed["ui"] = "base profile view"
	allowed["report"] = "base profile view ui"
	allowed["top"] = "base profile view ui"
	allowed["dump"] = "base target worker request ruby profile symbol engine native view"
	allowed["serve"] = "base worker page"
	allowed["cmd"] = layers
	# Debug files lie in the root of a target: the ELF layer opens them as such, and knows no more of it.
	header_allowed["elf", "target/target_file.h"] = 1
	allowed["include"] = ""

	# Everywhere: the strict parsers of base/parse.h are the only ones.
	parsers = "(strto(l|ll|ul|ull|imax|umax)|ato(i|l|ll|f))"
	# Below cmd: nothing prints to the terminal, nothing ends the process.
	calls = "(v?printf|puts|putchar|perror|psignal|exit|quick_exit|abort)"
	streams = "(stdout|stderr)"
	before = "(^|[^A-Za-z0-9_.>])"
	failures = 0
}

function complain(message) {
	printf "%s:%d: %s\n", FILENAME, FNR, message
	failures++
}

# The word that @pattern finds in @line, without what surrounds it.
function found(line, pattern) {
	if (!match(line, pattern))
		return ""
	line = substr(line, RSTART, RLENGTH)
	gsub(/[^A-Za-z0-9_]/, "", line)
	return line
}

# The line without comments and with empty strings; in_comment goes on from line to line.
function code_of(line,    out, c, two, quote) {
	out = ""
	quote = ""
	while (line != "") {
		c = substr(line, 1, 1)
		two = substr(line, 1, 2)
		if (in_comment) {
			if (two == "*/") {
				in_comment = 0
				c = two
			}
		} else if (quote != "") {
			if (c == "\\")
				c = two
			else if (c == quote) {
				out = out c
				quote = ""
			}
		} else if (two == "/*") {
			in_comment = 1
			out = out " "
			c = two
		} else if (two == "//") {
			return out
		} else {
			if (c == "\"" || c == "\047")
				quote = c
			out = out c
		}
		line = substr(line, length(c) + 1)
	}
	return out
}

function check_include(line,    target, part, system_header, i, is_libbpf, ok, list, n) {
	target = line
	sub(/^[ \t]*#[ \t]*include[ \t]*/, "", target)
	system_header = target ~ /^</
	if (target !~ /^[<"][^>"]+[>"]/) {
		complain("an include that this lint cannot read")
		return
	}
	target = substr(target, 2)
	sub(/[>"].*/, "", target)

	is_libbpf = (system_header && target ~ /^bpf\//) || target ~ /^bpf\/(lib)?bpf\.h$/
	if ((is_libbpf || target ~ /\.skel\.h$/) && layer != "engine")
		complain("only src/engine/ may include " target)
	if (system_header)
		return
	# The walkers of bpf/ also compile on the host; they are the one thing outside of the tree.
	if (target ~ /^(\.\.\/\.\.\/)?bpf\/[a-z_]+\.bpf\.h$/)
		return
	if (target ~ /(^|\/)\.\.?\//) {
		complain("include " target " by its path below src/")
		return
	}
	split(target, part, "/")
	if (target !~ /\// || !is_layer[part[1]] || part[1] == layer)
		return
	if ((layer, target) in header_allowed)
		return
	ok = 0
	n = split(allowed[layer], list, " ")
	for (i = 1; i <= n; i++)
		ok = ok || list[i] == part[1]
	if (!ok)
		complain((layer == "include" ? "include/" : "src/" layer "/") \
			 " may not include " target)
}

FNR == 1 {
	in_comment = 0
	split(FILENAME, path, "/")
	layer = path[1] == "include" ? "include" : path[2]
	if (!(layer in allowed))
		complain("src/" layer " is no known layer: give it a place in tests/lint/includes.sh")
}

{
	is_include = !in_comment && $0 ~ /^[ \t]*#[ \t]*include/
	if (is_include)
		check_include($0)
	code = code_of($0)
	if (is_include)
		next
	word = found(code, before parsers "[ \t]*\\(")
	if (word != "")
		complain(word "() is not strict: use base/parse.h")
	if (layer == "cmd")
		next
	word = found(code, before calls "[ \t]*\\(")
	if (word != "")
		complain(word "() below src/cmd/: return an error instead")
	word = found(code, before streams "([^A-Za-z0-9_]|$)")
	if (word != "")
		complain(word " below src/cmd/: write to a stream or buf that the caller gives")
}

END { exit failures != 0 }
' || exit 1 # xargs says 123
