/* SPDX-License-Identifier: GPL-2.0-only */
#include "target/users.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/sorted.h"

#define SUBORDINATES 65536u

uid_t users_account(uid_t uid)
{
	return uid < SUBORDINATES || uid == (uid_t)-1 ? uid : uid - uid % SUBORDINATES;
}

void users_deinit(struct users *users)
{
	free(users->v);
	*users = (struct users) { 0 };
}

struct user *users_get(struct users *users, uid_t uid)
{
	const uid_t account = users_account(uid);
	const size_t i = sorted_below(users->v, users->n, uid, account);

	if (i < users->n && users->v[i].uid == account)
		return &users->v[i];
	if (users->n >= USERS_MAX || array_reserve(users->v, users->cap, users->n + 1))
		return &users->others;
	memmove(&users->v[i + 1], &users->v[i], (users->n++ - i) * sizeof(*users->v));
	users->v[i] = (struct user) { .uid = account };
	return &users->v[i];
}

bool user_may_add(size_t has, size_t left)
{
	return has < left;
}

bool user_may_spend(const struct user *user, uint64_t now)
{
	return user->spent_until_ns <= now + USERS_CPU_BURST_NS * USERS_CPU_SHARE;
}

void user_spent(struct user *user, uint64_t now, uint64_t cpu_ns)
{
	user->spent_until_ns = (user->spent_until_ns > now ? user->spent_until_ns : now) +
			       cpu_ns * USERS_CPU_SHARE;
}
