#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-only
#
# A lint that finds nothing looks like one that works: these trees hold known violations, and every
# one must be found, and nothing else.
set -eu
lint=$(cd "$(dirname "$0")" && pwd)
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
failed=0

# Reads lines of a source; the ones that end in "// BAD" must be complained about.
source_file() {
	mkdir -p "$tree/$(dirname "$1")"
	cat > "$tree/$1"
}

# expect SCRIPT: the violations found by SCRIPT are the lines marked BAD.
expect() {
	(cd "$tree" && grep -rn '// BAD$' . | sed -E 's#^\./([^:]*:[0-9]+):.*#\1#' | sort) > "$tree.want"
	status=0
	"$lint/$1" "$tree" > "$tree.out" || status=$?
	sed -E 's#^([^:]*:[0-9]+): .*#\1#' "$tree.out" | sort > "$tree.got"
	if [ $status -ne 1 ] || ! diff -u "$tree.want" "$tree.got"; then
		echo "tests/lint/selftest.sh: $1 (exit $status) does not find what it must" >&2
		failed=1
	fi
	rm -f "$tree.want" "$tree.out" "$tree.got"
	rm -rf "${tree:?}"/*
	if ! "$lint/$1" "$tree"; then
		echo "tests/lint/selftest.sh: $1 finds something in an empty tree" >&2
		failed=1
	fi
}

source_file src/target/a.c << 'END'
#include <stdio.h>
#include "base/err.h"
#include "target/a.h"
#include "a.h"
#include "rbpf_abi.h"
#include "rbpf/layout.h"
#include "elf/sym.h" // BAD
# include	"cmd/main.h" // BAD
#include "../base/err.h" // BAD
#include <bpf/libbpf.h> // BAD
#include "rbpf.skel.h" // BAD
/*
#include "elf/in_a_comment.h"
*/
int f(FILE *out)
{
	fprintf(out, "exit(1) is only a string, as is \" abort()"); /* exit(1) */
	snprintf(b, 1, "%c", '"');
	_exit(127);
	on_exit_do(1);
	skel->exit(1);
	printf("x"); // BAD
	fprintf(stderr, "x"); // BAD
	if (x) exit(1); // BAD
	abort (); // BAD
	return atoi(s) + // BAD
	       strtoul(s, NULL, 0) + // BAD
	       strtol(s, NULL, 0); // BAD
}
END
source_file src/elf/a.c << 'END'
#include "base/err.h"
#include "target/target_file.h"
#include "target/maps.h" // BAD
END
source_file src/profile/a.c << 'END'
#include "target/target_file.h" // BAD
END
source_file src/base/a.h << 'END'
#include "base/buf.h"
#include "profile/profile.h" // BAD
END
source_file src/ruby/a.c << 'END'
#include "target/maps.h"
#include "elf/sym.h"
#include "../../bpf/ruby_walk.bpf.h"
#include "../../bpf/rbpf.h" // BAD
#include "bpf/libbpf.h" // BAD
#include "profile/recorder.h" // BAD
END
source_file src/symbol/a.c << 'END'
#include "ruby/layout.h"
#include "profile/recorder.h"
#include "sample/sampler.h" // BAD
END
source_file src/engine/a.c << 'END'
#include <bpf/libbpf.h>
#include "rbpf.skel.h"
#include "target/cpus.h"
#include "ruby/vm.h" // BAD
END
source_file src/sample/a.c << 'END'
#include <bpf/libbpf.h> // BAD
#include "rbpf.skel.h" // BAD
#include "engine/engine.h"
#include "symbol/symbol.h"
#include "profile/recorder.h"
#include "view/tree.h" // BAD
END
source_file src/view/a.c << 'END'
#include "profile/reader.h"
#include "export/flame.h" // BAD
END
source_file src/export/a.c << 'END'
#include "view/tree.h"
#include "ui/table.h" // BAD
END
source_file src/ui/a.c << 'END'
#include "view/tree.h"
#include "export/flame.h" // BAD
	fputs("x", out);
	fputs("x", stdout); // BAD
END
source_file src/cmd/a.c << 'END'
#include "ui/table.h"
#include "sample/sampler.h"
#include <bpf/bpf.h> // BAD
	printf("x");
	exit(1);
	atoi(s); // BAD
END
source_file src/other/a.c << 'END'
// BAD
END
source_file include/a.h << 'END'
#include <linux/types.h>
#include "b.h"
#include "base/err.h" // BAD
END
expect includes.sh

source_file src/base/a.c << 'END'
/* TODO: later */ // BAD
/* TODO(#12): later */
/* FIXME */ // BAD
mkstemp("XXXXXX");
/* XXX, see #7 */
/* XXX */ // BAD
END
expect todo.sh

source_file src/base/a.c << 'END'
/*
 * One that is longer than the
 *line // BAD
 *	-ENOENT	a table
 *
 */
int *a;
	*a = 1;
END
expect comments.sh

source_file src/target/target_file.c << 'END'
	fd = open(link, O_PATH);
	fd = (int)syscall(SYS_openat2, dir, path, &how, sizeof(how));
END
source_file src/target/cpus.c << 'END'
	r = io_read_file(AT_FDCWD, path, MAX, &text);
	fd = openat(dir, path, O_RDONLY); // BAD
END
source_file src/symbol/a.c << 'END'
#include <fcntl.h>
/* open(path) */
 * The file that stat() says is there
	fd = open("/proc/kallsyms", O_RDONLY);
	r = io_read_file(AT_FDCWD, "/sys/x", 1, &text);
	fd = target_file_open(&req);
	r = elf_file_open(fd, "open(path)", &elf, NULL); /* open(path) */
	r = file->open(path);
	fd = open(path, O_RDONLY); // BAD
	f = x ? fopen(path, "r") : NULL; // BAD
	if (fstat(fd, &st)) // BAD
	if (io_stat(fd, &st) || lstat(path, &st)) // BAD
	    fstatat(fd, "x", &st, 0)) // BAD
	r = io_read_file(dir, "maps", 1, &text); // BAD
	fd = (int)syscall(SYS_openat2, dir, path, &how, sizeof(how)); // BAD
	p = mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0); // BAD
	n = pread(fd, to, size, 0); // BAD
	n = process_vm_readv(pid, &local, 1, &remote, 1, 0); // BAD
	elf = elf_begin(fd, ELF_C_READ, NULL);
	elf = elf_begin(fd, ELF_C_READ_MMAP, NULL); // BAD
	elf = elf_begin(fd, ELF_C_READ_MMAP_PRIVATE, NULL); // BAD
END
expect opens.sh

source_file bpf/a.bpf.h << 'END'
/* struct in_comment { enum { IN_COMMENT }; }; */
struct declared;
struct cursor {
	__u64 at;
	struct inner { int x; } inner;
	enum { PLAIN, WITH_VALUE = sizeof(struct cursor), WITH_CALL = F(1, 2), LAST } kind;
};
union word { __u64 u; };
END
source_file include/a.h << 'END'
#define MAKES(X) enum made { \
	MADE }
enum listed {
#define X(name) LISTED_##name,
	ALL_OF_THEM(X)
#undef X
	LISTED_COUNT,
	OTHER(X) LISTED_LAST /* LAST */
};
enum twice;
END
source_file src/base/a.c << 'END'
struct declared; struct declared *use(struct cursor c);
static struct cursor cursors[] = { { 1 } };
struct cursor *next(struct cursor *c) { return (struct cursor *){ c }; }
enum listed first(enum listed x) { return x; }
static const char text[] = "struct word { }";
struct declared { int PLAIN; };
enum made { MADE };
END
source_file src/base/b.c << 'END'
struct inner { // BAD
	int LAST;
};
enum word { // BAD
	LISTED_COUNT, // BAD
	NEW = LISTED_LAST,
	PLAIN, // BAD
	WITH_VALUE = 3, // BAD
	LAST // BAD
};
enum { LISTED_LAST }; // BAD
union
cursor // BAD
{
	int x;
};
struct once { enum { ALL_OF_THEM } x; };
enum once_more { IN_COMMENT, WITH_CALL }; // BAD
END
source_file tests/support/a.h << 'END'
struct cursor { int of_the_tests; };
enum { PLAIN };
END
source_file tests/support/b.h << 'END'
struct cursor { // BAD
	int x;
};
END
source_file tests/unit/test_a.c << 'END'
struct cursor { int x; };
END
expect duplicate-tags.sh

source_file tests/unit/test_a.c << 'END'
Test(a, b, .timeout = 60) // BAD
Test(a, c, .init = timeout)
TestSuite(a, .timeout=1.5); // BAD
END
expect limits.sh

source_file include/rbpf_counters.h << 'END'
	X(TICKS, "ticks", NEVER, "tick", "ticks", "fired")
END
source_file man/rbpf-file.5 << 'END'
.Ss Counters
.It Cm ticks , tocks
.Ss Records
END
if "$lint/counters.sh" "$tree" > /dev/null; then
	echo "tests/lint/selftest.sh: counters.sh does not find a key that is no counter" >&2
	failed=1
fi

source_file src/profile/reason.h << 'END'
	X(NO_RUBY, 1, NATIVE, "no-ruby", "[no Ruby in process]", "")
	FRAME_REASON_GAP(X, LOST, 2, "lost", "lost")
END
source_file man/rbpf-file.5 << 'END'
.Ss Reasons
.It 1 no-ruby Ta \(lBno Ruby in process\(rB
.It 3 lost Ta \(lBnative frames missing: lost\(rB
.El
END
if "$lint/reasons.sh" "$tree" > /dev/null; then
	echo "tests/lint/selftest.sh: reasons.sh does not find a number that is not that of the table" >&2
	failed=1
fi

# 3 functions of 192 bytes, and 9 of less.
source_file deep.c << 'END'
#define SEC(name) __attribute__((section(name), used))
#define NOINLINE  __attribute__((noinline))
NOINLINE int third(int *p) { volatile int v[48] = { *p }; return v[*p & 31]; }
NOINLINE int second(int *p) { int v[46] = { *p }; __asm__ volatile("" ::"r"(v) : "memory"); return third(v) + v[1]; }
SEC("perf_event") int wide(int *p) { int v[46] = { 1 }; __asm__ volatile("" ::"r"(v) : "memory"); return second(v) + v[2]; }
#define CALLS(f, g) NOINLINE int f(int i) { __asm__ volatile("" : "+r"(i)); return g(i) + 1; }
NOINLINE int f9(int i) { __asm__ volatile("" : "+r"(i)); return i; }
CALLS(f8, f9) CALLS(f7, f8) CALLS(f6, f7) CALLS(f5, f6) CALLS(f4, f5) CALLS(f3, f4) CALLS(f2, f3)
SEC("perf_event") int deep(int *p) { return f2(*p) + 1; }
END
${CLANG:-clang} --target=bpf -O1 -c "$tree/deep.c" -o "$tree/deep.o"
"$lint/bpf-stack.sh" "$tree/deep.o" | sed 's/^[^:]*: \([a-z]*: [0-9]* [a-z]*\).*/\1/' | sort > "$tree/deep"
if [ "$(cat "$tree/deep")" != "deep: 9 functions
wide: 576 bytes" ]; then
	echo "tests/lint/selftest.sh: bpf-stack.sh does not find the two chains that are too deep, or more:" >&2
	cat "$tree/deep" >&2
	failed=1
fi

exit $failed
