/* SPDX-License-Identifier: GPL-2.0-only */
#include <criterion/criterion.h>

#include "base/clock.h"
#include "target/users.h"

static void assert_sane_users(const struct users *users)
{
	size_t i;

	cr_assert_leq(users->n, USERS_MAX);
	for (i = 1; i < users->n; i++)
		cr_assert_lt(users->v[i - 1].uid, users->v[i].uid);
}

Test(users, each_is_one)
{
	static const uid_t uids[] = { 1000, 0, (uid_t)-1, 33, 1000, 1 };
	struct users users = { 0 };
	size_t i;

	for (i = 0; i < sizeof(uids) / sizeof(uids[0]); i++) {
		users_get(&users, uids[i])->processes++;
		assert_sane_users(&users);
	}
	cr_expect_eq(users.n, 5);
	cr_expect_eq(users_get(&users, 1000)->processes, 2);
	cr_expect_eq(users_get(&users, 33)->processes, 1);
	users_deinit(&users);
	users_deinit(&users);
}

/* With the ids that a user namespace gives it no user is more than one or two. */
Test(users, subordinate_ids_are_of_one_user)
{
	struct users users = { 0 };
	uid_t uid;

	for (uid = 100000; uid < 165536; uid++)
		users_get(&users, uid)->processes++;
	assert_sane_users(&users);
	cr_expect_eq(users.n, 2);
	cr_expect_eq(users_get(&users, 131072)->processes, 165536 - 131072);
	cr_expect_eq(users_get(&users, 65536)->processes, 131072 - 100000);
	cr_expect_eq(users_get(&users, 65535)->processes, 0);
	cr_expect_eq(users_get(&users, 65534)->processes, 0, "smaller ids are users");
	cr_expect_eq(users_get(&users, (uid_t)-1)->processes, 0);
	cr_expect_eq(users_get(&users, (uid_t)-2)->processes, 0);
	cr_expect_eq(users.n, 6, "who is unknown is none of these");
	users_deinit(&users);
}

Test(users, too_many_are_taken_for_one)
{
	struct users users = { 0 };
	uid_t uid;

	for (uid = 0; uid < USERS_MAX + 10; uid++)
		users_get(&users, uid)->processes++;
	assert_sane_users(&users);
	cr_expect_eq(users.n, USERS_MAX);
	cr_expect_eq(users.others.processes, 10);
	users_deinit(&users);
}

/* How many a user gets who always wants one more, of @slots that @others are taken of. */
static size_t greedy(size_t slots, size_t others)
{
	size_t has = 0;

	while (user_may_add(has, slots - others - has))
		has++;
	return has;
}

Test(users, one_gets_half_of_what_is_left)
{
	size_t first = greedy(16384, 0), second = greedy(16384, first);

	cr_expect_eq(first, 8192);
	cr_expect_eq(second, 4096);
	cr_expect_eq(greedy(16384, first + second), 2048, "and there is always some left");
}

/* One whose looks take 100 ms each asks all the time: it gets its share of the time, no more. */
Test(users, looks_take_a_share_of_the_time)
{
	const uint64_t begin = 1000 * NSEC_PER_SEC, look = 100 * NSEC_PER_MSEC;
	struct user user = { 0 }, other = { 0 };
	uint64_t now, took = 0;

	for (now = begin; now < begin + 100 * NSEC_PER_SEC; now += NSEC_PER_MSEC) {
		if (!user_may_spend(&user, now))
			continue;
		user_spent(&user, now, look);
		took += look;
	}
	cr_expect_leq(took, 100 * NSEC_PER_SEC / USERS_CPU_SHARE + USERS_CPU_BURST_NS + look);
	cr_expect_geq(took, 100 * NSEC_PER_SEC / USERS_CPU_SHARE);
	cr_expect(user_may_spend(&other, now), "another is not held up");
	cr_expect(user_may_spend(&user, now + 10 * NSEC_PER_SEC), "nor is the same for ever");
}
