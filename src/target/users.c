/* SPDX-License-Identifier: GPL-2.0-only */
#include "target/users.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"

void users_deinit(struct users *users)
{
	free(users->v);
	*users = (struct users) { 0 };
}

struct user *users_get(struct users *users, uid_t uid)
{
	size_t low = 0, high = users->n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (users->v[middle].uid < uid)
			low = middle + 1;
		else
			high = middle;
	}
	if (low < users->n && users->v[low].uid == uid)
		return &users->v[low];
	if (users->n >= USERS_MAX || array_reserve(users->v, users->cap, users->n + 1))
		return &users->others;
	memmove(&users->v[low + 1], &users->v[low], (users->n++ - low) * sizeof(*users->v));
	users->v[low] = (struct user) { .uid = uid };
	return &users->v[low];
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
