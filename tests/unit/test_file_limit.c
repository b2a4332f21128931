/* SPDX-License-Identifier: GPL-2.0-only */
/* How much of a file system a recording leaves; that it ends then is in test_recorder.c. */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/array.h"
#include "base/err.h"
#include "profile/file_limit.h"

#define MB (1ull << 20)
#define GB (1ull << 30)
#define TB (1ull << 40)

Test(file_limit, floor)
{
	static const struct {
		uint64_t size, free, floor;
	} cases[] = {
		{ 10 * GB, 9 * GB, GB },
		{ 20 * GB, 19 * GB, GB },
		{ 200 * GB, 100 * GB, 10 * GB },
		{ 200 * GB, 20 * GB, 10 * GB }, /* half of what is free */
		{ 200 * GB, 19 * GB, 19 * GB / 2 },
		{ 10 * GB, 2 * GB, GB },
		{ 10 * GB, GB, GB / 2 },
		{ 8 * MB, 8 * MB, 4 * MB },
		{ 10 * GB, 4096, 2048 },
		{ 10 * GB, 1, 0 },
		{ 10 * GB, 0, 0 },
		{ 0, 0, 0 },
		{ 1 << 20, 0, 0 },
		{ 16 * TB, 16 * TB, 16 * TB / 20 },
		{ UINT64_MAX, UINT64_MAX, UINT64_MAX / 20 }, /* no overflow */
	};

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const uint64_t floor = file_limit_floor(cases[i].size, cases[i].free);

		cr_expect_leq(floor, cases[i].free / 2, "case %zu", i);
		cr_expect_leq(floor, cases[i].floor, "case %zu", i);
		cr_expect_leq(cases[i].floor - floor, 100, "case %zu: %llu", i,
			      (unsigned long long)floor);
	}
}

/* What is no regular file fills no file system. */
Test(file_limit, pipe_has_the_size_limit_alone)
{
	struct file_limit l;
	struct err err = { 0 };
	int fds[2];

	cr_assert_eq(pipe2(fds, O_CLOEXEC), 0);
	file_limit_init(&l, fds[1], 1000);
	cr_expect_not(l.has_floor);
	l.floor = UINT64_MAX;
	cr_expect_eq(file_limit_size(&l, 999, &err), 0);
	cr_expect_eq(err.code, 0);
	cr_expect_eq(file_limit_size(&l, 1000, &err), -EFBIG);
	cr_expect(file_limit_has_room(&l, file_limit_free(&l, fds[1]), UINT64_MAX));
	file_limit_init(&l, fds[1], 0);
	cr_expect_eq(file_limit_size(&l, UINT64_MAX, &err), 0, "no limit at all");
	close(fds[0]);
	close(fds[1]);
}
