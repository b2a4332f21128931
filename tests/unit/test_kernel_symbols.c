/* SPDX-License-Identifier: GPL-2.0-only */
#include <criterion/criterion.h>
#include <errno.h>
#include <malloc.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "symbol/kernel_symbols.h"

#if defined(__SANITIZE_ADDRESS__)
#define SLOWDOWN 10
#else
#define SLOWDOWN 1
#endif

static const char text[] = "0000000000000000 A fixed_percpu_data\n"
			   "ffffffff81000000 t local\n"
			   "ffffffff81000000 T _text\n"
			   "ffffffff81000000 T startup\n"
			   "ffffffff81000000 W weak\n"
			   "ffffffff81000100 t second\n"
			   "ffffffff81000180 D data\n"
			   "ffffffff81000200 T third\n"
			   "garbage\n"
			   "\n"
			   "ffffffffc0002000 t late\t[ext4]\n"
			   "ffffffffc0001000 t ext4_sync_fs\t[ext4]\n"
			   "ffffffffc0001800 d ext4_data\t[ext4]\n"
			   "ffffffffc0005000 t bpf_prog_6deef7357e7b4530_tick\t[bpf]";

static void expect(struct kernel_symbols *s, uint64_t addr, const char *name, const char *module,
		   uint64_t start)
{
	struct kernel_symbol found = { .name = "none" };
	int r = kernel_symbols_find(s, addr, &found);

	cr_expect_eq(r, name ? 0 : -ENOENT, "%#lx: %s", (unsigned long)addr, found.name);
	if (r || !name)
		return;
	cr_expect_str_eq(found.name, name);
	cr_expect_str_eq(found.module, module);
	cr_expect_eq(found.start, start);
}

Test(kernel_symbols, functions)
{
	struct kernel_symbols s = KERNEL_SYMBOLS_INIT;

	cr_assert_eq(kernel_symbols_parse(&s, text, sizeof(text) - 1), 0);
	cr_expect_eq(s.n, 6);
	expect(&s, 0xffffffff80ffffff, NULL, NULL, 0);
	expect(&s, 0xffffffff81000000, "startup", "", 0xffffffff81000000);
	expect(&s, 0xffffffff810000ff, "startup", "", 0xffffffff81000000);
	expect(&s, 0xffffffff81000180, "second", "", 0xffffffff81000100);
	expect(&s, 0xffffffff81000200, "third", "", 0xffffffff81000200);
	expect(&s, 0xffffffff81000200 + KERNEL_SYMBOLS_MAX_FUNCTION, NULL, NULL, 0);
	expect(&s, 0xffffffffc0001fff, "ext4_sync_fs", "[ext4]", 0xffffffffc0001000);
	expect(&s, 0xffffffffc0002001, "late", "[ext4]", 0xffffffffc0002000);
	expect(&s, 0xffffffffc0005001, "bpf_prog_6deef7357e7b4530_tick", "[bpf]",
	       0xffffffffc0005000);
	expect(&s, UINT64_MAX, NULL, NULL, 0);
	kernel_symbols_deinit(&s);
}

Test(kernel_symbols, addresses_are_hidden)
{
	static const char hidden[] = "0000000000000000 T _text\n0000000000000000 t f\t[ext4]\n";
	struct kernel_symbols s = KERNEL_SYMBOLS_INIT;
	struct kernel_symbol found = { .start = 42 };

	cr_expect_eq(kernel_symbols_parse(&s, hidden, sizeof(hidden) - 1), -EPERM);
	cr_expect_eq(kernel_symbols_find(&s, 0xffffffff81000000, &found), -EPERM);
	cr_expect_eq(found.start, 42, "ret is left alone");
	cr_expect_eq(kernel_symbols_parse(&s, "", 0), -ENOENT);
	cr_expect_eq(kernel_symbols_find(&s, 0, &found), -ENOENT);
	kernel_symbols_deinit(&s);
}

/* 200,000 functions and as many other symbols. */
Test(kernel_symbols, many)
{
	struct kernel_symbols s = KERNEL_SYMBOLS_INIT;
	struct buf many = BUF_INIT;
	size_t before, used;
	uint64_t ns;

	for (unsigned int i = 0; i < 200000; i++)
		buf_addf(&many, "%016lx t a_function_of_the_kernel_%u\n%016lx d data_%u\n",
			 0xffffffff81000000 + 64ul * i, i, 0xffffffffa1000000 + 64ul * i, i);
	before = mallinfo2().uordblks + mallinfo2().hblkhd;
	ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID);
	cr_assert_eq(kernel_symbols_parse(&s, many.data, many.len), 0);
	ns = clock_ns(CLOCK_PROCESS_CPUTIME_ID) - ns;
	used = mallinfo2().uordblks + mallinfo2().hblkhd - before;
	cr_expect_eq(s.n, 200000);
	expect(&s, 0xffffffff81000000 + 64 * 123456 + 5, "a_function_of_the_kernel_123456", "",
	       0xffffffff81000000 + 64 * 123456);
	cr_log_info("%.1f ms, %zu KiB", (double)ns / 1e6, used / 1024);
	cr_expect_leq(ns, 200 * SLOWDOWN * NSEC_PER_MSEC);
	cr_expect_leq(used, 12u << 20);
	kernel_symbols_deinit(&s);
	buf_deinit(&many);
}

/* Each function that this kernel lists is found. */
Test(kernel_symbols, running_kernel)
{
	struct kernel_symbols s = KERNEL_SYMBOLS_INIT;
	struct kernel_symbol found;
	unsigned long start;
	char line[1024], type, name[512];
	size_t n = 0;
	FILE *f;
	int r;

	r = kernel_symbols_find(&s, 0, &found);
	if (r != -ENOENT || !s.n) {
		kernel_symbols_deinit(&s);
		cr_skip_test("/proc/kallsyms: %s", strerror(-r));
	}
	f = fopen("/proc/kallsyms", "re");
	cr_assert_not_null(f);
	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%lx %c %511s", &start, &type, name) != 3 ||
		    (type | 0x20) != 't' || !strncmp(name, "bpf_", 4))
			continue;
		n++;
		cr_assert_eq(kernel_symbols_find(&s, start, &found), 0, "%s", name);
		cr_assert_eq(found.start, start, "%s", name);
		cr_assert_eq(strstr(line, found.module) != NULL, true, "%s", line);
	}
	fclose(f);
	cr_expect_gt(n, s.n / 2, "most of what was kept was compared");
	cr_log_info("%zu functions, %zu at addresses of their own", n, s.n);
	kernel_symbols_deinit(&s);
}
