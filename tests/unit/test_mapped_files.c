/* SPDX-License-Identifier: GPL-2.0-only */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/buf.h"
#include "ruby/mapped_files.h"
#include "target/maps.h"

/* Where the first @max of them start. */
static size_t list(const char *text, uint64_t *ret, size_t max)
{
	struct maps maps = MAPS_INIT;
	size_t *v, n, i;

	cr_assert_eq(maps_parse(text, &maps), 0);
	cr_assert_eq(mapped_files_list(&maps, &v, &n), 0);
	cr_assert_leq(n, MAPPED_FILES_MAX);
	for (i = 0; i < n; i++) {
		cr_assert_lt(v[i], maps.n);
		cr_assert(maps.v[v[i]].exec && maps.v[v[i]].inode);
		if (i < max)
			ret[i] = maps.v[v[i]].start;
	}
	free(v);
	maps_deinit(&maps);
	return n;
}

Test(mapped_files, each_once_and_those_named_ruby_first)
{
	static const char text[] = "1000-2000 r--p 0 08:01 7 /bin/app\n"
				   "2000-3000 r-xp 0 08:01 7 /bin/app\n"
				   "3000-4000 r-xp 0 00:00 0 \n"
				   "4000-5000 r-xp 0 08:01 8 /lib/libruby.so\n"
				   "5000-6000 r-xp 0 08:01 7 /bin/app\n"
				   "6000-7000 r-xp 0 08:02 8 /lib/libc.so\n"
				   "7000-8000 r-xp 0 08:01 8 /lib/libruby.so\n";
	uint64_t v[4];

	cr_assert_eq(list(text, v, 4), 3, "libruby and libc have one inode, on two devices");
	cr_expect_eq(v[0], 0x4000);
	cr_expect_eq(v[1], 0x2000);
	cr_expect_eq(v[2], 0x6000);
	cr_expect_eq(list("1000-2000 rw-p 0 08:01 7 /bin/app\n", v, 4), 0);
}

/* As many as a process can have: to compare each with each would take minutes. */
Test(mapped_files, very_many)
{
	struct buf text _cleanup_buf_ = BUF_INIT;
	uint64_t v[1];
	size_t i;

	for (i = 0; i < 65530; i++)
		buf_addf(&text, "%zx-%zx r-xp 0 08:01 %zu /tmp/%zu\n", (i + 1) << 12, (i + 2) << 12,
			 i % 3000 + 1, i % 3000);
	buf_addstr(&text, "fffffff000-ffffffff000 r-xp 0 08:01 9999 /lib/libruby.so\n");
	cr_expect_eq(list(buf_str(&text), v, 1), MAPPED_FILES_MAX);
	cr_expect_eq(v[0], 0xfffffff000);
}
