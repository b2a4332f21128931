#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# The man pages against the tables of options (rbpf __options): each option of each command is
# described in its page, with the same letter, the same name of the value and its default; nothing
# is described that does not exist; and the command lines in examples, here and in README.md, would
# be accepted.
#
# usage: options-documented.sh      RBPF names the program, ./rbpf if unset
set -eu
cd "$(dirname "$0")/../.."
rbpf=${RBPF:-./rbpf}
if [ ! -x "$rbpf" ]; then
	echo "tests/lint/options-documented.sh: skipped: there is no $rbpf (make)"
	exit 0
fi

failed=0
for page in man/rbpf-*.1; do
	name=${page#man/rbpf-}
	if ! "$rbpf" help "${name%.1}" > /dev/null 2>&1; then
		echo "$page: there is no command ${name%.1}"
		failed=1
	fi
done
# The lines of commands in the overview: two blanks, the name, what it does.
for name in $("$rbpf" help | sed -n '/^Commands:/,/^$/s/^  \([a-z]*\) .*/\1/p'); do
	[ "$name" = help ] && continue # described in rbpf.1
	if [ ! -e "man/rbpf-$name.1" ]; then
		echo "man/rbpf-$name.1: missing"
		failed=1
	fi
done

readme=
[ ! -e README.md ] || readme=README.md
# shellcheck disable=SC2016 # awk's own $0
"$rbpf" __options | LC_ALL=C awk '
function complain(message) {
	print where ": " message
	failures++
}

# Whether @option ("-x" or "--name") may be given to @command.
function exists(command, option) {
	return (command, option) in table || ("rbpf", option) in table
}

# Read the options of an .It or a text line: fills got_letter, got_name[], got_arg; returns how many names.
function read_options(line,    token, n, i, count) {
	count = 0
	got_letter = "-"
	got_arg = "-"
	n = split(line, token, /[ \t]+/)
	for (i = 1; i <= n; i++) {
		if (token[i] == "Fl" && i < n && token[i + 1] ~ /^-./)
			got_name[++count] = "-" token[i + 1]
		else if (token[i] == "Fl" && i < n && token[i + 1] ~ /^[A-Za-z]$/)
			got_letter = "-" token[i + 1]
		else if (token[i] == "Ar" && i < n && got_arg == "-")
			got_arg = token[i + 1]
	}
	return count
}

# The options of a command line such as "sudo rbpf record -p 42 -- ruby -w x.rb".
function check_line(line,    token, n, i, command, option) {
	if (!match(line, /(^|[ \/`$(])rbpf [^`]*/))
		return
	line = substr(line, RSTART, RLENGTH)
	sub(/^.?rbpf /, "", line)
	n = split(line, token, /[ \t]+/)
	command = "rbpf"
	for (i = 1; i <= n; i++) {
		option = token[i]
		if (option == "--" || option ~ /^[|>#)&;]/)
			return
		if (option ~ /^\$\(/) # what is run in there is not ours, or is seen below
			return
		if (option !~ /^-./) {
			if (command == "rbpf" && option in commands)
				command = option
			continue
		}
		sub(/[=).,;:].*/, "", option)
		if (option !~ /^--/)
			option = substr(option, 1, 2)
		if (!exists(command, option))
			complain("rbpf " command " has no option " option)
	}
}

function end_of_item() {
	if (item_initial != "" && index(item_text, item_initial) == 0)
		complain(item " does not say its default, " item_initial)
	item_initial = ""
}

# The tables.
FILENAME == "-" {
	split($0, field, "\t")
	key = field[1] SUBSEP field[2]
	table[key] = 1
	letter[key] = field[3]
	if (field[3] != "-")
		table[field[1], field[3]] = 1
	arg[key] = field[4]
	# What the text says of "-" and of switches is left to the reader.
	initial[key] = field[5] == "yes" ? "" : field[5] == "-" ? "" : field[5]
	commands[field[1]] = 1
	next
}

FNR == 1 {
	page = FILENAME ~ /^man\//
	command = FILENAME
	sub(/^man\//, "", command)
	sub(/\.1$/, "", command)
	sub(/^rbpf-/, "", command)
	pages[command] = 1
	where = FILENAME
}

{ where = FILENAME ":" FNR }

# In Markdown: code in fences and indented code, and the inline code of other lines.
!page && /^```/ {
	fence = !fence
	next
}
!page {
	if (fence || /^(    |\t)/) {
		check_line($0)
		next
	}
	n_code = split($0, code, "`")
	for (c = 2; c <= n_code; c += 2)
		if (code[c] ~ /^(sudo )?(\.\/)?rbpf /)
			check_line(code[c])
	next
}

/^\.\\"/ { next }

/^\.(It|El|Sh)/ { end_of_item() }

/^\.It Fl/ {
	n = read_options($0)
	if (!n)
		complain("an option without a long name")
	for (i = 1; i <= n; i++) {
		key = command SUBSEP got_name[i]
		described[key]++
		item = got_name[i]
		if (!(key in table)) {
			complain("there is no option " item)
			continue
		}
		if (described[key] > 1)
			complain(item " is described twice")
		if (i == 1 && letter[key] != got_letter)
			complain(item " has the letter " letter[key] ", not " got_letter)
		if (arg[key] != got_arg)
			complain("the value of " item " is called " arg[key] ", not " got_arg)
		if (initial[key] != "") {
			item_initial = initial[key]
			item_text = ""
		}
	}
	next
}

{ item_text = item_text "\n" $0 }

/^\.Dl/ {
	check_line($0)
	next
}

# Options that are only mentioned.
/(^\.|[ \t])Fl / {
	n = read_options($0)
	for (i = 1; i <= n; i++)
		if (!exists(command, got_name[i]))
			complain("there is no option " got_name[i])
	if (got_letter != "-" && !exists(command, got_letter))
		complain("there is no option " got_letter)
}

END {
	for (key in table) {
		split(key, field, SUBSEP)
		if (field[2] ~ /^--/ && !(key in described)) {
			where = "man/" (field[1] == "rbpf" ? "" : "rbpf-") field[1] ".1"
			complain(field[2] " is not described")
		}
	}
	exit failures != 0
}
' - man/rbpf.1 man/rbpf-*.1 ${readme:+"$readme"} || failed=1
exit $failed
