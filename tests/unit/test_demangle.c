/* SPDX-License-Identifier: GPL-2.0-only */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/buf.h"
#include "base/clock.h"
#include "elf/demangle.h"
#include "elf/symbols.h"

Test(demangle, names)
{
	static const struct {
		const char *mangled, *wanted;
	} names[] = {
		{ "_ZN3foo3barEi", "foo::bar" },
		{ "_ZNSt6vectorIiSaIiEE9push_backERKi",
		  "std::vector<int, std::allocator<int> >::push_back" },
		{ "_ZN3FooC2Ev", "Foo::Foo" },
		{ "_ZN3FooD0Ev", "Foo::~Foo" },
		{ "_ZNK3FooplERKS_", "Foo::operator+" },
		{ "_Z3maxIiET_S0_S0_", "max<int>" },
		{ "_ZTV3Foo", "vtable for Foo" },
		{ "_ZN3foo3barEi.constprop.0", "foo::bar.constprop.0" },
		{ "_ZN3foo3barEi.part.0.cold", "foo::bar.part.0.cold" },
		{ "_ZZ4mainENKUlvE_clEv", "main::{lambda()#1}::operator()" },
		{ "_ZN3std2io5stdio6_print17h0123456789abcdefE", "std::io::stdio::_print" },
		{ "_ZN4core3ptr42drop_in_place$LT$alloc..string..String$GT$17h0123456789abcdefE",
		  "core::ptr::drop_in_place<alloc::string::String>" },
		{ "_RNvCs1234_7mycrate3foo", "mycrate::foo" },
		{ "_RNvNtCs1234_7mycrate6module3bar", "mycrate::module::bar" },
		{ "_RNCNvCs1234_7mycrate4main0", "mycrate::main::{closure#0}" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		struct buf out = BUF_INIT;

		buf_addstr(&out, "> ");
		cr_expect(demangle(names[i].mangled, &out), "%s", names[i].mangled);
		cr_expect_str_eq(buf_str(&out) + 2, names[i].wanted);
		buf_deinit(&out);
	}
}

Test(demangle, not_mangled)
{
	static const char *const names[] = { "",     "main",	   "_start", "__libc_start_main",
					     "_Z",   "_ZN",	   "_ZN3fo", "_R",
					     "_RNv", "rb_ary_each" };
	struct buf out = BUF_INIT;

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		cr_expect_not(demangle(names[i], &out), "%s", names[i]);
		cr_expect_str_eq(buf_str(&out), "");
	}
	buf_addstr(&out, "before");
	cr_expect_not(demangle("_ZN3foo", &out));
	cr_expect_str_eq(buf_str(&out), "before");
	buf_deinit(&out);
}

/* A reference to what came before as the @n-th. */
static void add_substitution(struct buf *name, unsigned int n)
{
	static const char digits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";

	buf_addch(name, 'S');
	if (n > 36)
		buf_addch(name, digits[(n - 1) / 36]);
	buf_addch(name, digits[(n - 1) % 36]);
	buf_addch(name, '_');
}

/*
 * A pointer to a function of what came before and the same again: each doubles what it stands for.
 */
Test(demangle, too_long)
{
	struct buf name = BUF_INIT, out = BUF_INIT;
	uint64_t ns;

	buf_addstr(&name, "_Z1fIPFiiE");
	for (unsigned int i = 0; i < 30; i++) {
		buf_addstr(&name, "PF");
		add_substitution(&name, 2 + 2 * i);
		add_substitution(&name, 2 + 2 * i);
		buf_addch(&name, 'E');
	}
	buf_addstr(&name, "Evv");
	buf_addstr(&out, "before");
	ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	cr_expect_not(demangle(buf_str(&name), &out));
	ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID) - ns;
	cr_expect_str_eq(buf_str(&out), "before");
	cr_expect_lt(ns, NSEC_PER_SEC);

	buf_reset(&name);
	buf_addstr(&name, "_ZN");
	for (int i = 0; i < 5000; i++)
		buf_addstr(&name, "1a");
	buf_addstr(&name, "Ev");
	cr_expect_not(demangle(buf_str(&name), &out), "a name this long is left alone");
	buf_deinit(&name);
	buf_deinit(&out);
}

/* ---- c++filt ---- */

/* What c++filt makes of the names of @s, a stream of lines. */
static FILE *run_cxxfilt(const struct elf_symbols *s)
{
	char path[] = "/tmp/rbpf-demangle-XXXXXX", command[128];
	int fd = mkstemp(path);
	FILE *f;

	cr_assert_geq(fd, 0);
	for (size_t i = 0; i < s->n; i++)
		dprintf(fd, "%s\n", s->functions[i].name);
	close(fd);
	snprintf(command, sizeof(command), "c++filt -p -i < %s; rm %s", path, path);
	f = popen(command, "re");
	cr_assert_not_null(f);
	return f;
}

/* -p leaves parameters out; -i prints "std::string" for what is that, as perf does. */
static void compare_names(const struct elf_symbols *s)
{
	FILE *f = run_cxxfilt(s);
	struct buf out = BUF_INIT;
	size_t compared = 0, wrong = 0;
	char line[65536];

	for (size_t i = 0; i < s->n && fgets(line, sizeof(line), f); i++) {
		const char *name = s->functions[i].name;

		line[strcspn(line, "\n")] = '\0';
		if (!name[0] || strchr(name, '@'))
			continue;
		buf_reset(&out);
		if (!demangle(name, &out))
			buf_addstr(&out, name);
		compared++;
		if (strcmp(buf_str(&out), line) && wrong++ < 5)
			cr_log_error("%s: %s, c++filt: %s", name, buf_str(&out), line);
	}
	pclose(f);
	buf_deinit(&out);
	cr_log_info("%zu names", compared);
	cr_expect_gt(compared, 1000);
	cr_expect_eq(wrong, 0, "%zu of %zu", wrong, compared);
}

Test(demangle, as_cxxfilt)
{
	struct elf_symbols s = ELF_SYMBOLS_INIT;
	glob_t found = { 0 };
	int fd;

	if (glob("/usr/lib/*/libstdc++.so.6", 0, NULL, &found) ||
	    system("command -v c++filt > /dev/null")) {
		cr_skip_test("there is no libstdc++ or no c++filt");
	}
	fd = open(found.gl_pathv[0], O_RDONLY | O_CLOEXEC);
	cr_assert_eq(elf_symbols_read(fd, "", NULL, &s), 0);
	compare_names(&s);
	globfree(&found);
	elf_symbols_deinit(&s);
	close(fd);
}
