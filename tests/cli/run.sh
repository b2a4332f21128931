#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# The command line, as far as it needs no BPF: bad input, exit statuses, broken and closed outputs,
# terminals, help and completion. Run as root or not; what the user or a missing tool rules out is
# skipped with a reason.
#
# usage: run.sh [PATTERN]       only the tests whose name matches; RBPF names the program, ./rbpf if
#                               unset; V=1 prints the tests that passed, too
set -u
root=$(cd "$(dirname "$0")/../.." && pwd)
rbpf=${RBPF:-$root/rbpf}
pattern=${1:-}
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
trap 'exit 1' INT TERM
passed=0
failed=0
skipped=0

if [ ! -x "$rbpf" ]; then
	echo "tests/cli: there is no $rbpf (make)" >&2
	exit 1
fi
case $rbpf in
/*) ;;
*) rbpf=$PWD/$rbpf ;;
esac
# shellcheck disable=SC2086 # CFLAGS are words
${CC:-cc} ${CFLAGS:--O1} -D_GNU_SOURCE -I"$root/src" -I"$root/include" -o "$tmp/mkrecording" \
	"$root/tests/cli/mkrecording.c" "$root"/src/base/*.c "$root"/src/profile/*.c \
	-lz -ldeflate -ljansson || exit 1
# shellcheck disable=SC2086
${CC:-cc} ${CFLAGS:--O1} -D_GNU_SOURCE -I"$root/src" -I"$root/include" -I"$root/tests" \
	-o "$tmp/mkhostile" "$root/tests/cli/mkhostile.c" "$root"/src/base/*.c \
	"$root"/src/profile/*.c -lz -ldeflate -ljansson || exit 1
cd "$tmp" || exit 1
for kind in full few gc gems containers merged templates events idle waits wall summed poller requests pool empty interrupted; do
	./mkrecording $kind $kind.data || exit 1
done
unset RBPF_DATA NO_COLOR
export TERM=xterm LC_ALL=C.UTF-8

# What the last run gave.
status=
out=$tmp/out
err=$tmp/err

run() {
	"$rbpf" "$@" < /dev/null > "$out" 2> "$err"
	status=$?
}

ok() {
	passed=$((passed + 1))
	[ -z "${V:-}" ] || echo "ok: $name"
}

not_ok() {
	failed=$((failed + 1))
	echo "FAILED: $name: $*"
	echo "  status $status"
	sed 's/^/  stderr: /' "$err"
	head -5 "$out" | sed 's/^/  stdout: /'
}

skip() {
	skipped=$((skipped + 1))
	echo "skipped: $name: $*"
}

# begin NAME: false if the test was not asked for.
begin() {
	name=$1
	case $name in
	*"$pattern"*) return 0 ;;
	esac
	return 1
}

# expect STATUS FIRST-LINE-OF-STDERR: of the last run. "*" stands for any text.
expect() {
	want=$1
	shift
	if [ "$status" != "$want" ]; then
		not_ok "status $status, not $want"
		return
	fi
	line=$(head -1 "$err")
	# shellcheck disable=SC2254 # a pattern
	case $line in
	$1) ok ;;
	*) not_ok "stderr starts with '$line', not '$1'" ;;
	esac
}

# refuse MESSAGE ARG...: a usage error, with this message and nothing on stdout.
refuse() {
	message=$1
	shift
	begin "refuses: $*" || return 0
	run "$@"
	if [ -s "$out" ]; then
		not_ok "writes to stdout"
	else
		expect 2 "rbpf: error: $message"
	fi
}

# --- The command line

refuse "no command given"
refuse "unknown command 'recrod' (did you mean record?)" recrod
refuse "unknown command 'zzzzzz'" zzzzzz
refuse "unknown command ''" ""
refuse "unknown option '--verison' (did you mean --version?)" --verison
refuse "unknown option '-x'" -x record
refuse "unknown option '--tre' for 'report' (did you mean --tree?)" report --tre
refuse "unknown option '--jsn' for 'dump' (did you mean --json?)" dump --jsn
refuse "unknown option '--freq' for 'report'" report --freq 5
refuse "unknown option '--fre' for 'record' (did you mean --freq?)" record --fre 5 -p 1
refuse "--verbose and --quiet exclude each other" -v report -q
refuse "unknown value 'alwys' for --color (did you mean always?)" --color alwys report
refuse "--help takes no value" record --help=yes

refuse "invalid pid list '42,foo': 'foo' is not a number" record -p 42,foo
refuse "invalid pid list 'foo': 'foo' is not a number" record -p foo
refuse "invalid pid list '': '' is not a number" record -p ""
refuse "invalid pid list '1,': '' is not a number" record -p 1,
refuse "invalid pid list '-1': '-1' is not a number" record -p -1
refuse "--pid: *" record -p 0
refuse "--pid: *" record -p 99999999999999999999
refuse "--pid: pid 7 is listed twice" record -p 7,7
refuse "--pid needs a value (LIST)" record -p
refuse "--pid needs a value (LIST), got the option '-F'" record -p -F 9
refuse "nothing to record: give -p PID, --all-ruby or -- CMD" record
refuse "nothing to record: give -p PID, --all-ruby or -- CMD" record --
refuse "-p PID and -- CMD exclude each other" record -p 1 -- true
for selection in --all-ruby --user=root --comm=x --cgroup=/x --container=x; do
	refuse "-p PID and --all-ruby exclude each other" record -p 1 $selection
	refuse "--all-ruby and -- CMD exclude each other" record $selection -- true
done
refuse "unexpected argument 'ruby' for 'record'" record ruby x.rb
# hint HINT ARG...: what is said besides the error
hint() {
	local hint=$1
	shift
	begin "$* has a hint" || return 0
	run "$@"
	if grep -Fqx "  hint: $hint" "$err"; then ok; else not_ok "no hint"; fi
}
hint "rbpf record -- ruby ... runs a program" record ruby x.rb
hint "rbpf record -- ruby ... runs a program" record -d 1 ruby -e 1
hint "rbpf record -- ruby ... runs a program" record ruby x.rb --verbos
hint "rbpf record -p 18301" record -d 1 18301
hint "-d 30s ends the recording of a process after a time" record -p 1 -- sleep 5
hint "rbpf dump -p 18301" dump 18301
hint "rbpf serve -p 18301" serve 18301
hint "'rbpf dump -p PID' says where each thread is now" snapshot --pid 1
hint "rbpf flame > out.svg" flamegraph
hint "rbpf export -f perf-script" script
hint "rbpf --version" version
hint "it is --children here" record --follow -p 1
hint "it is --freq here" top --rate=9
hint "it is --freq here" record -p 1 --frequency 9
hint "it is --output here" record --file out.svg -p 1
hint "-F HZ is how often samples are taken; -F 100 is every 10 ms" record -r 100 -p 1
hint "-F HZ is how often samples are taken; -F 100 is every 10 ms" record --interval=10ms -p 1
for option in -e --event --idle --wall; do
	hint "--mode wall records time off the CPU, too, and --mode states also what is waited for" record $option -p 1
done
hint "'rbpf report --state gvl' of a --mode states recording shows the GVL" record --gil -p 1
hint "stacks are always recorded; --no-native leaves out native ones" record -g -p 1
hint "--all-ruby records all Ruby processes of the machine" record -a
hint "rbpf help report" report -g
for name in page.html flat.txt profile.pprof perf.gz; do
	refuse "-o $name: no recording and no export is called *.${name##*.}" record -p 1 -o $name
done
hint "-o NAME.folded names the export" record -p 1 -f folded -o out.txt
hint "-o out.svg draws the flame graph; of a recording 'rbpf timeline > page.html' and 'rbpf heatmap > page.html' make pages" record -p 1 -o page.html
for command in record top serve; do
	hint "--mode states records waits beside CPU time: 'rbpf report --event wait'" $command -p 1 --mode offcpu
done
hint "--mode takes one of cpu, wall, states" record -p 1 --mode gil
hint "rbpf annotate -i few.data '^Cart#total$'" annotate few.data '^Cart#total$'
hint "'rbpf record' makes a recording" diff few.data nofile.data
hint "options stand before BEFORE; after -- all arguments are recordings" diff few.data -- few.data -n 1
refuse "--request-paths and --no-requests exclude each other" serve -p 1 --no-requests --request-paths
hint "--force is an option of 'rbpf record'; 'rbpf help flame' has those of flame" flame --force
hint "--icicle is an option of 'rbpf flame'; 'rbpf help record' has those of record" record --icicle=5
hint "rbpf help flame" flame --nonsense
refuse "--freq must be between 1 and 10000, got 50000" record -p 1 --freq 50000
refuse "--freq must be between 1 and 10000, got 0" record -p 1 -F0
for cost in -1 101 x ''; do
	refuse "--max-cost*" record -p 1 "--max-cost=$cost"
done
for number in -5 +5 5x 0x5 1e3 "" " 5" 99999999999999999999999; do
	refuse "--freq*" record -p 1 -F "$number"
	refuse "--duration*" record -p 1 --duration="$number"
	refuse "--max-stack*" record -p 1 --max-stack "$number"
	refuse "--ring*" record -p 1 --ring="$number"
	refuse "--max-size*" record -p 1 --max-size="$number"
done
refuse "--max-stack must be between 16 and 4096, got 5000" record -p 1 --max-stack 5000
refuse "--ring must be between 64K and 1G, got 32K" record -p 1 --ring 32K
refuse "--ring must be a power of two" record -p 1 --ring 3M
refuse "--max-size must be between 64K and 1048576G, got 32K" record -p 1 --max-size 32K
refuse "--as-root needs a program to run (-- CMD)" record -p 1 --as-root
refuse "--exit-with-child needs a program to run (-- CMD)" record -p 1 --exit-with-child
refuse "unknown value 'fodled' for --format (did you mean folded?)" record -p 1 -f fodled
refuse "--format needs a recording in a file, not on stdout" record -p 1 -f svg -o -
refuse "-f pprof does not go with -o y.svg: that is a file of -f flame" record -p 1 -f pprof -o y.svg
refuse "-f json does not go with -o y.firefox.json: that is a file of -f firefox" record -p 1 -f json -o y.firefox.json
refuse "--output must not be empty" record -p 1 -o ""

refuse "-p PID and --all-ruby exclude each other" top -p 1 --comm=x
refuse "--as-root needs a program to run (-- CMD)" top -p 1 --as-root
refuse "--json and --plain exclude each other" top --json --plain
refuse "--view does not go with --json, which has all lists" top --json --view tree
refuse "unknown value 'method' for --view (did you mean methods?)" top --view method
refuse "--view states needs --mode states" top --view states
refuse "--keep must be between 1s and 24h" top --keep 25h
refuse "--once cannot show more than --keep keeps" top --once --keep 5s -d 6s
refuse "--request-paths and --no-requests exclude each other" top --no-requests --request-paths
refuse "--request-rules and --no-requests exclude each other" top --no-requests --request-rules x
refuse "--freq must be between 1 and 10000, got 0" top -F0

refuse "which process? give -p PID" dump
refuse "invalid pid list '1,x': 'x' is not a number" dump -p 1,x
refuse "--request-paths and --no-requests exclude each other" dump --no-requests --request-paths -p 1
refuse "--request-rules and --no-requests exclude each other" dump --no-requests --request-rules x -p 1
refuse "*/no-such-rules*" dump --request-rules "$tmp/no-such-rules" -p 1
refuse "unknown option '--childern' for 'dump' (did you mean --children?)" dump -p 1 --childern
refuse "--pid takes one pid, got '1,2'" doctor -p 1,2
refuse "--json and --pids exclude each other" ps --json --pids
refuse "unexpected argument '1' for 'ps'" ps 1
refuse "which shell? bash, zsh or fish" completion
refuse "unknown shell 'bsh' (did you mean bash?)" completion bsh
refuse "unknown shell 'tcsh': there are bash, zsh and fish" completion tcsh
refuse "unexpected argument 'zsh' for 'completion'" completion bash zsh
refuse "unknown command 'recrod' (did you mean record?)" help recrod

refuse "unknown value 'lin' for --by (did you mean line?)" report --by lin full.data
refuse "--limit*" report -n -1 full.data
refuse "--tree and --info exclude each other" report --tree --info full.data
printf '# ours\nshop Shop#run shop.rb self - %%d\n' >bad.rules
refuse "bad.rules:2: a % in the name that is none of %c, %t and %%" record --request-rules bad.rules -p 1
refuse "cannot read none.rules: No such file or directory" record --request-rules none.rules -p 1
refuse "--request-paths and --no-requests exclude each other" record --no-requests --request-paths -p 1
refuse "--request-rules and --no-requests exclude each other" record --no-requests --request-rules x -p 1
refuse "--waker needs --mode states" record --waker -p 1
refuse "--tree needs --by method or line, not --by file" report --tree --by file full.data
refuse "--merge-threads needs --by thread or --states" report --merge-threads full.data
refuse "--merge-threads needs --by thread or --states" report --merge-threads --by process full.data
refuse "--merge-threads needs --by thread or --states" report --merge-threads --states --by process full.data
refuse "--merge-threads needs --split thread" flame --merge-threads --split process full.data
refuse "--gc needs --by method or line, not --by thread" report --gc --by thread full.data
for by in container ruby gem time; do
	refuse "--tree needs --by method or line, not --by $by" report --tree --by $by full.data
	refuse "--gc needs --by method or line, not --by $by" report --gc --by $by full.data
done
refuse "--tree and --gc exclude each other" report --gc --tree full.data
refuse "--gc and --info exclude each other" report --gc --info full.data
refuse "--json and --csv exclude each other" report --gc --csv --json full.data
refuse "--gc and --no-gc exclude each other" report --no-gc --gc full.data
refuse "--json and --md exclude each other" report --json --md full.data
refuse "--tree and --sandwich exclude each other" report --tree --sandwich x full.data
refuse "--sandwich and --callers exclude each other" report --callers x --sandwich x full.data
refuse "--callers and --callees exclude each other; --sandwich prints both" report --callers x --callees x full.data
refuse "--callees needs --by method or line, not --by gem" report --callees x --by gem full.data
refuse "--match and --tree exclude each other" report --tree --match x full.data
refuse "--inverted needs --tree" report --inverted full.data
refuse "invalid pattern '(' for --root: *" report --root "(" full.data
refuse "invalid pattern '[' for --root: *" flame --root "[" full.data
refuse "invalid pattern '*(' for --sandwich: *" report --sandwich "*(" full.data
refuse "invalid pattern 'a{2' for --match: *" report --match "a{2" full.data
refuse "invalid pattern '(' for --include: *" report --include "(" full.data
for view in report "report --states" flame "export -f folded" timeline heatmap; do
	# shellcheck disable=SC2086 # words
	refuse "invalid pattern '(' for --idle: *" $view --idle "(" full.data
done
refuse "invalid pattern '(' for --idle: *" annotate -i full.data --idle "(" x
refuse "invalid pattern '(' for --idle: *" diff --idle "(" full.data few.data
refuse "invalid pattern '(' for --idle: *" check --fail-on '.>5%' --idle "(" full.data few.data
refuse "--idle must not be empty" report --idle= full.data
refuse "invalid pattern '(' for --idle: *" top --mode states --idle "(" --once
refuse "--idle needs --mode states" top --idle x --once
refuse "--thread must not be empty" report --thread= full.data
refuse "--container must not be empty" flame --container= full.data
refuse "invalid pattern '[' for --request: *" report --request "[" full.data
for bad in 0 5x -1s; do
	refuse "*--request-slower-than*" report "--request-slower-than=$bad" full.data
done
for other in "--split thread" "--stack both" "--color hash" "--diff few.data"; do
	# shellcheck disable=SC2086 # an option and its value
	refuse "* exclude each other" flame --request-slower-than 1s $other full.data
done
for other in --tree --gc; do
	refuse "$other and --requests exclude each other" report --requests $other full.data
	refuse "$other and --states exclude each other" report --states $other full.data
done
for one in --requests --states --waits; do
	refuse "$one and --info exclude each other" report $one --info full.data
done
refuse "--states and --by exclude each other" report --states --by line full.data
refuse "--waits and --by exclude each other" report --waits --by thread full.data
refuse "--waits and --sort exclude each other" report --waits --sort total full.data
refuse "--requests and --waits exclude each other" report --waits --requests full.data
refuse "--match and --waits exclude each other" report --waits --match x full.data
refuse "--waits and --event cpu exclude each other" report --waits --event cpu waits.data
refuse "--waits and --blocker exclude each other" report --waits --blocker waits.data
refuse "full.data is of the event cpu, --diff wall.data of wall: --event chooses one" flame --diff wall.data full.data
refuse "--waits and --waker exclude each other" report --waits --waker waits.data
refuse "--waits needs a --filter that selects one range of times" report --waits --filter 'time < 1s or time > 2s' waits.data
refuse "full.data has no event 'wait'" report --waits full.data
refuse "full.data has no event 'wall'" report --waits --state disk full.data
refuse "--states and --blocker exclude each other" report --states --blocker full.data
refuse "--states and --waker exclude each other" report --states --waker full.data
for event in cpu wait; do
	refuse "--states and --event $event exclude each other" report --states --event $event full.data
	if begin "--states of CPU time or waits alone: another report has them"; then
		run report --states --event $event full.data
		if grep -q -e "--by state --event $event" "$err"; then
			expect 2 "*"
		else
			not_ok "another hint"
		fi
	fi
done
refuse "full.data has no event 'wall'" report --states full.data
refuse "full.data has no event 'wall'" report --states --by time full.data
refuse "full.data has no event 'wall'" report --states --by process full.data
refuse "--states and --by exclude each other" report --states --by request full.data
refuse "full.data has no event 'wall'" report --state gvl full.data
refuse "unknown state 'gil'" report --state gil full.data
refuse "*--mode*" record --mode all -p 1
refuse "--requests and --by exclude each other" report --requests --by line full.data
refuse "--requests and --sort exclude each other" report --requests --sort self full.data
refuse "--stack both and --requests exclude each other" report --requests --stack both full.data
refuse "invalid pattern '[' for --container: *" report --container "[" full.data
refuse "unknown value 'contaner' for --split (did you mean container?)" flame --split contaner full.data
refuse "--from must be before --to" report --from 2s --to 1s full.data
refuse "--from must be before --to" report --from 1s --to 1000ms full.data
refuse "invalid pid list 'x': 'x' is not a number" report --tid x full.data
refuse "the recording is named twice: --input=full.data and 'few.data'" report -i full.data few.data
refuse "unexpected argument 'few.data' for 'report'" report full.data few.data
refuse "which format? give -f FORMAT" export full.data
refuse "unknown value 'svgg' for --format*" export -f svgg full.data
refuse "--min-width: *" flame --min-width 101 full.data
refuse "--width must be between 300 and 20000, got 1" flame --width 1 full.data
refuse "unknown value 'never' for --color*" flame --color never full.data
refuse "--color state and --waker exclude each other" flame --color state --waker full.data
refuse "--color state and --blocker exclude each other" flame --color state --blocker full.data
refuse "--color gem and --stack native exclude each other" flame --color gem --stack native full.data
refuse "--color gem and --stack both exclude each other" flame --color gem --stack both full.data
refuse "--request-slower-than and --color exclude each other" flame --color kind --request-slower-than 1s full.data

# --- Help, --version

commands=$("$rbpf" help | sed -n '/^Commands:/,/^$/s/^  \([a-z]*\) .*/\1/p')
for command in $commands; do
	begin "help of $command" || continue
	run "$command" --help
	cp "$out" help.txt
	run help "$command"
	if ! cmp -s "$out" help.txt; then
		not_ok "'help $command' and '$command --help' differ"
	elif ! grep -q "^usage: rbpf $command" help.txt; then
		not_ok "no usage line"
	elif [ ! -f "$root/man/$(sed -n 's/^More: man //p' help.txt).1" ]; then
		not_ok "no manual page"
	else
		expect 0 ""
	fi
done
if begin "all commands have help"; then
	run --help
	cp "$out" help.txt
	run help
	if [ "$(echo "$commands" | tr '\n' ' ')" != "record top serve report annotate diff check flame timeline heatmap export dump ps doctor help completion " ]; then
		not_ok "the commands are $commands"
	elif ! cmp -s "$out" help.txt; then
		not_ok "'help' and '--help' differ"
	else
		expect 0 ""
	fi
fi
if begin "--version"; then
	run --version
	if grep -qx 'rbpf [0-9.]*' "$out"; then expect 0 ""; else not_ok "no version"; fi
fi
if begin "help wins over what is missing"; then
	run -q export --help --nonsense
	expect 2 "rbpf: error: unknown option '--nonsense' for 'export'"
	run -v export --help
	expect 0 ""
fi

# --- Recordings

if begin "a recording is named by -i, argument, RBPF_DATA, default, stdin"; then
	run report full.data
	cp "$out" want
	for how in -i arg env default stdin before-env; do
		case $how in
		before-env) RBPF_DATA=few.data run report full.data ;;
		-i) run report -i full.data ;;
		arg) run report full.data -n 30 ;;
		env) RBPF_DATA=full.data run report ;;
		default)
			cp full.data rbpf.data
			run report
			sed -i 's/^rbpf.data/full.data/' "$out"
			rm rbpf.data ;;
		stdin)
			"$rbpf" report -i - < full.data > "$out" 2> "$err"
			status=$?
			sed -i 's/^-:/full.data:/' "$out" ;;
		esac
		if cmp -s "$out" want; then expect 0 ""; else not_ok "$how gives another report"; fi
	done
fi
if begin "no recording"; then
	run report
	expect 5 "rbpf: error: *rbpf.data*"
	grep -q "^  hint: " "$err" || not_ok "no hint"
	run flame missing.data
	expect 5 "rbpf: error: *missing.data*"
	run export -f folded /
	expect 5 "rbpf: error: *"
fi
if begin "foreign files"; then
	printf '<?xml version="1.0"?>\n<svg/>\n' > foreign.svg
	run report foreign.svg
	expect 5 "rbpf: error: foreign.svg is not an rbpf profile (starts with '<?xml')"
	: > zero.data
	run report zero.data
	expect 5 "rbpf: error: *zero.data*"
	head -c 5000 /dev/urandom > random.data
	run report random.data
	expect 5 "rbpf: error: *random.data*"
	run report "$rbpf"
	expect 5 "rbpf: error: *"
	run report -i - # /dev/null
	expect 5 "rbpf: error: *"
fi
if begin "unreadable recording"; then
	cp full.data secret.data
	chmod 000 secret.data
	if [ "$(id -u)" != 0 ]; then
		run report secret.data
		expect 5 "rbpf: error: *secret.data*"
	elif command -v setpriv > /dev/null; then
		chmod 755 "$tmp"
		cp "$rbpf" rbpf.copy
		setpriv --reuid=65534 --regid=65534 --clear-groups ./rbpf.copy report secret.data \
			> "$out" 2> "$err"
		status=$?
		expect 5 "rbpf: error: *secret.data*"
	else
		skip "root can read everything, and there is no setpriv"
	fi
fi
if begin "an empty recording is not a broken one"; then
	for args in "report" "report --json" "report --tree" "flame" "timeline" "heatmap" "export -f folded"; do
		# shellcheck disable=SC2086 # words
		run $args empty.data
		if [ -s "$out" ]; then not_ok "writes to stdout"; fi
		expect 6 "rbpf: error: empty.data holds no samples"
	done
fi
if begin "filters that leave nothing"; then
	for args in "report" "report --json" "report --csv" "report --tree" "flame" "timeline" "heatmap"; do
		# shellcheck disable=SC2086 # words
		run $args --include nothing_is_called_so full.data
		if [ -s "$out" ]; then not_ok "writes to stdout"; fi
		expect 6 "rbpf: error: *"
	done
	for format in folded json speedscope firefox pprof callgrind perf-script chrome stackprof sampling-prof dot flame; do
		for filter in "--thread zzz" "--from 90s" "--include nothing_is_called_so"; do
			# shellcheck disable=SC2086 # words
			run export -f $format $filter full.data
			if [ -s "$out" ]; then not_ok "$format $filter: writes to stdout"; fi
			expect 6 "rbpf: error: no sample of full.data passes the filters"
		done
	done
	# Of any event: no sample of CPU time passes.
	for format in json pprof; do
		run export -f $format --include Cache.fill events.data
		if [ -s "$out" ]; then expect 0 ""; else not_ok "$format: nothing of the second event"; fi
		run export -f $format --include Cache.fill --event cpu events.data
		expect 6 "rbpf: error: no sample of events.data passes the filters"
	done
	echo before > kept.out
	run export -f json --thread zzz -o kept.out full.data
	expect 6 "rbpf: error: no sample of full.data passes the filters"
	if [ "$(cat kept.out)" = before ]; then ok; else not_ok "a file is written to"; fi
fi
if begin "a recording of waits alone"; then
	run flame idle.data
	expect 6 "rbpf: error: idle.data holds no samples of event 'cpu'"
	run flame --color state idle.data
	expect 0 ""
	if grep -q 'event&quot;:&quot;wall&quot;' "$out"; then ok; else not_ok "not of all time"; fi
	run report idle.data
	expect 6 "rbpf: error: idle.data holds no samples of event 'cpu'"
	# These are of all events, others of the first one.
	for format in json pprof; do
		run export -f $format idle.data
		expect 0 ""
		run export -f $format --event cpu idle.data
		expect 6 "rbpf: error: idle.data holds no samples of event 'cpu'"
		run export -f $format --thread zzz idle.data
		expect 6 "rbpf: error: no sample of idle.data passes the filters"
		run export -f $format empty.data
		expect 6 "rbpf: error: empty.data holds no samples"
	done
	run export -f json idle.data
	if [ "$(grep -o '"event":1' "$out" | wc -l)" = 301 ]; then ok; else not_ok "not all waits"; fi
	cat idle.data | "$rbpf" export -f json - > got 2> "$err"
	if cmp -s got "$out"; then ok; else not_ok "not the same of standard input"; fi
	run export -f folded idle.data
	expect 6 "rbpf: error: idle.data holds no samples of event 'cpu'"
	run export -f folded --event wait idle.data
	expect 0 ""
	run annotate -i idle.data Cart#total
	if grep -q '(wait)' "$out"; then expect 0 ""; else not_ok "annotate: not the event that it has"; fi
	run annotate -i idle.data --event cpu Cart#total
	expect 6 "rbpf: error: idle.data holds no samples of event 'cpu'"
	run annotate -i idle.data nothing
	expect 6 "rbpf: error: no file and no method in idle.data is called 'nothing'"
	run annotate -i idle.data --stack native nothing
	expect 6 "rbpf: error: no native function in idle.data is called 'nothing'"
	run report --info idle.data
	if grep -q '^event      wait' "$out" && grep -q '^processes  1$' "$out"; then
		expect 0 ""
	else
		not_ok "--info does not say what it has"
	fi
	run report --info --pid 4242 idle.data
	expect 6 "rbpf: error: idle.data holds no samples of event 'cpu'"
	run report --info empty.data
	expect 6 "rbpf: error: empty.data holds no samples"
	"$rbpf" serve idle.data < /dev/null > "$out" 2> "$err" &
	pid=$!
	for i in $(seq 100); do
		if [ -s "$out" ] || ! kill -0 $pid 2> /dev/null; then break; fi
		sleep 0.1
	done
	kill -TERM $pid 2> /dev/null
	wait $pid
	status=$?
	if grep -q '^http://' "$out"; then ok; else not_ok "serve does not start"; fi
fi
# A loop waits for 1 s, and a job that it calls for 2 s.
if begin "methods in which waits are idle"; then
	for filter in "--by state" "--state idle" "--filter state=idle" "--tree --state idle"; do
		# shellcheck disable=SC2086 # words
		run report --json $filter --event wait --idle 'Poller#run$' poller.data
		if grep -q '"\(self\|total\)_ns":1000000000' "$out"; then expect 0 ""; else not_ok "$filter: $(cat "$out")"; fi
	done
	run report --state idle poller.data
	expect 6 "rbpf: error: no sample of poller.data passes the filters"
	run report --json --state wait --idle 'Poller#run$|Import' poller.data
	cp "$out" got
	run report --json --state idle --idle 'Poller#run$|Import' poller.data
	if cmp -s "$out" got; then ok; else not_ok "the job, which matches, is not idle"; fi
	for view in "report --by state" "report --tree" flame "export -f folded" "export -f json" timeline heatmap; do
		# shellcheck disable=SC2086 # words
		run $view --event wait --idle 'Poller#run$' poller.data
		if grep -q 'idle' "$out"; then expect 0 ""; else not_ok "$view: none"; fi
		# shellcheck disable=SC2086
		cat poller.data | "$rbpf" $view --event wait --idle 'Poller#run$' - > got 2> "$err"
		if grep -q 'idle' got; then ok; else not_ok "$view of standard input: none"; fi
	done
	run diff --state idle --idle 'Redis' poller.data poller.data
	if grep -q 'Poller#run' "$out"; then expect 0 ""; else not_ok "diff: none"; fi
	run check --fail-on 'Redis>1%' --state idle --idle 'Redis' poller.data poller.data
	expect 0 ""
	run annotate -i poller.data --state idle --idle 'Redis' 'Poller#run'
	if grep -q 'total 1.00s (100.0%' "$out"; then expect 0 ""; else not_ok "annotate: none"; fi
	# Without waits there is nothing to be idle.
	run report --csv full.data
	cp "$out" got
	run report --csv --idle . full.data
	if cmp -s "$out" got; then ok; else not_ok "--idle takes something away"; fi
fi
# Three of 2 ms, and one of 2.5 s that has three samples.
if begin "a part of a recording, by the second"; then
	run diff --json --normalize time --event wait --from 1s --to 2s waits.data waits.data
	expect 0 ""
	if grep -q '"before":{"duration_ns":1000000000,"samples":2,"ns":1000000000,' "$out"; then ok; else not_ok "$(cat "$out")"; fi
	run report --states --json --from 1s --to 1100ms waits.data
	if grep -q '"selected_samples":2,"selected_ns":100000000' "$out"; then ok; else not_ok "$(cat "$out")"; fi
	run report --by time --json --event wait --from 1s --to 1100ms waits.data
	if grep -o '"from_ns":[0-9]*' "$out" | grep -qx '"from_ns":1000000000'; then ok; else not_ok "$(cat "$out")"; fi
	if [ "$(grep -o '"from_ns":' "$out" | wc -l)" = 1 ]; then ok; else not_ok "rows of other seconds"; fi
fi
if begin "how long waits were"; then
	lengths='"waits":4,"mean_wait_ns":626500000,"longest_wait_ns":2500000000'
	for options in "--state disk" "--by state" "--event wait --by thread" "--event wait --root Disk"; do
		# shellcheck disable=SC2086 # words
		run report --json $options waits.data
		expect 0 ""
		if grep -q "\"samples\":[06],.*$lengths" "$out"; then ok; else not_ok "$options: $(cat "$out")"; fi
	done
	# All of the length of a wait that is in part in the time.
	run report --json --state disk --from 1s --to 1100ms waits.data
	if grep -q '"total_ns":100000000,.*"waits":1,"mean_wait_ns":2500000000,"longest' "$out"; then ok
	else not_ok "a part of one"; fi
	run report --csv --state disk waits.data
	if head -1 "$out" | grep -q ',waits,mean_wait_ns,longest_wait_ns' && grep -q ',4,626500000,2500000000' "$out"
	then ok; else not_ok "CSV"; fi
	run report --state disk waits.data
	if grep -q ' TOTAL%  WAITS    MEAN  LONGEST  METHOD' "$out" && grep -q ' 4  627 ms   2.50 s  Disk#load' "$out"
	then ok; else not_ok "the table"; fi
	# Of rows of one state each also the percentiles, within 1.6 %: of a file, and of what can be read only once.
	percentiles='"longest_wait_ns":2500000000,"p50_ns":2015232,"p95_ns":2500000000,"p99_ns":2500000000}'
	for options in "--by state" "--by peer" "--by peer --root Disk" "--by state --from 1ms"; do
		# shellcheck disable=SC2086 # words
		run report --json $options waits.data
		if grep -q "$percentiles" "$out"; then ok; else not_ok "$options: $(cat "$out")"; fi
		# shellcheck disable=SC2086 # words
		"$rbpf" report --json $options -i - < waits.data > got
		if cmp -s got "$out"; then ok; else not_ok "$options of a pipe"; fi
	done
	run report --csv --by peer waits.data
	if head -1 "$out" | grep -q ',longest_wait_ns,p50_ns,p95_ns,p99_ns.$' && grep -q ',2015232,2500000000,2500000000.$' "$out"
	then ok; else not_ok "CSV of percentiles"; fi
	run report --by state waits.data
	if grep -q '  WAITS    MEAN      P50     P99  LONGEST  STATE' "$out" &&
		grep -q ' 4  627 ms  2.02 ms  2.50 s   2.50 s  disk' "$out"
	then ok; else not_ok "the table of percentiles: $(cat "$out")"; fi
	run report --md --by peer waits.data
	if grep -q '| P50 | P99 | LONGEST |' "$out"; then ok; else not_ok "Markdown"; fi
	run report --json --event wait --by thread waits.data
	if grep -q '"p50_ns":' "$out"; then not_ok "of threads"; else ok; fi
	# Of CPU time, of seconds, and where times divide waits there are none.
	run report --json full.data
	if grep -q '"waits":' "$out"; then not_ok "CPU time"; else ok; fi
	run report --json --event wait --by time waits.data
	if grep -q '"waits":' "$out"; then not_ok "seconds"; else ok; fi
	run report --json --event wait --filter 'time < 1s or time > 2s' waits.data
	if grep -q '"rows":\[{' "$out" && ! grep -q '"waits":' "$out"; then ok; else not_ok "times"; fi
fi
if begin "a time of a filter that divides a wait"; then
	divided="time < 100ms or time > 1500ms"
	run report --json --event wait --filter "$divided" waits.data
	sum=$(sed -n 's/.*"selected_ns":\([0-9]*\).*/\1/p' "$out")
	run report --json --event wait --by time --filter "$divided" waits.data
	if [ "$sum" -gt 0 ] && grep -q "\"selected_ns\":$sum," "$out"; then ok; else not_ok "seconds: not $sum"; fi
	for view in "export -f json" "export -f perf-script --event wait" "export -f speedscope --event wait" "export -f chrome" timeline "heatmap --event wait"; do
		# shellcheck disable=SC2086 # words
		run $view --filter "$divided" -i waits.data
		expect 0 ""
	done
fi
if begin "the longest requests"; then
	run report --requests requests.data
	expect 0 ""
	first='^ 700 ms  2.170s  network 690 ms, user 10 ms  CartsController#show  4242  ruby$'
	if grep -A1 LONGEST "$out" | grep -q "$first" && grep -c 'CartsController#show  4242' "$out" | grep -qx 5
	then ok; else not_ok "5 of 7: $(cat "$out")"; fi
	for n in 2 7 0; do
		run report --requests -n $n requests.data
		if grep -c 'CartsController#show  4242' "$out" | grep -qx "[$((n ? n : 7))]"; then ok; else not_ok "-n $n"; fi
	done
	# The line below it is a command, which shows the first one and nothing else.
	run report --requests requests.data
	command=$(sed -n 's/^  the first one: rbpf flame \(.*\) > longest.svg$/\1/p' "$out")
	# shellcheck disable=SC2086 # words
	run report --requests --json $command
	if grep -q '"requests":\[{"request":"CartsController#show".*"seen":1,"samples":2,"self_ns":700000000,' "$out"
	then ok; else not_ok "its command: $command"; fi
	for options in "-n 1" "-n 1 --root Cart" "-n 1 --filter 'time > 0s'"; do
		eval "run report --requests --json $options requests.data"
		if grep -q '"longest":\[{[^]]*"from_ns":2170000000,"length_ns":700000000,"length_most_ns":700000000,"samples":2,"self_ns":700000000,"states":{"user":[0-9]*,[^]]*}}\]' "$out"
		then ok; else not_ok "JSON with $options: $(cat "$out")"; fi
	done
	# Of one event samples are not kept: with some filters they are read again.
	for options in "--event wait" "--event wait --exclude x" "--event wait --root Cart" "--event wait --filter 'time > 2500ms or time < 2s'"; do
		eval "run report --requests --json -n 1 $options requests.data"
		got=$(grep -o '"longest":.*' "$out")
		eval '"$rbpf" report --requests --json -n 1 '"$options"' - < requests.data > "$out" 2> "$err"'
		status=$?
		expect 0 ""
		if [ -n "$got" ] && [ "$got" = "$(grep -o '"longest":.*' "$out")" ] &&
			echo "$got" | grep -q '"length_ns":700000000,.*"samples":[12],"self_ns":[1-9][0-9]*}'
		then ok; else not_ok "$options: $got"; fi
	done
	run report --requests --csv requests.data
	if [ "$(wc -l < "$out")" = 3 ]; then ok; else not_ok "CSV has other rows"; fi
	# What others waited meanwhile is of no state; but who made which wait, and what the longest did, is known.
	for options in "--state network" "--filter 'state = network'" "--filter 'state = network' --root Cart"; do
		eval "run report --requests --json $options requests.data"
		if ! grep -q gvl_caused_ns "$out" && grep -q '"longest":\[{[^]]*"states":{"user":' "$out"; then expect 0 ""
		else not_ok "$options: $(cat "$out")"; fi
	done
	run report --requests --csv --state network requests.data
	if tail -n 1 "$out" | grep -q ',,'; then ok; else not_ok "CSV: $(cat "$out")"; fi
fi
# That of 2.5 s is one, though it was sent in three parts.
if begin "the longest waits"; then
	# One range of times divides none, also with other terms beside it.
	run report --waits --json --filter 'time >= 1s and time < 1100ms and state = disk' waits.data
	expect 0 ""
	if grep -q '"length_ns":2500000000' "$out"; then ok; else not_ok "a range and another term: $(cat "$out")"; fi
	# A name that a shell would take apart, or the program for an option.
	for name in "a b'c.data" "-w.data"; do
		cp waits.data "./$name"
		run report --waits -- "$name"
		eval "run $(sed -n 's/^  around the first one: rbpf \(.*\) > wait.html$/\1/p' "$out")"
		if grep -q 'Disk#load' "$out"; then expect 0 ""; else not_ok "its command of $name"; fi
	done
	run report --waits waits.data
	expect 0 ""
	first='^ 2.50 s  0.010s  [0-9:]*\.010  disk  ruby (tid 4242)  Disk#load  /app/disk.rb:3$'
	if sed -n 3p "$out" | grep -q "$first" && grep -c 'Disk#load' "$out" | grep -qx 4; then ok
	else not_ok "all of them: $(cat "$out")"; fi
	# The line below it is a command.
	command=$(sed -n 's/^  around the first one: rbpf \(.*\) > wait.html$/\1/p' "$out")
	# shellcheck disable=SC2086 # words
	run $command
	if grep -q 'Disk#load' "$out"; then expect 0 ""; else not_ok "its command: $command"; fi
	for n in 1 3 0; do
		run report --waits -n $n waits.data
		if grep -c 'Disk#load' "$out" | grep -qx "[$((n ? n : 4))]"; then ok; else not_ok "-n $n"; fi
	done
	# Of a file and of what can be read only once, with all its length where a part of it is in the time.
	long='"waits":\[{"length_ns":2500000000,"from_ns":10000000,"clock_ns":1700000000010000000,"state":"disk",'
	for options in "" "--state disk" "--event wall" "--from 1s --to 1100ms" "--filter 'time >= 1s'" "--root Disk" "--tid 4242"; do
		eval "run report --waits --json $options waits.data"
		expect 0 ""
		if grep -q "$long" "$out"; then ok; else not_ok "$options: $(cat "$out")"; fi
		eval '"$rbpf" report --waits --json '"$options"' -i - < waits.data > got'
		if cmp -s got "$out"; then ok; else not_ok "$options of a pipe"; fi
	done
	run report --waits --from 1s waits.data
	if grep -q '  of a wait that goes beyond --from or --to, all of it$' "$out"; then ok; else not_ok "no note"; fi
	run report --waits --md waits.data
	if grep -q '| WAITED | BEGAN | CLOCK | FOR | THREAD |' "$out"; then ok; else not_ok "Markdown"; fi
	# The request of each, and idle ones where they are asked for, in either way.
	run report --waits requests.data
	if sed -n 3p "$out" | grep -q '^ 690 ms  2.170s .*  CartsController#show  Cart#total  /app/cart.rb:3$' &&
		grep -q '^  8 waits of threads with nothing to do left out' "$out"
	then expect 0 ""; else not_ok "requests: $(cat "$out")"; fi
	for options in "--state idle" "--filter 'state = idle'" "--filter 'state = idle or tid = 1'" "--root . --filter 'state = idle'"; do
		eval "run report --waits --json $options poller.data"
		expect 6 "*"
		eval "run report --waits --json $options --idle 'Poller#run' poller.data"
		if grep -q '"selected_waits":1,"idle_left_out":0,.*"state":"idle",.*"label":"Redis#blpop"' "$out"
		then expect 0 ""; else not_ok "$options: $(cat "$out")"; fi
	done
	run report --waits --json --idle 'Poller#run' poller.data
	if grep -q '"selected_waits":1,"idle_left_out":1,.*"label":"Import#perform"' "$out"
	then expect 0 ""; else not_ok "idle: $(cat "$out")"; fi
	# Ten of the fifteen, or all for programs.
	run report --waits --state wait requests.data
	if grep -c 'ruby (tid 4242)' "$out" | grep -qx 10; then expect 0 ""; else not_ok "not ten: $(cat "$out")"; fi
	run report --waits --state wait --json requests.data
	if grep -o '"length_ns"' "$out" | grep -c . | grep -qx 15; then expect 0 ""; else not_ok "not all"; fi
	run report --waits summed.data
	expect 6 "rbpf: error: summed.data has no single waits: they were added up by the second"
	run report --waits --state network --idle 'Poller#run' poller.data
	expect 6 "rbpf: error: no wait of poller.data passes the filters"
	run report --waits --idle 'Poller#run' --exclude Import poller.data
	expect 6 "rbpf: error: no wait but idle ones of poller.data passes the filters"
fi
if begin "an event of several"; then
	run report events.data
	expect 0 ""
	sed -n '2,$p' "$out" > got
	run report full.data
	sed -n '2,$p' "$out" > want
	if cmp -s got want; then ok; else not_ok "the first event is not as without the other"; fi
	run report --event alloc events.data
	expect 0 ""
	if grep -q '301 samples (alloc)' "$out" && grep -q '^ *[0-9.]* kB .* Cart#total' "$out"; then ok
	else not_ok "no bytes"; fi
	run report --event alloc --csv events.data
	if head -1 "$out" | grep -q ',self_bytes,total_bytes,self_error_bytes'; then ok; else not_ok "CSV"; fi
	if sed 1d "$out" | tr -d '\r' | grep -qv ',0$'; then not_ok "exact values have an error"; else ok; fi
	run report --info --event alloc events.data
	if grep -q '^event      alloc (bytes)$' "$out" && grep -q '^event      cpu (ns), 10 ms a sample, 99 Hz$' "$out"
	then ok; else not_ok "--info"; fi
	run flame --event alloc events.data
	if grep -q 'alloc flame graph' "$out" && grep -q '600.0 kB in all' "$out"; then ok; else not_ok "flame"; fi
	run export -f folded --weight time --event alloc events.data
	expect 2 "rbpf: error: --weight time does not go with event 'alloc', whose values are bytes"
	run export -f sampling-prof --event alloc events.data
	expect 2 "rbpf: error: -f sampling-prof is for time, but the event 'alloc' is in bytes"
	run report --blocker --event caused events.data
	expect 2 "rbpf: error: events.data has no event 'caused'"
	run report --blocker --event cpu events.data
	expect 2 "rbpf: error: --blocker and --event cpu exclude each other*"
	run report --waker --event cpu events.data
	expect 2 "rbpf: error: --waker and --event cpu exclude each other*"
	run report --waker --blocker events.data
	expect 2 "rbpf: error: --waker and --blocker exclude each other"
	run report --waker --event wakeup events.data
	expect 2 "rbpf: error: events.data has no event 'wakeup'*"
	for args in "report" "flame" "timeline" "heatmap" "export -f folded" "export -f json"; do
		# shellcheck disable=SC2086 # words
		run $args --event allocs events.data
		expect 2 "rbpf: error: events.data has no event 'allocs'*"
		# shellcheck disable=SC2086 # words
		run $args --event alloc full.data
		expect 2 "rbpf: error: full.data has no event 'alloc'*"
	done
fi
for other in --waker --blocker "--event gvl-caused"; do
	# shellcheck disable=SC2086 # words
	{
		refuse "--by state and $other exclude each other" report --by state $other full.data
		refuse "--states and $other exclude each other" report --states $other full.data
	}
done
refuse "--by state and event wakeup exclude each other" report --by state --filter 'event = wakeup' full.data
refuse "--state and --blocker exclude each other" report --state gvl --blocker full.data
refuse "--filter with 'state' and --blocker exclude each other" report --blocker --filter 'state = gvl' full.data
refuse "nobody ends waits of these states" flame --state system,wait-cpu --waker full.data
refuse "nobody ends waits of these states" flame --state network --waker --filter 'state = gvl' full.data
refuse "--filter: of wakeups, 'state' can only be joined to all else by and" report --waker --filter 'state = gvl or pid = 1' full.data
refuse "--filter asks for event cpu, --waker for wakeup" report --waker --filter 'event = cpu' full.data
if begin "from the start"; then
	run report full.data
	sed 1,2d "$out" > want
	for args in "--from 0s" "--from 0" "--from 0s --to 1h"; do
		# shellcheck disable=SC2086 # words
		run report $args full.data
		expect 0 ""
		sed 1,2d "$out" > got
		if cmp -s got want; then ok; else not_ok "$args is not all"; fi
	done
	run report --filter 'time >= 0s' full.data
	sed 1,2d "$out" > got
	if cmp -s got want; then ok; else not_ok "time >= 0s is not all"; fi
	run report --filter 'time < 0s' full.data
	expect 6 "rbpf: error: no sample of full.data passes the filters"
	run flame --base-from 0s --base-to 1s --from 1s -o x.svg full.data
	expect 0 "*"
fi
if begin "interrupted recording"; then
	run report interrupted.data
	expect 0 "rbpf: warning: interrupted.data was not closed properly; using the first 3.0 s (300 samples)"
	run -q report interrupted.data
	expect 0 ""
fi
if begin "damaged recording"; then
	size=$(wc -c < full.data)
	half=$((size / 2))
	{
		head -c $half full.data
		printf 'damaged!'
		tail -c +$((half + 9)) full.data
	} > damaged.data
	run report damaged.data
	expect 0 "rbpf: warning: damaged.data was not closed properly, or is damaged; using the first *s (* samples) and not the last *B"
fi
if begin "a recording cut anywhere is used or refused, never worse"; then
	size=$(wc -c < full.data)
	at=0
	good=1
	used=0
	refused=0
	while [ $at -lt "$size" ]; do
		head -c $at full.data > cut.data
		run report cut.data
		case $status in
		0)
			used=$((used + 1))
			head -1 "$err" | grep -q '^rbpf: warning: cut.data was not closed properly' || good=0 ;;
		5 | 6)
			refused=$((refused + 1))
			head -1 "$err" | grep -q '^rbpf: error: ' || good=0 ;;
		*) good=0 ;;
		esac
		[ $good = 1 ] || break
		at=$((at + 37))
	done
	if [ $good != 1 ]; then
		not_ok "cut at $at of $size bytes"
	elif [ $used = 0 ] || [ $refused = 0 ]; then
		not_ok "$used were used, $refused refused"
	else
		ok
	fi
fi

# --- Results

if begin "report --json is JSON and adds up"; then
	if command -v ruby > /dev/null; then
		for by in function line file thread process kind container ruby module gem time; do
			run report --json --by $by containers.data
			if ruby -rjson -e '
				r = JSON.parse(File.read(ARGV[0])); s = r["summary"]
				self_ns = r["rows"].sum { |x| x["self_ns"] }
				abort "self does not add up" unless self_ns == s["selected_ns"]
				abort "samples do not add up" unless
					r["rows"].sum { |x| x["samples"] } == s["samples"]
				abort "sampled" unless s["cpu_sampled_ns"] == s["selected_ns"]
				abort "not sorted" unless
					r["rows"].each_cons(2).all? { |a, b| a["self_ns"] >= b["self_ns"] }
			' "$out" 2> "$err"; then expect 0 ""; else not_ok "--by $by"; fi
		done
	else
		skip "there is no ruby"
	fi
fi
if begin "report --csv follows RFC 4180"; then
	if command -v ruby > /dev/null; then
		run report --csv full.data
		if ruby -rcsv -e '
			text = File.read(ARGV[0], external_encoding: "UTF-8")
			abort "not CRLF" unless text.lines.all? { |l| l.end_with?("\r\n") }
			rows = CSV.parse(text, headers: true, row_sep: "\r\n")
			names = rows.map { |r| r["label"] }
			abort names.inspect unless names.include?("Café#\"menü\"")
			abort "path" unless rows.any? { |r| r["path"] == "/app/models/café, \"new\".rb" }
		' "$out" 2> "$err"; then expect 0 ""; else not_ok "is not"; fi
	else
		skip "there is no ruby"
	fi
fi
if begin "states and waits in CSV are those in JSON"; then
	if command -v ruby > /dev/null; then
		for by in "" "--by process" "--by container" "--by ruby" "--by time"; do
			# shellcheck disable=SC2086 # words
			"$rbpf" report --states $by --json waits.data > got.json
			# shellcheck disable=SC2086 # words
			run report --states $by --csv waits.data
			if ruby -rcsv -rjson -e '
				flat = ->(row) { row.merge(row.delete("states").transform_keys { |s| "#{s}_ns" }).transform_values(&:to_s) }
				want = JSON.parse(File.read(ARGV[0]))["rows"].map(&flat)
				got = CSV.read(ARGV[1], headers: true).map { |row| row.to_h.transform_values(&:to_s) }
				abort "#{want} #{got}" unless !want.empty? && got == want.map { |row| got[0].keys.to_h { |k| [k, row.fetch(k)] } }
				abort "fields" unless got[0].size == want[0].size
			' got.json "$out" 2> "$err"; then ok; else not_ok "--states $by"; fi
		done
		"$rbpf" report --waits --json waits.data > got.json
		run report --waits --csv waits.data
		if ruby -rcsv -rjson -e '
			want = JSON.parse(File.read(ARGV[0]))["waits"]
			got = CSV.read(ARGV[1], headers: true).map(&:to_h)
			number = ->(v) { v == true ? "1" : v.nil? || v == false ? "0" : v.to_s }
			abort "empty" if got.empty? || got.size != want.size
			got.zip(want) do |g, w|
				g.each do |key, v|
					abort "#{key}: #{g} #{w}" unless v.nil? ? w[key].to_s.empty? : v == number.(w[key])
				end
				abort w.keys.inspect unless (w.keys - g.keys).empty?
			end
		' got.json "$out" 2> "$err"; then ok; else not_ok "--waits: $(cat "$err")"; fi
	else
		skip "there is no ruby"
	fi
fi
if begin "report"; then
	run report -n 2 full.data
	if ! grep -q '^  3 more lines hidden by -n$' "$out"; then
		not_ok "does not say what is hidden"
	elif ! grep -q "cpu sampled 3.0 s of 3.1 s by the kernel's account (97.8%)" "$out"; then
		not_ok "no line of truth"
	else
		expect 0 ""
	fi
	run report -n 0 full.data
	if grep -q 'Integer#times (C)' "$out"; then expect 0 ""; else not_ok "no (C)"; fi
	run report few.data
	if grep -q 'few samples: 10 in all' "$out"; then expect 0 ""; else not_ok "few samples"; fi
	if grep -q '^  warning: 96.7% of the CPU time was not sampled, ' "$out"; then expect 0 ""; else not_ok "cpu"; fi
	run report --json few.data
	if grep -q '"cpu_differs":true' "$out"; then expect 0 ""; else not_ok "cpu_differs"; fi
	run report --json full.data
	if grep -q '"cpu_differs":false' "$out"; then expect 0 ""; else not_ok "cpu_differs"; fi
	run report --tree full.data
	if grep -q '├─ Cart#total' "$out"; then expect 0 ""; else not_ok "no tree"; fi
	run report --info full.data
	if grep -q 'rbpf record -p 4242' "$out"; then expect 0 ""; else not_ok "no command"; fi
fi
if begin "report --sandwich"; then
	run report --sandwich 'Cart#total$' -n 1 full.data
	if ! grep -q '^2.73s   100.0%  90.0%  3.4%  <main>     /app/shop.rb:1$' "$out"; then
		not_ok "no caller"
	elif ! grep -q '^2.12s   100.0%  70.0%  5.2%  \[itself\]$' "$out"; then
		not_ok "no self time"
	elif ! grep -q '^  1 more line hidden by -n$' "$out"; then
		not_ok "does not say what is hidden"
	else
		expect 0 ""
	fi
	run report --sandwich nothing full.data
	expect 6 "rbpf: error: no method in full.data has a name that matches 'nothing'"
	run report --callees 'Cart#total$' --csv full.data
	if [ "$(grep -c '^callee,' "$out")" = 3 ] && ! grep -q '^caller,' "$out"; then
		expect 0 ""
	else
		not_ok "not the callees"
	fi
fi
if begin "report --sandwich, --tree and --root agree with the table"; then
	if command -v ruby > /dev/null; then
		for data in full gc gems containers merged templates; do
			"$rbpf" report --json --stack mixed $data.data > want
			"$rbpf" report --json --tree $data.data > tree
			run report --json --sandwich . --stack mixed $data.data
			if ruby -rjson -e '
				want, tree, all = ARGV.map { |f| JSON.parse(File.read(f)) }
				id = ->(x) { x.values_at("kind", "label", "path", "line", "module") }
				rows = want["rows"].to_h { |x| [id[x], x] }
				abort "other methods" unless rows.keys.sort == all["methods"].map(&id).sort
				all["methods"].each do |m|
					row = rows[id[m]]
					abort "#{id[m]}" unless %w[samples total_samples self_ns total_ns].all? { |k| m[k] == row[k] }
					own = m["callees"].sum { |x| x["kind"] == "none" ? x["total_ns"] : 0 }
					abort "self" unless own == row["self_ns"]
					abort "callers" if m["callers"].sum { |x| x["total_ns"] } < m["total_ns"]
				end
				self_ns = Hash.new(0)
				tree["tree"].each { |x| self_ns[id[x]] += x["self_ns"] if x["kind"] }
				rows.each { |k, x| abort "tree: #{k}" unless self_ns[k] == x["self_ns"] }
			' want tree "$out" 2> "$err"; then expect 0 ""; else not_ok "$data"; fi
		done
	else
		skip "there is no ruby"
	fi
fi
if begin "report --md"; then
	run report --md --sandwich 'Cart#total$' full.data
	if ! grep -q '^| 2.73s | 100.0% | 90.0% | 3.4% | \\<main\\> | /app/shop.rb:1 |$' "$out"; then
		not_ok "no row"
	elif grep -qv '^|\|^    \|^$' "$out"; then
		not_ok "text that is no code"
	elif [ "$(grep -c '^| TIME ' "$out")" != "$(grep -B1 '^| TIME ' "$out" | grep -c '^$')" ]; then
		not_ok "a table that follows another line"
	else
		expect 0 ""
	fi
	for view in "" --tree --gc --info "--stack both"; do
		# shellcheck disable=SC2086 # words
		run report --md $view gc.data
		if grep -qv '^|\|^    \|^$' "$out"; then not_ok "$view: text that is no code"; else expect 0 ""; fi
	done
fi
if begin "report --match and --root"; then
	run report --csv --match '^Cart' full.data
	if [ "$(wc -l < "$out")" = 2 ] && grep -q ',30,270,' "$out"; then expect 0 ""; else not_ok "--match"; fi
	run report --csv --root 'Integer#times' full.data
	if [ "$(wc -l < "$out")" = 3 ] && grep -q '^cfunc,Integer#times,,0,,30,240,' "$out"; then
		expect 0 ""
	else
		not_ok "--root"
	fi
	run flame --root 'Integer#times' full.data
	if grep -q 'Cart#total (' "$out" || grep -q '&lt;main>' "$out"; then not_ok "flame --root"; else expect 0 ""; fi
	run report --root nothing full.data
	expect 6 "rbpf: error: no sample of full.data passes the filters"
fi
refuse "'annotate' needs one argument: a method or a file" annotate -i full.data
refuse "unexpected argument 'b' for 'annotate'" annotate -i full.data a b
refuse "--json, --csv and --md exclude each other" annotate -i full.data --csv --md x
refuse "either source lines of Ruby code or, with --stack native, instructions: not --stack both" annotate -i full.data --stack both x
refuse "--module-root is for --stack native" annotate -i full.data --module-root / x
refuse "invalid pattern '(' for the method: *" annotate -i full.data "("
refuse "--context*" annotate -i full.data --context -1 x
if begin "annotate"; then
	mkdir -p source/models
	seq 1 70 | sed 's/^/line /' > source/models/cart.rb
	touch -d 2001-01-01 source/models/cart.rb
	for target in 'Cart#total' cart.rb models/cart.rb /app/models/cart.rb; do
		run annotate -i full.data --source-root source "$target"
		if ! grep -q '^##   2.12s   70.0%  5.2%  2.12s  70.0%  5.2%    59  line 59$' "$out"; then
			not_ok "$target: not the hottest line"
		elif ! grep -q '^     2.73s   90.0%  3.4%  0.30s  10.0%  3.4%    58  line 58$' "$out"; then
			not_ok "$target: not the line with the total"
		elif ! grep -q '^  *61  line 61$' "$out" || grep -q 'line 62' "$out"; then
			not_ok "$target: not two lines around"
		elif grep -q 'was changed' "$out"; then
			not_ok "$target: the file is old"
		else
			expect 0 ""
		fi
	done
	run annotate -i full.data --source-root source '^Cart#total'
	if grep -q '^  called by <main> 2.73s$' "$out" &&
		grep -q '^  calls     Integer#times (C) 2.42s, \[itself\] 0.30s$' "$out"; then
		expect 0 ""
	else
		not_ok "no callers and callees"
	fi
	touch source/models/cart.rb
	run annotate -i full.data --source-root source cart.rb:59
	if ! grep -q 'the file was changed after it was recorded' "$out"; then
		not_ok "the file is new"
	elif grep -q '^##.* 58 ' "$out"; then
		not_ok "another line"
	else
		expect 0 ""
	fi
	run annotate -i full.data cart.rb
	if grep -q '(no source: --source-root names where it is)$' "$out"; then
		expect 0 ""
	else
		not_ok "does not say that there is no source"
	fi
	run annotate -i full.data --csv cart.rb
	if grep -q '^/app/models/cart.rb,58,30,270,303030300,2727272700,' "$out"; then
		expect 0 ""
	else
		not_ok "CSV"
	fi
	for target in cache.rb cache.rb:3 Cache.fill; do
		run annotate -i events.data "$target"
		if grep -q '(alloc)' "$out" && grep -q '^## *4 B  *0\.0%.* 3$' "$out"; then
			expect 0 ""
		else
			not_ok "$target: only the second event has samples of it"
		fi
	done
	run annotate -i events.data --event cpu cache.rb
	expect 6 "rbpf: error: no file and no method in events.data is called 'cache.rb'"
	"$rbpf" annotate -i - cache.rb < events.data > "$out" 2> "$err"
	status=$?
	if grep -q 'hint: --event' "$err"; then expect 6 "rbpf: error: no file*"; else not_ok "no hint"; fi
	run annotate -i full.data cart.rb:9999
	expect 6 "rbpf: error: no sample of full.data is of line 9999 of cart.rb"
	run annotate -i full.data nothing
	expect 6 "rbpf: error: no file and no method in full.data is called 'nothing'"
fi
if begin "annotate --stack native"; then
	run annotate -i merged.data --stack native '^crc32_z$'
	if ! grep -q '^crc32_z  /lib/libz.so.1$' "$out"; then
		not_ok "no title"
	elif ! grep -q '^  no instructions: No such file or directory$' "$out"; then
		not_ok "does not say that there is no file"
	elif ! grep -q '^##  *0.02s  *50.0%  *35.0%  *0.02s  *50.0%  *35.0%  *0$' "$out"; then
		not_ok "not the samples of the address"
	else
		expect 0 ""
	fi
	run annotate -i merged.data --stack native --csv '^(crc32_z|main)$'
	if grep -q '^/lib/libz.so.1,crc32_z,0,,,0,2,2,20202020,20202020,' "$out" &&
		grep -q '^/usr/bin/ruby3.1,main,0,,,0,0,2,0,20202020,' "$out"; then
		expect 0 ""
	else
		not_ok "CSV"
	fi
	run annotate -i merged.data --stack native --json '^crc32_z$'
	if grep -q '"label":"crc32_z","module":"/lib/libz.so.1","build_id":"c0ffee","inlined_into":null,"start":0,"end":0,"note":"No such file or directory","instructions":\[{"address":0,"size":0,"instruction":"","path":"","line":0,"samples":2,' "$out"; then
		expect 0 ""
	else
		not_ok "JSON"
	fi
	run annotate -i merged.data --stack native 'Cart#total'
	expect 6 "rbpf: error: no native function in merged.data is called 'Cart#total'"
	run annotate -i merged.data crc32_z
	if grep -q 'with --stack native, native functions are looked for' "$err"; then
		expect 6 "rbpf: error: no file and no method*"
	else
		not_ok "no hint"
	fi
fi
refuse "--filter: there is no 'thred' (did you mean thread?)" report --filter "pid = 1 and thred = x" full.data
refuse "--filter asks for event alloc, --event for cpu" report --filter "event = alloc" --event cpu events.data
refuse "the start that --filter asks for must be before the end that --filter asks for" report --filter "time >= 2s and time < 1s" full.data
refuse "--from must be before the end that --filter asks for" report --from 2s --filter "time < 1s" full.data
refuse "the start that --filter asks for must be before --base-to" flame --base-to 1s --filter "time >= 1s" full.data
refuse "the start that --filter asks for must be before --to" report --filter "time >= 22:13:22Z" --to 1s full.data
if begin "a filter expression"; then
	run report --filter 'pid = 1 and thred = x' full.data
	if [ "$(sed -n 2,3p "$err")" = "  pid = 1 and thred = x
              ^" ]; then expect 2 "*"; else not_ok "no caret below the fault"; fi
	# The same by options and by terms, in views that add up and in exports that stream.
	for pair in "--thread worker|thread =~ /worker/" "--from 1s --to 2s|time >= 1s and time < 2s" \
		"--from 1s|not time < 1s and (time < 500ms or time >= 1s)" "--include total|frame =~ /total/" \
		"--exclude total --from 1s|not frame =~ /total/ and time >= 1s" \
		"--from 22:13:21Z|time >= 22:13:21Z or time >= 2023-11-14T22:13:21Z" \
		"--thread worker --to 1s|(time < 1s or pid = 1) and thread = \"worker, 1\""; do
		for view in "report --csv -n 0" "report --tree" "report --by time" "export -f folded" \
			"export -f perf-script" "export -f pprof" "export -f chrome" \
			"export -f callgrind" "export -f stackprof"; do
			# pprof has the time that it is of, which terms of "or" and "not" leave open.
			case "$view|${pair#*|}" in
			*pprof*" or "* | *pprof*not\ time*) continue ;;
			esac
			# shellcheck disable=SC2086 # words
			run $view ${pair%%|*} full.data
			mv "$out" want
			# shellcheck disable=SC2086
			run $view --filter "${pair#*|}" full.data
			if cmp -s want "$out" && [ -s want ]; then expect 0 ""; else not_ok "$view: not as ${pair%%|*}"; fi
		done
	done
	run report --filter 'event = alloc and frame = Cache.fill' events.data
	if grep -q '4 B.* Cache.fill' "$out"; then expect 0 ""; else not_ok "the event"; fi
	run report --filter 'pid = 1' full.data
	expect 6 "rbpf: error: no sample of full.data passes the filters*"
fi
refuse "two recordings are needed: BEFORE and AFTER" diff full.data
refuse "two recordings are needed: BEFORE and AFTER" diff full.data gc.data few.data
refuse "two recordings are needed: BEFORE and AFTER" check --fail-on 'x>1%'
refuse "--json and --csv exclude each other" diff --json --csv full.data gc.data
refuse "--self is of methods: not with --by request" diff --by request --self full.data gc.data
refuse "unknown value 'line' for --by*" diff --by line full.data gc.data
refuse "methods are compared in one stack: not with --stack both" diff --stack both full.data gc.data
refuse "unknown value 'all' for --normalize*" diff --normalize all full.data gc.data
refuse "--fail-on is missing: *" check full.data gc.data
refuse "a rule is a share: not with --normalize none" check --fail-on 'x>1%' --normalize none full.data gc.data
refuse "--fail-on 'Cart' is not METHOD>PERCENT" check --fail-on Cart full.data gc.data
refuse "--fail-on*" check --fail-on 'Cart>' full.data gc.data
refuse "--fail-on*" check --fail-on 'Cart>x%' full.data gc.data
refuse "--fail-on*" check --fail-on 'Cart>101%' full.data gc.data
refuse "--fail-on: the pattern is empty" check --fail-on '>1%' full.data gc.data
refuse "invalid pattern '(' for --fail-on: *" check --fail-on '(>1%' full.data gc.data
if begin "diff"; then
	run diff full.data gc.data
	if ! grep -q '^+20.0%  +15.7%  +24.9%    0.0%   20.0%  new      (marking)$' "$out"; then
		not_ok "what is new"
	elif ! grep -q '^-20.0%  -27.5%  -12.2%   70.0%   50.0%           block in Cart#total' "$out"; then
		not_ok "what shrank"
	elif ! grep -q '^ +0.0%   -4.9%   +4.9%   90.0%   90.0%  chance?  Cart#total ' "$out"; then
		not_ok "what may be chance"
	elif ! grep -q '^  3 of 7 methods differ by more than chance (95 % intervals)$' "$out"; then
		not_ok "no conclusion"
	elif [ "$(grep -c '^  command: rbpf record -p 4242$' "$out")" != 2 ]; then
		not_ok "no command lines"
	else
		expect 0 ""
	fi
	run diff --csv gc.data full.data
	if grep -q '^gc,(marking),,0,-0.2,.*,0.2,0,1,gone,60,0,606060600,0' "$out"; then expect 0 ""; else not_ok "gone"; fi
	# Twice the same recording are not more of each method, but narrower intervals.
	run diff -n 1 full.data full.data -- gc.data gc.data
	if grep -q '^+20.0%  +16.*  +2.*  20.0%  new' "$out"; then expect 0 ""; else not_ok "two of a side"; fi
	run diff -n 1 --self full.data gc.data
	if grep -q '^self times, shares of all time: 3.0 s and 3.0 s$' "$out"; then expect 0 ""; else not_ok "--self"; fi
	run diff --by request full.data gc.data
	if grep -q '^+0.0%  -1.3%  +1.3%  100.0%  100.0%  chance?  \[no request\]' "$out" &&
		grep -q '^  0 of 1 request differs by more than chance' "$out" && grep -q 'REQUEST  *FRAMEWORK' "$out"; then
		expect 0 ""
	else
		not_ok "--by request"
	fi
	run diff --tid 1 full.data gc.data
	expect 6 "rbpf: error: no sample of the recordings before passes the filters"
	run diff full.data nothing.data
	expect 5 "rbpf: error: *nothing.data*"
	run diff --event alloc full.data events.data
	expect 2 "rbpf: error: *alloc*"
	run diff --json merged.data templates.data
	if command -v ruby > /dev/null; then
		"$rbpf" report --json -n 0 merged.data > want
		if ruby -rjson -e '
			want, got = ARGV.map { |f| JSON.parse(File.read(f)) }
			total = want["rows"].to_h { |r| [r["label"], r["total_ns"]] }
			told = got["before"]["recordings"]
			abort "recordings" unless told == [{ "file" => "merged.data" }.merge(told[0]).merge(want["summary"])]
			abort "files" unless got["after"]["recordings"].map { |r| r["file"] } == ["templates.data"]
			got["rows"].each do |r|
				next if r["before_samples"].zero?
				abort r["label"] unless total[r["label"]] == r["before_ns"]
				abort "interval" unless r["low"] <= r["delta"] && r["delta"] <= r["high"]
				abort "significant" unless r["significant"] == (r["low"] > 0 || r["high"] < 0)
			end
		' want "$out" 2> "$err"; then expect 0 ""; else not_ok "not the totals of the report"; fi
	fi
fi
for args in "--split thread" "--stack both" "--color hash" "--pid 4242" "--tid 4242"; do
	# shellcheck disable=SC2086 # words
	refuse "--diff and ${args%% *}*exclude each other" flame --diff full.data $args gc.data
done
if begin "flame --diff"; then
	run flame --diff full.data gc.data
	if ! grep -q '^before 0.00%: +20.00%, from +15.68% to +24.89%$' "$out"; then
		not_ok "what is new"
	elif ! grep -q '^shrank · /app/models/cart.rb:58$' "$out"; then
		not_ok "what shrank"
	elif ! grep -q 'compared with full.data (300 samples)' "$out"; then
		not_ok "with what"
	else
		expect 0 ""
	fi
	run flame --diff full.data --inverted --root 'Cart#total' --collapse-recursion gc.data
	if grep -q '^before 22.22%: +0.00%' "$out" || ! grep -q '^before 0.00%: +22.22%' "$out"; then
		not_ok "--inverted --root"
	else
		expect 0 ""
	fi
	# Values of its samples are exact: there is no chance in them.
	run flame --diff events.data --event alloc events.data
	if ! grep -q '^before [1-9][0-9.]*%: ' "$out"; then
		not_ok "no frame of an exact event"
	elif grep '^before' "$out" | grep -qv ': +0.00%, from +0.00% to +0.00%$'; then
		not_ok "chance in an exact event"
	else
		expect 0 ""
	fi
	run flame --diff nothing.data gc.data
	expect 5 "rbpf: error: *nothing.data*"
fi
if begin "check"; then
	run check --fail-on 'garbage>15%' full.data gc.data
	expect 7 ""
	if grep -q "^  1 of 1 method has grown by more than 'garbage>15%' allows$" "$out"; then expect 7 ""; else not_ok "why"; fi
	run check --fail-on '.>5%' full.data gc.data
	if [ "$(grep -c 'new  (' "$out")" = 2 ]; then expect 7 ""; else not_ok "both"; fi
	# 20 % more, and perhaps not more than 17 %.
	run check --fail-on 'garbage>17%' full.data gc.data
	expect 0 ""
	run check --fail-on 'Cart#total>1%' full.data gc.data
	expect 0 ""
	run check --fail-on '.>1%' gc.data gc.data
	expect 0 ""
	# Of 10 samples next to nothing is certain.
	run check --fail-on '.>5%' few.data full.data
	expect 0 ""
	run check --fail-on 'nothing>5%' full.data gc.data
	expect 6 "rbpf: error: no method has a name that matches 'nothing'"
	if grep -q "hint: 'rbpf report -n 0' lists them" "$err"; then ok; else not_ok "no hint"; fi
	run check --by request --fail-on 'nothing>5%' full.data gc.data
	expect 6 "rbpf: error: no request has a name that matches 'nothing'"
fi
# prints TEXT COMMAND...: the command prints a line that is TEXT, a pattern of grep.
prints() {
	text=$1
	shift
	begin "$* prints $text" || return 0
	run "$@"
	if grep -qx -- "$text" "$out"; then expect 0 ""; else not_ok "has no line '$text'"; fi
}
# first_row TEXT COMMAND...: the first row of the table that the command prints has TEXT.
first_row() {
	want=$1
	shift
	begin "$* begins with $want" || return 0
	run "$@"
	sed -n '/ SELF% /{n;p;q;}' "$out" > got
	if grep -q -- "$want" got; then expect 0 ""; else not_ok "begins with '$(cat got)'"; fi
}
first_row "block in Cart#total" report full.data
first_row "<main>" report --sort total full.data
first_row "worker, 1 (tid 4243)" report --by thread --tid 4243 containers.data
first_row "pool \* (2)" report --by thread --merge-threads pool.data
first_row "pool 2 (tid 4243)" report --by thread --merge-threads --tid 4243 pool.data
if begin "threads are merged in a flame graph"; then
	run flame --split thread --merge-threads pool.data
	expect 0 ""
	if grep -q '<title>pool \* (2)$' "$out" && ! grep -q '<title>pool [12]' "$out"; then ok; else not_ok "no tower for both"; fi
fi
prints ".* 0.0%  .*  <main> .*" report -n 0 full.data
prints "ruby;<main>;Cart#total 30" export -f folded full.data
prints "ruby;worker, 1;<main>;Cart#total;Integer#times;block in Cart#total 30" export -f folded --threads full.data
prints "ruby;<main>;Cart#total;Integer#times;block in Cart#total 2121212" export -f folded --weight time full.data
prints "puma;<main>;app/views/orders/_order.html.erb;block in app/views/orders/_order.html.erb 2" export -f folded \
	templates.data
prints "puma;<main>;views/index.erb 2" export -f folded templates.data
prints "puma;<main>;views/layout.erb 2" export -f folded templates.data
if begin "templates of two workers are the same"; then
	for view in "report --csv" "report --json" "report --tree" "report --by line --csv" flame "flame --inverted" \
		"export -f folded"; do
		# shellcheck disable=SC2086 # words
		run $view templates.data
		if grep -q '_9700\|_10040\|__tilt' "$out"; then
			not_ok "$view: shows a method's name"
		elif ! grep -q 'app/views/orders/_order.html.erb' "$out"; then
			not_ok "$view: shows no label"
		else
			expect 0 ""
		fi
	done
	run report --csv templates.data
	if [ "$(grep -c 'views/' "$out")" = 4 ]; then expect 0 ""; else not_ok "not one row each"; fi
	run report --include '^app/views/orders/_order.html.erb$' templates.data
	if grep -q '^filtered: 20 ms of 61 ms (33.3%), 2 samples$' "$out"; then expect 0 ""; else not_ok "not found by its label"; fi
	run export -f json templates.data
	for raw in '"raw_label":"_app_views_orders__order_html_erb__3472281419498755117_9700"' \
		'"raw_label":"block in _app_views_orders__order_html_erb___882280991498755110_10040"' \
		'"raw_label":"Tilt::CompiledTemplates#__tilt_60"'; do
		if grep -qF "$raw" "$out"; then expect 0 ""; else not_ok "no $raw"; fi
	done
	run export -f json full.data
	if grep -q 'raw_label' "$out"; then not_ok "a label that is its name"; else expect 0 ""; fi
fi
if begin "rows of several processes say of how many"; then
	for view in "report --by container" "report --by ruby"; do
		# shellcheck disable=SC2086 # words
		run $view few.data
		if grep -q ' and [0-9]* more' "$out"; then not_ok "$view: of one"; else expect 0 ""; fi
	done
fi
if begin "options of flame change the picture"; then
	run flame full.data
	cp "$out" usual.svg
	titles() { grep -c '<title>' "$1"; }
	for args in "--inverted" "--icicle" "--title Elsewhere" "--color hash" "--width 2000" "--min-width 40" \
		"--split thread"; do
		# shellcheck disable=SC2086 # words
		run flame $args full.data
		sed 's/drawn_by[^,]*,//' "$out" > other.svg
		if sed 's/drawn_by[^,]*,//' usual.svg | cmp -s - other.svg; then
			not_ok "$args: the same"
		else
			expect 0 ""
		fi
	done
	run flame --title Elsewhere full.data
	if grep -q Elsewhere "$out"; then expect 0 ""; else not_ok "no title"; fi
	run flame --min-width 40 full.data
	if [ "$(titles "$out")" -lt "$(titles usual.svg)" ]; then expect 0 ""; else not_ok "as many frames"; fi
	run flame --inverted full.data
	if [ "$(titles "$out")" -gt "$(titles usual.svg)" ]; then expect 0 ""; else not_ok "no more frames"; fi
fi
# What is read twice from a file is kept in memory from a pipe.
for format in folded json speedscope firefox pprof callgrind perf-script chrome stackprof sampling-prof dot; do
	begin "export -f $format of standard input and of a file are the same" || continue
	run export -f $format gc.data
	cp "$out" from_file
	[ -s "$out" ] || not_ok "nothing"
	# shellcheck disable=SC2002 # a pipe is meant
	cat gc.data | "$rbpf" export -f $format - > "$out" 2> "$err"
	status=$?
	if ! cmp -s "$out" from_file; then not_ok "they differ"; else expect 0 ""; fi
	"$rbpf" export -f $format - < gc.data > "$out" 2> "$err"
	status=$?
	if ! cmp -s "$out" from_file; then not_ok "they differ, from a file"; else expect 0 ""; fi
	run export -f $format --tid 4243 --from 1s --to 2s -o some.out gc.data
	if [ ! -s some.out ] || cmp -s some.out from_file; then not_ok "--tid takes nothing away"; else expect 0 ""; fi
done
if begin "export -f json has what passes the filter"; then
	run export -f json --tid 4243 containers.data
	if [ "$(grep -o '"ts_ns":' "$out" | wc -l)" = 30 ]; then expect 0 ""; else not_ok "all samples"; fi
fi
if begin "report --by container and ruby"; then
	run report --by container containers.data
	if ! grep -q ' CONTAINER  *PROCESSES$' "$out" ||
		! grep -q ' \[no container\]  ruby (pid 4242)$' "$out" ||
		! grep -q ' 3f2a9c1b0d4e  *sidekiq (pid 4300)$' "$out"; then
		not_ok "no containers"
	else
		expect 0 ""
	fi
	run report --by ruby containers.data
	if grep -q ' 3.1.2  ruby (pid 4242)$' "$out" && grep -q ' 3.3.6  sidekiq (pid 4300)$' "$out"; then
		expect 0 ""
	else
		not_ok "no versions"
	fi
	run report --by process containers.data
	if grep -q ' sidekiq (pid 4300, 7 in 3f2a9c1b0d4e)  sidekiq 7.1.0 jobs$' "$out" &&
		grep -q ' ruby (pid 4242)  *ruby shop.rb$' "$out"; then
		expect 0 ""
	else
		not_ok "no pid inside"
	fi
	run report --csv --by container containers.data
	if head -1 "$out" | grep -q '^container,processes,samples,' &&
		grep -q '^3f2a9c1b0d4e[0-9a-f]\{52\},1,75,75,' "$out" && grep -q '^,1,225,225,' "$out"; then
		expect 0 ""
	else
		not_ok "--csv"
	fi
	run report --info containers.data
	if grep -q '^  pid 4300, 7 in 3f2a9c1b0d4e  ruby 3.3.6  sidekiq 7.1.0 jobs$' "$out"; then
		expect 0 ""
	else
		not_ok "--info"
	fi
fi
if begin "report --by time"; then
	TZ=Asia/Kolkata run report --by time full.data
	[ "$(grep -o '[0-9]s  *03:43:2[0-9][.]000$' "$out" | tr -s ' \n' ' ')" = \
		"0s 03:43:20.000 1s 03:43:21.000 2s 03:43:22.000 3s 03:43:23.000 " ] || not_ok "not four seconds"
	run report --by time --csv -n 1 --sort self full.data
	grep -q '^0,1700000000000000000,99,99,' "$out" || not_ok "CSV"
	run report --by time --csv --from 1s --to 2s full.data
	[ "$(grep -c '' "$out")" = 2 ] && grep -q '^1000000000,1700000001000000000,99,99,' "$out" ||
		not_ok "--from and --to"
	expect 0 ""
fi
if begin "--from and --to by the clock"; then
	run report --csv --from 1s --to 2s full.data
	cp "$out" "$out.usual"
	for range in "22:13:21Z 22:13:22Z" "2023-11-14T22:13:21Z 2s" "1s 2023-11-14T22:13:22.0Z"; do
		run report --csv --from "${range% *}" --to "${range#* }" full.data
		cmp -s "$out" "$out.usual" || not_ok "$range"
	done
	TZ=IST-5:30 run report --csv --from 03:43:21 --to 03:43:22 full.data
	cmp -s "$out" "$out.usual" || not_ok "in another time zone"
	TZ=IST-5:30 run report --info full.data
	grep -q '^start  *2023-11-15 03:43:20 IST$' "$out" || not_ok "--info"
	run flame --from 22:13:21Z full.data
	grep -q 'from_ns&quot;:1000000000[,}]' "$out" || not_ok "flame"
	run report --to 22:00Z full.data
	expect 6 "rbpf: error: no sample of full.data passes the filters"
fi
refuse "--from must be before --to" report --from 22:13:22Z --to 22:13:21Z full.data
refuse "--from must be before --to" report --from 22:13:22Z --to 1s full.data
refuse "--base-from must be before --base-to" flame --base-from 22:13:22Z --base-to 22:13:21Z full.data
refuse "--from: '12:0' is no time" report --from 12:0 full.data
refuse "--to: *" report --to soon full.data
if begin "--app and --hide"; then
	run report --app gems.data
	grep -q ' 80.0%  .*  Cart#total ' "$out" || not_ok "the application has what it calls"
	grep -q '(20.0%) in stacks of which all frames are hidden$' "$out" || not_ok "the rest"
	run report --app --csv gems.data
	[ "$(grep -c '' "$out")" = 2 ] || not_ok "--app: other rows"
	run report --tree --hide gems,cfunc gems.data
	grep -q ' 80.0%  *60.0%  .*Cart#total' "$out" && grep -q ' 20.0%  *20.0%  .*JSON.generate' "$out" ||
		not_ok "--tree"
	! grep -q 'Rack\|Array' "$out" || not_ok "--tree shows what is hidden"
	run flame --hide stdlib,native gems.data
	grep -q '<title>Rack::Builder#call' "$out" && ! grep -q '<title>JSON\|<title>deflate' "$out" ||
		not_ok "flame"
	grep -q 'stdlib, native hidden' "$out" && grep -q 'hide&quot;:\[&quot;stdlib' "$out" ||
		not_ok "flame does not say so"
	grep -q 'Ruby stdlib 20.0%</text>' "$out" || not_ok "the legend is of all time"
	run flame --app gems.data
	grep -q 'application code only' "$out" || not_ok "flame --app does not say so"
	run export -f folded --app gems.data
	grep -qx 'ruby;Cart#total 8' "$out" || not_ok "folded"
	expect 0 ""
fi
refuse "--hide: unknown kind of code 'gem' (did you mean gems?)" report --hide gem full.data
refuse "--hide: unknown kind of code ''" flame --hide gems, full.data
refuse "--hide must not be empty" flame --hide= full.data
if begin "report --by gem"; then
	run report --by gem gems.data
	for row in "50.0% .* 70.0%  rack 2.2.4 * gem" "20.0% .* 20.0%  json * stdlib" \
		"10.0% .* 80.0%  \[application\] * app" "20.0% .* 20.0%  \[no Ruby code\]  none"; do
		grep -q "  $row$" "$out" || not_ok "no '$row'"
	done
	cp "$out" "$out.usual"
	run report --by gem --stack native gems.data
	cmp -s "$out" "$out.usual" || not_ok "--stack native"
	run report --by gem --csv gems.data
	grep -q '^rack,2.2.4,gem,5,7,' "$out" || not_ok "CSV"
	run flame gems.data
	for kind in "Ruby app 10.0%" "Ruby gem 0%" "Ruby stdlib 20.0%" "C method 50.0%" "native 20.0%"; do
		grep -q "$kind</text>" "$out" || not_ok "no '$kind' in the legend"
	done
	expect 0 ""
fi
if begin "flame --split container and ruby"; then
	run flame --split container containers.data
	if grep -q '\[no container\]' "$out" && grep -q '3f2a9c1b0d4e' "$out"; then
		expect 0 ""
	else
		not_ok "no containers"
	fi
	run flame --split ruby containers.data
	if grep -q '>ruby 3.1.2' "$out" && grep -q '>ruby 3.3.6' "$out"; then
		expect 0 ""
	else
		not_ok "no versions"
	fi
fi
if begin "each filter on each view"; then
	# What some samples pass, then what none passes.
	for filter in "--pid=4300 --pid=1" "--tid=4243 --tid=1" "--thread=^worker --thread=zzz" \
		"--comm=sidekiq --comm=zzz" "--container=^3f2a --container=zzz" \
		"--container=docker- --container=/lxc" "--include=Cart --include=zzz" \
		"--exclude=Caf --exclude=<main>" "--from=1s --from=1h" "--to=1s --to=1us"; do
		some=${filter% *}
		none=${filter#* }
		for view in "report" "report --info" "report --tree" "report --gc" "report --json" "report --csv" \
			"report --gc --json" "report --gc --csv" "report --info" "flame" \
			"export -f flame"; do
			# shellcheck disable=SC2086 # words
			run $view "$some" containers.data
			[ "$status" = 0 ] || not_ok "$view $some"
			# shellcheck disable=SC2086
			run $view "$none" containers.data
			[ "$status" = 6 ] || not_ok "$view $none"
		done
		run report --json "$some" containers.data
		if grep -q '"selected_samples":\(300\|0\),' "$out"; then not_ok "$some takes nothing away"; fi
		run export -f folded "$some" containers.data
		[ -s "$out" ] || not_ok "export $some"
		run export -f folded "$none" containers.data
		if [ -s "$out" ]; then not_ok "export $none"; else ok; fi
	done
	for view in "report" "report --tree" "report --gc" "report --json" "report --csv" "report --info" \
		"flame" "export -f folded" "export -f json" "export -f speedscope" "export -f pprof" \
		"export -f callgrind" "export -f perf-script" "export -f firefox" "export -f chrome" \
		"export -f stackprof" "export -f sampling-prof" "export -f dot"; do
		# shellcheck disable=SC2086
		run $view --ruby-only --pid 4242,4300 --from 100ms --to 2s gc.data
		expect 0 ""
	done
fi

# --- Native stacks

refuse "--ruby-only means --stack ruby: it cannot be given with --stack native" report --ruby-only --stack native
refuse "unknown value 'rubby' for --stack (did you mean ruby?)" flame --stack rubby
refuse "--threads works with -f folded only, not with -f pprof" export -f pprof --threads full.data
refuse "--weight works with -f folded only, not with -f stackprof" export -f stackprof --weight samples full.data
refuse "--stack both works with -f flame only, not with -f folded" export -f folded --stack both merged.data
refuse "--tree and --stack both exclude each other" report --tree --stack both
refuse "--csv and --stack both exclude each other" report --csv --stack both
refuse "--gc and --stack both exclude each other" report --gc --stack both
refuse "--stack both needs --by method or line, not --by file" report --stack both --by file
# shows MODE TEXT COMMAND...: MODE is what COMMAND does by itself, and then its output has TEXT.
shows() {
	mode=$1
	text=$2
	shift 2
	begin "stacks: $* shows $mode" || return 0
	run "$@" merged.data
	cp "$out" "$out.usual"
	run "$@" --stack "$mode" merged.data
	if ! cmp -s "$out" "$out.usual"; then
		not_ok "differs from --stack $mode"
	elif ! grep -q -- "$text" "$out"; then
		not_ok "has no '$text'"
	else
		expect 0 ""
	fi
}
shows ruby "Zlib.crc32 (C)$" report
shows ruby "\[native thread\]$" report
shows mixed "crc32_z  libz.so.1$" report --tree
shows mixed "libz.so.1$" report --by module
shows mixed "native$" report --by kind
shows mixed "^ruby;main;Cart#total;Zlib.crc32;crc32_z 2$" export -f folded
shows all '"label":"rb_vm_exec",.*"internal":true' export -f json
if begin "stacks: shares by kind are the same whatever is shown"; then
	run report --by kind merged.data
	cp "$out" "$out.usual"
	grep -q '75.0%.* native$' "$out" || not_ok "native"
	for mode in all mixed ruby native; do
		run report --by kind --stack $mode merged.data
		cmp -s "$out" "$out.usual" || not_ok "--stack $mode"
	done
	expect 0 ""
fi
if begin "stacks: --stack both"; then
	run report --stack both merged.data
	if ! grep -q "^Zlib.crc32 (C)$" "$out" ||
		! grep -q "native stacks: 3 of 4 complete (75.0%); gaps: the file has no unwind table 1$" "$out"; then
		not_ok "wrong columns"
	else
		expect 0 ""
	fi
	run flame --stack both merged.data
	cp "$out" "$out.svg"
	run export -f flame --stack both merged.data
	if ! grep -q "<title>native stacks" "$out" || ! grep -q "<title>native stacks" "$out.svg"; then
		not_ok "no second graph"
	else
		expect 0 ""
	fi
fi
if begin "stacks: without native ones all modes are the same"; then
	for view in "report" "report --tree" "report --by kind" "flame" "export -f folded" "export -f json"; do
		# shellcheck disable=SC2086 # words
		run $view gc.data
		[ "$status" = 0 ] || not_ok "$view"
		sed 's/drawn_by[^,]*,//' "$out" > "$out.usual"
		for mode in all mixed; do
			# shellcheck disable=SC2086
			run $view --stack $mode gc.data
			sed 's/drawn_by[^,]*,//' "$out" | cmp -s - "$out.usual" || not_ok "$view --stack $mode"
		done
	done
	ok
fi
if begin "--info lists what passes the filters"; then
	run report --info --container '^$' containers.data
	if grep -q '^processes  1 of 2$' "$out" && grep -q '^threads    2 of 3$' "$out" &&
		! grep -q sidekiq "$out"; then
		expect 0 ""
	else
		not_ok "does not"
	fi
fi
if begin "report --gc"; then
	run report --gc gc.data
	if ! grep -q '^garbage collection: 606 ms of 3.0 s (20.0%)$' "$out"; then
		not_ok "does not say how much"
	elif ! grep -q '^0.61s  100.0%  20.0%  marking$' "$out"; then
		not_ok "no phase"
	elif ! grep -q ' CAUSED BY ' "$out" || ! grep -q ' 100.0%  Integer#times (C)$' "$out"; then
		not_ok "no cause"
	elif ! grep -q ' worker, 1 (tid 4243) ' "$out"; then
		not_ok "no thread"
	elif ! grep -q 'cpu sampled .*   GC 20.0%$' "$out"; then
		not_ok "no share in the footer"
	else
		expect 0 ""
	fi
	run report --gc --by line -n 1 gc.data
	if ! grep -q 'Integer#times (C)  /app/models/cart.rb:58$' "$out"; then
		not_ok "no line"
	elif ! grep -q '^  2 more lines hidden by -n$' "$out"; then
		not_ok "no limit"
	else
		expect 0 ""
	fi
	run report --gc full.data
	if grep -q '^garbage collection: 0 s of 3.0 s (0.0%)$' "$out"; then expect 0 ""; else not_ok "none"; fi
	run report full.data
	if grep -q 'GC' "$out"; then not_ok "a share of 0"; else expect 0 ""; fi
fi
if begin "report --gc for programs"; then
	if command -v ruby > /dev/null; then
		run report --gc --json gc.data
		if ruby -rjson -e '
			r = JSON.parse(File.read(ARGV[0])); gc = r["gc"]
			abort "time" unless gc["ns"] * 5 == r["summary"]["selected_ns"]
			abort "recording" unless gc["ns"] == r["summary"]["gc_ns"]
			%w[phases processes threads].each do |part|
				abort part unless gc[part].sum { |x| x["ns"] } == gc["ns"]
			end
			abort "rows" unless r["rows"].sum { |x| x["self_ns"] } == gc["ns"]
		' "$out" 2> "$err"; then expect 0 ""; else not_ok "--json"; fi
	else
		skip "there is no ruby"
	fi
	run report --gc --csv -n 1 gc.data
	if grep -q '^cfunc,Integer#times,,0,,60,60,' "$out"; then expect 0 ""; else not_ok "--csv"; fi
fi
if begin "--no-gc drops samples"; then
	run report --no-gc gc.data
	if ! grep -q '^filtered: 2\.4 s of 3\.0 s (80.0%), 240 samples$' "$out" || grep -q '(marking)' "$out"; then
		not_ok "report"
	else
		expect 0 ""
	fi
	run export -f folded --no-gc gc.data
	if grep -q 'garbage' "$out"; then not_ok "export"; else expect 0 ""; fi
	run flame --no-gc gc.data
	if grep -q 'garbage' "$out"; then not_ok "flame"; else expect 0 ""; fi
	run export -f folded gc.data
	if grep -q ';Integer#times;(garbage collection);(marking) 60$' "$out"; then
		expect 0 ""
	else
		not_ok "export without it"
	fi
fi
if begin "timeline and heatmap: options change the page"; then
	for page in timeline heatmap; do
		run $page full.data
		expect 0 ""
		cp "$out" want.html
		grep -q '^<!DOCTYPE html>' want.html || not_ok "$page is no page"
		grep -q "default-src 'none'" want.html || not_ok "$page allows more than itself"
		if grep -Eq '<link|<img|src=|https?://[^w]' want.html; then not_ok "$page fetches something"; fi
		run $page full.data
		cmp -s "$out" want.html || not_ok "$page differs from time to time"
		for args in "--title Elsewhere" "--from 1s" "--include Cart" "--stack ruby" "--tid 7"; do
			# shellcheck disable=SC2086 # words
			run $page $args full.data
			case $args:$status in
			*:0) if cmp -s "$out" want.html; then not_ok "$page $args changes nothing"; else ok; fi ;;
			*) expect 6 "rbpf: error: *" ;;
			esac
		done
		"$rbpf" $page < full.data - > "$out" 2> "$err" # read once, from a pipe or not
		status=$?
		expect 0 ""
		grep -q '"filters":\["--include","a b'"'"'c|Cart"\]' "$out" && not_ok "filters of another page"
		run $page --include "a b'c|Cart" full.data
		grep -q '"filters":\["--include","a b'"'"'c|Cart"\]' "$out" || not_ok "$page does not tell its filters"
		run $page --stack both full.data
		expect 2 "rbpf: error: --stack both works with flame and report only"
		run $page -o full.data full.data
		expect 2 "rbpf: error: cannot write to full.data: it is the recording that is read"
	done
	run heatmap full.data
	cp "$out" want.html
	run heatmap --rows 10 full.data
	if cmp -s "$out" want.html; then not_ok "--rows"; else expect 0 ""; fi
	run timeline --event alloc events.data
	expect 2 "rbpf: error: a timeline shows the time of threads, which samples of 'alloc' are not"
	run heatmap --event alloc events.data
	if grep -q '"unit":"bytes"' "$out"; then expect 0 ""; else not_ok "heatmap of bytes"; fi
fi
refuse "--rows must be between 1 and 1000, got 0" heatmap --rows 0 full.data
refuse "--max-size*" timeline --max-size 1K full.data
refuse "timeline shows what threads did themselves: not with --waker" timeline --waker full.data
refuse "timeline shows what threads did themselves: not with --blocker" timeline --blocker nothing.data
if begin "timeline: what it refuses is not offered"; then
	for args in "timeline --help" "help timeline" "completion bash" "completion zsh" "completion fish" "__options"; do
		# shellcheck disable=SC2086 # words
		run $args
		# Of fish and of the table each line is of one option, of bash each is of one command, of zsh a case is.
		case $args in
		*zsh) sed -n '/^\t*timeline)/,/;;/p' "$out" > offered.txt ;;
		*) grep -e timeline -e '^      --' "$out" > offered.txt ;;
		esac
		if ! grep -q -e '--event' -e '-l event' offered.txt; then
			not_ok "$args: no --event"
		elif grep -q -e waker -e blocker offered.txt; then
			not_ok "$args offers it"
		else
			expect 0 ""
		fi
	done
	run heatmap --help
	if grep -q -e '--waker' "$out"; then expect 0 ""; else not_ok "heatmap shows it"; fi
fi
refuse "invalid address 'here' for --listen" serve --listen here full.data
refuse "the port of --listen: 65536 is out of range (0 to 65535)" serve --listen 127.0.0.1:65536 full.data
refuse "a recording and processes to watch exclude each other" serve -p 1 full.data
refuse "the recording 'full.data' and -- CMD exclude each other" serve full.data -- true
refuse "-p PID and -- CMD exclude each other" serve -p 1 -- true
refuse "serve reads a recording more than once, so it cannot be a pipe" serve - < full.data
refuse "--keep must be between 1s and 24h" serve -p 1 --keep 25h
refuse "--base-to and --split exclude each other" flame --base-to 1s --split thread full.data
refuse "--base-from: 'x' is not a duration like 30, 1.5, 500ms or 5m" flame --base-from x --base-to 1s --from 2s full.data
refuse "--base-from must be before --base-to" flame --base-from 2s --base-to 1s --from 2s full.data
refuse "--base-to: 0s is out of range (above 0)" flame --base-from 0s --base-to 0s --from 2s full.data
refuse "--to: 0s is out of range (above 0)" report --to 0s full.data
refuse "--diff and --base-from and --base-to exclude each other" flame --diff full.data --base-to 1s full.data
if begin "serve: a file that is no recording"; then
	echo "no recording" > other.txt
	run serve other.txt
	expect 5 "rbpf: error: *is not an rbpf profile*"
fi
if begin "flame: another time of the same recording is what --diff compares with"; then
	run flame --base-to 2s --from 2s full.data
	grep -o 'compared with another time ([0-9,]* samples)' "$out" > said.txt
	run report --json --to 2s full.data
	grep -o '"selected_samples":[0-9]*' "$out" > samples.txt
	if [ "$(tr -dc 0-9 < said.txt)" = "$(tr -dc 0-9 < samples.txt)" ] && [ -s said.txt ]; then
		expect 0 ""
	else
		not_ok "$(cat said.txt samples.txt)"
	fi
	for args in "--pid 4242" "--tid 4242"; do
		# shellcheck disable=SC2086 # words
		run flame --base-to 2s --from 2s $args full.data
		if grep -q 'compared with another time' "$out"; then expect 0 ""; else not_ok "$args"; fi
	done
	run flame --base-from 10s --base-to 11s full.data
	expect 6 "rbpf: error: no sample of full.data between --base-from and --base-to passes the filters"
	if grep -q 'hint: there is nothing to compare with' "$err"; then ok; else not_ok "no hint"; fi
	run flame --base-from 10s full.data
	expect 6 "rbpf: error: no sample of full.data after --base-from passes the filters"
	run flame --base-to 1ms full.data
	expect 6 "rbpf: error: no sample of full.data before --base-to passes the filters"
	run flame --diff few.data --from 2s full.data
	expect 6 "rbpf: error: no sample of few.data passes the filters"
fi
if begin "output to a file"; then
	rm -f out.svg out.folded
	run flame -o out.svg full.data
	if grep -q '<svg' out.svg && [ ! -s "$out" ]; then expect 0 ""; else not_ok "no SVG"; fi
	run export -f folded -o out.folded full.data
	if grep -q '^ruby;<main>.* [0-9]*$' out.folded; then expect 0 ""; else not_ok "not folded"; fi
	if [ "$(id -u)" = 0 ]; then mode=600; else mode=$(printf '%o' $((0666 & ~$(umask)))); fi
	if [ "$(stat -c %a out.svg)$(stat -c %a out.folded)" = $mode$mode ]; then ok; else not_ok "not $mode"; fi
	run flame -o no/such/dir/out.svg full.data
	expect 1 "rbpf: error: *no/such/dir/out.svg*"
fi
if begin "what another user left is neither written to nor read"; then
	if [ "$(id -u)" = 0 ]; then
		mkdir -m 1777 shared
		cp full.data shared/precious
		ln -s precious shared/link
		mkfifo shared/fifo
		echo old > shared/file
		chown -h 65534 shared/link shared/fifo shared/file
		for args in "flame -o shared/link" "flame -o shared/fifo" "flame -o shared/file" \
			"export -f json -o shared/link" "export -f folded -o shared/fifo"; do
			# shellcheck disable=SC2086 # words
			run $args full.data
			expect 1 "rbpf: error: cannot write shared/*: it belongs to another user (uid 65534)"
		done
		for args in "report shared/link" "flame -i shared/fifo"; do
			# shellcheck disable=SC2086 # words
			run $args
			expect 1 "rbpf: error: cannot read shared/*: it belongs to another user (uid 65534)"
		done
		if cmp -s full.data shared/precious; then ok; else not_ok "it has changed"; fi
	else
		skip "needs root, to have files of another user"
	fi
fi
if begin "never overwrites the recording it reads"; then
	cp full.data keep.data
	ln -s keep.data link.data
	run flame -o keep.data keep.data
	expect 2 "rbpf: error: cannot write to keep.data: it is the recording that is read"
	run export -f folded -o ./keep.data -i link.data
	expect 2 "rbpf: error: cannot write to ./keep.data: it is the recording that is read"
	if cmp -s full.data keep.data; then ok; else not_ok "it has changed"; fi
fi

# --- Text of others

# harmless: the last run wrote nothing that a terminal obeys or hides.
harmless() {
	if ! ./mkhostile check < "$out" > what || ! ./mkhostile check < "$err" > what; then
		not_ok "$1: $(cat what)"
	else
		expect 0 "*"
	fi
}

if begin "text of a recording: no command passes on what a terminal obeys"; then
	./mkhostile text hostile.data
	for args in "report" "report --tree" "report --gc" "report --json" "report --csv" \
		"report --by line" "report --by file" "report --by process" "report --by thread" \
		"report --by container" "report --by ruby" "report --by module" "report --by gem" \
		"report --stack both" \
		"report --stack native --by line" "report --gc --json" \
		"annotate --stack native Marked -i" "annotate --stack native --json Marked -i" \
		"flame" "flame --split process" "flame --split container" "flame --split ruby" \
		"flame --split thread" "timeline" "heatmap" "export -f folded" "export -f json" "export -f flame"; do
		# shellcheck disable=SC2086 # words
		run -v $args hostile.data
		harmless "$args"
		if ! grep -q 'Marked' "$out"; then not_ok "$args: shows no name"; else ok; fi
	done
fi
# A recording of 10 kB to 3 MB that wants gigabytes or hours: it gets neither, whatever is asked.
for kind in runs inflate deep threads names; do
	begin "bomb: $kind" || continue
	./mkhostile $kind bomb.data
	for args in "report" "report --json" "flame --inverted" "flame --split thread" "timeline" "heatmap" "export -f folded"; do
		# shellcheck disable=SC2086 # words
		(ulimit -v 3500000 && ulimit -t 60 && exec "$rbpf" $args bomb.data) > "$out" 2> "$err" < /dev/null
		status=$?
		case $kind:$status in
		runs:* | inflate:*) expect 5 "rbpf: error: bomb.data is not a valid recording: it *" ;;
		*:0 | *:6) ok ;;
		*) expect 5 "*" ;;
		esac
		# The first line may be the warning that the recording was not closed.
		[ $status != 5 ] || grep -q '^rbpf: error: .*far more' "$err" || not_ok "$args: no reason"
	done
	rm bomb.data
done

if begin "text of a path: no error message passes it on"; then
	bad=$(printf 'x\033]0;pwned\007\302\2331m\342\200\256y')
	for args in report flame "export -f json"; do
		# shellcheck disable=SC2086 # words
		run $args "$bad"
		if [ -s "$err" ] && ./mkhostile check < "$err" > what; then expect 5 "*"; else
			not_ok "$args: $(cat what)"
		fi
	done
	cp full.data "$bad"
	for args in "" "--by process" "--info" "--gc"; do
		# shellcheck disable=SC2086 # words
		run report -v $args -i "$bad"
		harmless "report $args"
	done
	run flame -o "$bad.svg" -i "$bad"
	harmless "flame"
	run "$bad"
	if ./mkhostile check < "$err" > what; then expect 2 "*"; else not_ok "command"; fi
fi
if begin "text of a process: a version is a version"; then
	cat > fake.c << 'EOF'
#include <unistd.h>
int rb_during_gc, rb_cObject;
char ruby_version[64] = VERSION;
int main(void)
{
	write(1, "x", 1);
	pause();
	return ruby_version[0];
}
EOF
	for version in 3.1.2 2.5.0 '\033[31m3.1.2' '3.1.2\302\233\063\061m' '3.1.2\342\200\256'; do
		# shellcheck disable=SC2086 # CC may be words
		if ! ${CC:-cc} -rdynamic -Wno-unused-result "-DVERSION=\"$version\"" -o fake fake.c; then
			not_ok "no program that says $version"
			break
		fi
		mkfifo ready
		./fake > ready &
		fake=$!
		head -c 1 ready > /dev/null
		run ps
		seen=$(sed -n "s/^ *$fake  *[^ ]*  *[0-9.]*  *[0-9]*[smhd]  *\(.*[^ ]\)  *-  *[^ ]*fake$/\1/p" "$out")
		harmless "ps"
		run ps --json
		harmless "ps --json"
		kill $fake
		wait $fake 2> /dev/null
		rm ready
		case $version in
		3.1.2) want="3.1.2" ;;
		2.5.0) want="2.5.0 (unsupported)" ;; # a Ruby, but none that can be recorded
		*) want= ;;
		esac
		if [ "$seen" = "$want" ]; then ok; else not_ok "ps says '$seen' of $version"; fi
	done
fi

if begin "ps: who may not be looked at"; then
	if [ "$(id -u)" != 0 ] || ! command -v setpriv > /dev/null; then
		skip "it needs root, and setpriv"
	else
		sleep 60 & # it has more capabilities, so it may not be looked at
		sleep=$!
		setpriv --bounding-set=-sys_ptrace "$rbpf" ps > "$out" 2> "$err" < /dev/null
		status=$?
		kill $sleep
		wait $sleep 2> /dev/null
		said='no permission to look at [0-9]* process.*, pids* [0-9]*.*: cannot read /proc/[0-9]*/maps: Permission denied'
		if [ $status = 0 ] && grep -q "^rbpf: warning: $said\$" "$err"; then ok; else not_ok "$(cat "$err")"; fi
	fi
fi

# --- Outputs that fail

for args in "help" "--version" "report full.data" "report --json full.data" "report --tree full.data" \
	"report --gc gc.data" \
	"flame full.data" "export -f folded full.data" "completion bash" "record --help"; do
	begin "full disk: $args" || continue
	: > "$out"
	# shellcheck disable=SC2086 # words
	"$rbpf" $args > /dev/full 2> "$err" < /dev/null
	status=$?
	expect 1 "rbpf: error: *No space left on device*"
	# shellcheck disable=SC2086
	"$rbpf" $args >&- 2> "$err" < /dev/null
	status=$?
	expect 1 "rbpf: error: *"
done
if begin "report --by function is --by method"; then
	"$rbpf" report --by method --json full.data > method.json
	run report --by function --json full.data
	if [ -s method.json ] && cmp -s method.json "$out"; then expect 0 ""; else not_ok "another table"; fi
	refuse "--tree needs --by method or line, not --by file" report --tree --by file full.data
	run report --tree --by function full.data
	expect 0 ""
fi

if begin "export -f svg is export -f flame"; then
	"$rbpf" export -f flame full.data > flame.svg
	run export -f svg full.data
	if cmp -s flame.svg "$out"; then expect 0 ""; else not_ok "another picture"; fi
fi

if begin "full disk: -o"; then
	"$rbpf" flame full.data -o /dev/full > "$out" 2> "$err"
	status=$?
	expect 1 "rbpf: error: *No space left on device*"
fi
for args in "help" "report full.data" "report --json full.data" "flame full.data" \
	"export -f json full.data" "completion zsh"; do
	begin "stdout closed early: $args" || continue
	: > "$out"
	# shellcheck disable=SC2086
	{
		sleep 0.1
		"$rbpf" $args 2> "$err" < /dev/null
		echo $? > status
	} | :
	status=$(cat status)
	expect 0 ""
	# shellcheck disable=SC2086
	{
		"$rbpf" $args 2> "$err" < /dev/null
		echo $? > status
	} | head -1 > "$out"
	status=$(cat status)
	expect 0 ""
done

# --- Terminals

# on_terminal COMMAND: run it on a terminal of 60 columns; both streams end up in $out.
on_terminal() {
	: > "$err"
	script -qec "stty cols 60; $1" /dev/null < /dev/null > "$out" 2>&1
	status=$?
}
esc=$(printf '\033')

if ! command -v script > /dev/null; then
	name=terminals
	skip "there is no script(1)"
else
	if begin "terminal: refuses SVG"; then
		on_terminal "'$rbpf' flame full.data"
		if grep -q '<svg' "$out"; then
			not_ok "wrote it"
		elif ! grep -q 'refusing to write SVG to a terminal' "$out" ||
			! grep -q '^  hint: rbpf flame > out.svg' "$out"; then
			not_ok "does not say so"
		else
			expect 2 ""
		fi
	fi
	for page in timeline heatmap; do
		begin "terminal: refuses HTML of $page" || continue
		on_terminal "'$rbpf' $page full.data"
		if grep -q '<html' "$out"; then
			not_ok "wrote it"
		elif ! grep -q 'refusing to write HTML to a terminal' "$out" ||
			! grep -q "^  hint: rbpf $page > page.html" "$out"; then
			not_ok "does not say so"
		else
			expect 2 ""
		fi
	done
	if begin "terminal: refuses a recording"; then
		on_terminal "'$rbpf' record -o - -p 1"
		if grep -q 'refusing to write a recording to a terminal' "$out"; then
			expect 2 ""
		else
			not_ok "does not say so"
		fi
	fi
	if begin "terminal: refuses pprof's binary format"; then
		on_terminal "'$rbpf' export -f pprof full.data"
		if grep -q 'refusing to write binary data to a terminal' "$out"; then
			ok
		else
			not_ok "$(cat "$out")"
		fi
	fi
	if begin "terminal: folded stacks are text"; then
		on_terminal "'$rbpf' export -f folded full.data"
		if grep -q '^ruby;<main>' "$out"; then expect 0 ""; else not_ok "no stacks"; fi
	fi
	if begin "terminal: the report fits"; then
		for args in "" "--tree" "--by line" "--by file" "--by process" "--by container" "--gc"; do
			on_terminal "'$rbpf' --color never report -q $args gc.data"
			wide=$(tr -d '\r' < "$out" | grep -v 'samples at\|lost\|cpu sampled' |
				grep -E '.{61}' | head -1)
			if [ -n "$wide" ]; then
				not_ok "$args: $wide"
			elif [ "$(wc -l < "$out")" -lt 4 ]; then
				not_ok "$args: no report"
			else
				expect 0 ""
			fi
		done
	fi
	if begin "terminal: colours"; then
		on_terminal "'$rbpf' report full.data; '$rbpf' nonsense"
		if [ "$(grep -c "$esc" "$out")" = 2 ]; then ok; else not_ok "no colours"; fi
		on_terminal "'$rbpf' --color=never report full.data; '$rbpf' --color=never nonsense"
		if grep -q "$esc" "$out"; then not_ok "colours with --color=never"; else ok; fi
		for off in NO_COLOR=1 TERM=dumb TERM=; do
			on_terminal "env $off '$rbpf' report full.data; env $off '$rbpf' nonsense"
			if grep -q "$esc" "$out"; then not_ok "colours with $off"; else ok; fi
		done
		on_terminal "env NO_COLOR= '$rbpf' nonsense"
		if grep -q "$esc" "$out"; then ok; else not_ok "an empty NO_COLOR counts"; fi
	fi
fi
if begin "no colours without a terminal, unless asked"; then
	run report full.data
	if grep -q "$esc" "$out"; then not_ok "colours"; else expect 0 ""; fi
	run report --color always full.data
	if grep -q "$esc" "$out"; then expect 0 ""; else not_ok "no colours"; fi
fi

# --- Completion

for shell in bash zsh fish; do
	begin "completion: $shell accepts it" || continue
	run completion $shell
	if [ $status != 0 ] || ! cp "$out" completion.$shell; then
		not_ok "no script"
	elif ! command -v $shell > /dev/null; then
		skip "there is no $shell"
	elif $shell -n completion.$shell 2> "$err"; then
		expect 0 ""
	else
		not_ok "a syntax error"
	fi
done

# completes WANT WORD...: bash completes the last word to WANT.
completes() {
	want=$1
	shift
	begin "completion: rbpf $*" || return 0
	"$rbpf" completion bash > completion.bash
	# shellcheck disable=SC2016 # for bash to expand
	bash --norc -c '
		compopt() { :; }
		. ./completion.bash
		rbpf() { echo 4242; echo 4711; }
		COMP_WORDS=(rbpf "$@")
		COMP_CWORD=$#
		_rbpf
		echo "${COMPREPLY[*]}"
	' completes "$@" > "$out" 2> "$err"
	status=$?
	got=$(cat "$out")
	if [ "$got" = "$want" ]; then expect 0 ""; else not_ok "'$got', not '$want'"; fi
}

if command -v bash > /dev/null; then
	completes "record report" re
	completes "record" -v rec
	completes "--version" --vers
	completes "--children" record --ch
	completes "--max-cost --max-stack --max-size" record --max
	completes "--no-children --no-native --no-requests --no-peers --no-sources --no-arguments --no-kernel --no-inlines --no-priority" record --no
	completes "4242 4711" record -p 4
	completes "4711" record -p 1,2 --pid = 47
	completes "auto always" --color a
	completes "file function" report --by f
	completes "--no-gc" flame --no
	completes "file function" report --by = f
	completes "hash" flame --color h
	completes "kind module hash state gem" flame --color ""
	completes "container" report --by c
	completes "ruby request" report --by r
	completes "none process thread container ruby request" flame --split ""
	completes "--container" report --cont
	completes "folded" record -p 42 -f fo
	completes "full.data" report fu
	completes "few.data" export -o few
	completes "record report" help re
	completes "bash" completion b
	completes "" record -d 3
	completes "" ps x
else
	name="completion: of words"
	skip "there is no bash"
fi

if begin "completion: fish"; then
	if command -v fish > /dev/null; then
		"$rbpf" completion fish > completion.fish
		for want in "rbpf re:record report" "rbpf report --by f:file function"; do
			fish --no-config -c "source completion.fish; complete -C '${want%%:*}'" \
				2> "$err" | cut -f1 | sort > "$out"
			status=0
			if [ "$(tr '\n' ' ' < "$out")" = "${want#*:} " ]; then
				expect 0 ""
			else
				not_ok "$want"
			fi
		done
	else
		skip "there is no fish"
	fi
fi

# --- What record says before it needs BPF

# as_nobody COMMAND...: run as a user without privileges.
as_nobody() {
	if [ "$(id -u)" != 0 ]; then
		"$@"
	else
		setpriv --reuid=65534 --regid=65534 --clear-groups --inh-caps=-all \
			--bounding-set=-all "$@"
	fi
}

if begin "without privileges: status 4"; then
	if [ "$(id -u)" != 0 ] || command -v setpriv > /dev/null; then
		chmod 755 "$tmp"
		cp "$rbpf" rbpf.copy
		as_nobody ./rbpf.copy record -o /dev/null -p $$ > "$out" 2> "$err" < /dev/null
		status=$?
		expect 4 "rbpf: error: recording needs root*"
		grep -q "^  hint: sudo .*record " "$err" || not_ok "no hint to use sudo"
		for command in dump top serve; do
			as_nobody ./rbpf.copy $command -p $$ > "$out" 2> "$err" < /dev/null
			status=$?
			expect 4 "rbpf: error: $command needs root*"
		done
		if [ "$(id -u)" = 0 ]; then
			# It stands for the capabilities of BPF, but not for looking into others' processes.
			setpriv --reuid=65534 --regid=65534 --clear-groups --inh-caps=-all,+sys_admin \
				--ambient-caps=-all,+sys_admin --bounding-set=-all,+sys_admin \
				./rbpf.copy record -o /dev/null -p $$ > "$out" 2> "$err" < /dev/null
			status=$?
			expect 4 "rbpf: error: recording needs root*"
			# As root of a container may be.
			setpriv --inh-caps=-all --bounding-set=-all,+bpf \
				./rbpf.copy record -o /dev/null -p $$ > "$out" 2> "$err" < /dev/null
			status=$?
			expect 4 "*: recording needs capabilities that this root has not: CAP_PERFMON CAP_SYS_PTRACE*"
			grep -q "^  hint: .*container" "$err" || not_ok "no hint where it gets them"
		fi
	else
		skip "root has them, and there is no setpriv"
	fi
fi
if begin "a target that is none: status 3"; then
	if [ "$(id -u)" = 0 ]; then
		sleep 0 &
		dead=$!
		wait $dead
		for args in "record -o x.data -p $dead" "dump -p $dead" "record -o x.data -p $$" \
			"dump -p $$"; do
			# shellcheck disable=SC2086 # words
			run $args
			case $status in
			4) skip "recording does not work here: $(head -1 "$err")" ;;
			*) expect 3 "rbpf: error: *pid *" ;;
			esac
		done
	else
		skip "needs root"
	fi
fi

if begin "make uninstall removes all that make install installs"; then
	# -o: the program is not made anew
	if make -s -C "$root" -o "$rbpf" install DESTDIR="$tmp/dest" PREFIX=/usr/local RBPF="$rbpf" > "$out" 2> "$err" &&
		[ -x "$tmp/dest/usr/local/bin/rbpf" ] &&
		[ -s "$tmp/dest/usr/local/share/man/man5/rbpf-file.5" ] &&
		[ "$(find "$tmp/dest/usr/local/share" -path '*/man' -prune -o -type f -print | wc -l)" = 3 ] &&
		bash -c '. "$1" && complete -p rbpf' bash \
			"$tmp/dest/usr/local/share/bash-completion/completions/rbpf" > "$out" 2> "$err" &&
		make -s -C "$root" uninstall DESTDIR="$tmp/dest" PREFIX=/usr/local > "$out" 2> "$err" &&
		[ -z "$(find "$tmp/dest" -type f)" ]; then
		ok
	else
		not_ok "$(find "$tmp/dest" -type f | head -3)"
	fi
fi

if begin "make deb makes a package"; then
	if ! make -s -C "$root" -o "$rbpf" deb O="$tmp/o" DEB="$tmp/rbpf.deb" RBPF="$rbpf" > "$out" 2> "$err"; then
		not_ok "make deb fails"
	elif ! dpkg-deb -x "$tmp/rbpf.deb" "$tmp/package" || ! "$tmp/package/usr/bin/rbpf" --version > "$out" 2> "$err"; then
		not_ok "what is in it does not run"
	elif ! dpkg-deb -f "$tmp/rbpf.deb" Depends | tr -d ' ' | tr , '\n' | grep -qx 'libbpf1'; then
		not_ok "depends on $(dpkg-deb -f "$tmp/rbpf.deb" Depends)"
	elif dpkg-deb -f "$tmp/rbpf.deb" Depends | tr -d ' ' | tr , '\n' | xargs dpkg -s > /dev/null 2> "$err" &&
		[ -s "$tmp/package/usr/share/man/man1/rbpf-record.1.gz" ]; then
		ok
	else
		not_ok "something is missing"
	fi
fi

if [ $((passed + failed + skipped)) = 0 ]; then
	echo "tests/cli: no test has '$pattern' in its name" >&2
	exit 1
fi
echo "tests/cli: $passed passed, $failed failed, $skipped skipped"
if [ "${CI-}" = true ] && [ $skipped != 0 ]; then
	echo "tests/cli: CI needs all tests" >&2
	exit 1
fi
[ $failed = 0 ]
