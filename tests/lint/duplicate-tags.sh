#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# One name for one thing: no two structs, unions or enums of src/, include/ and bpf/ have the same name, and
# no two enumerators, even if no file sees both. A reader, a debugger and a search find the right one
# then, and a header can come to include another. The headers of tests/support/ are looked at in the
# same way, apart from those.
#
# usage: duplicate-tags.sh [ROOT]     prints file:line: message for each violation, then exits 1
set -eu
cd "${1:-$(dirname "$0")/../..}"

# check DIRECTORY...
check() {
	# shellcheck disable=SC2016 # awk's own $0
	find "$@" -name '*.[ch]' 2>/dev/null | LC_ALL=C sort | xargs -r awk '
# The line without comments, strings and characters; in_comment goes on from line to line.
function code_of(line,    out, rest) {
	out = ""
	while (line != "") {
		if (in_comment) {
			if (!match(line, /\*\//))
				return out
			line = substr(line, RSTART + 2)
			in_comment = 0
			continue
		}
		if (!match(line, /\/\*|\/\/|"([^"\\]|\\.)*"|\047([^\047\\]|\\.)*\047/))
			return out line
		out = out substr(line, 1, RSTART - 1) " "
		rest = substr(line, RSTART, 2)
		if (rest == "//")
			return out
		in_comment = rest == "/*"
		line = substr(line, RSTART + RLENGTH)
	}
	return out
}

function defined(kind, name, line,    key) {
	key = (kind == "enumerator" ? "e " : "t ") name
	if (key in first) {
		printf "%s:%d: %s %s: another is in %s\n", FILENAME, line, kind, name, first[key]
		failures++
	} else {
		first[key] = FILENAME ":" line
	}
}

# In the body of an enum: a name where one is expected is an enumerator, unless it is a macro that
# makes several, which may be followed by another name without a comma.
function enum_token(token) {
	if (macro_depth || token == "(" && candidate != "") {
		candidate = ""
		macro_depth += (token == "(") - (token == ")")
		return
	}
	if (candidate != "" && !depth)
		defined("enumerator", candidate, named_at)
	candidate = ""
	if (token == "}" && !depth) {
		in_enum = 0
	} else if (token ~ /^[({[]$/) {
		depth++
	} else if (token ~ /^[]})]$/) {
		depth--
	} else if (token == "," && !depth) {
		expected = 1
	} else if (token == "=") {
		expected = 0
	} else if (expected && token ~ /^[A-Za-z_]/) {
		candidate = token
		named_at = FNR
	}
}

function tag_token(token) {
	if (token == "{" && kind != "") {
		if (name != "")
			defined(kind, name, named_at)
		if (kind == "enum") {
			in_enum = expected = 1
			depth = macro_depth = 0
			candidate = ""
		}
	}
	if (token ~ /^(struct|union|enum)$/) {
		kind = token
		name = ""
	} else if (kind != "" && name == "" && token ~ /^[A-Za-z_]/) {
		name = token
		named_at = FNR
	} else {
		kind = name = ""
	}
}

FNR == 1 {
	in_comment = in_enum = continued = 0
	kind = name = ""
}

{
	code = code_of($0)
	directive = continued || code ~ /^[ \t]*#/
	continued = directive && code ~ /\\$/
	if (directive)
		next
	while (match(code, /[A-Za-z_][A-Za-z_0-9]*|[^ \tA-Za-z_]/)) {
		token = substr(code, RSTART, RLENGTH)
		code = substr(code, RSTART + RLENGTH)
		if (in_enum)
			enum_token(token)
		else
			tag_token(token)
	}
}

END { exit failures != 0 }
'
}

status=0
check src include bpf || status=1
check tests/support || status=1
exit $status
