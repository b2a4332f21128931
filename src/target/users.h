/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Limits for each user of the machine: how much of what all share one user's processes may take, so
 * that they cannot keep those of others from being recorded.
 *
 * Two rules. Of what there is a number of (processes that are followed, presets), a user may have
 * one more as long as it has fewer than are still free: one user alone can take half of all, two a
 * third each. And of rbpf's CPU time, what it takes to read memory maps, which processes can make
 * as long as they like, a user may have USERS_CPU_SHARE of the time that passes, after a first
 * USERS_CPU_BURST_NS. Not thread-safe.
 */
#ifndef RBPF_TARGET_USERS_H
#define RBPF_TARGET_USERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define USERS_MAX	   4096 /* that are told apart; all others are taken for one */
#define USERS_CPU_SHARE	   5	/* one part in so many */
#define USERS_CPU_BURST_NS 500000000ull

struct user {
	uid_t uid;		 /* users_account() */
	size_t processes;	 /* that are followed */
	size_t presets;		 /* layouts that are kept for the next process */
	uint64_t spent_until_ns; /* CLOCK_MONOTONIC: until when its share is used up; 0: nothing was
				    spent */
	size_t names;		 /* bytes; scratch of who adds them up by user */
};

struct users {
	struct user *v; /* by uid; owned */
	size_t n, cap;
	struct user others; /* of USERS_MAX, or of no memory */
};

/*
 * The id under which @uid is counted. In a user namespace of their own users can take any of their
 * subordinate ids, of which there are 65,536 as a rule: ids that large count as one for each so
 * many of them. A range that begins between two multiples is two accounts then. -1, which is
 * unknown, is one of its own.
 */
uid_t users_account(uid_t uid);

void users_deinit(struct users *users);

/* The user who answers for @uid, -1 if that is unknown; valid until the next call. */
struct user *users_get(struct users *users, uid_t uid);

/* Whether a user who has @has of something may have one more, while @left are free. */
bool user_may_add(size_t has, size_t left);

/* Whether CPU time may be spent on processes of @user now; and note that @cpu_ns was spent. */
bool user_may_spend(const struct user *user, uint64_t now);
void user_spent(struct user *user, uint64_t now, uint64_t cpu_ns);

#endif
