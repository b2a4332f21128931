/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Who makes rbpf wait, and for how long. All processes of a user have one account: what rbpf slept
 * because of them is their debt, of which DEBTS_PER_CENT of the time is forgiven. They are waited
 * for as long as the debt stays below DEBTS_LIMIT_NS, and after that only for DEBTS_LEAST_NS at a
 * time: no longer than it may take to look at a process that does answer, so that it matters little
 * how many processes a user starts that do not. Less would not do, because on a busy machine one
 * that answers may hold a lock of its map while it waits for a CPU.
 *
 * A process that was waited for in vain is given up, until it ends. Processes that were left behind
 * in the kernel, because not even SIGKILL ends them, are counted by who holds them there: a user
 * who holds DEBTS_MAX_LEFT of them is refused until one is gone.
 *
 * Not thread-safe.
 */
#ifndef RBPF_TARGET_DEBTS_H
#define RBPF_TARGET_DEBTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define DEBTS_LIMIT_NS	 800000000ull
#define DEBTS_LEAST_NS	 20000000ull
#define DEBTS_PER_CENT	 5u
#define DEBTS_MAX_USERS	 32u
#define DEBTS_MAX_GIVEN	 64u /* processes; of more, the first are tried again */
#define DEBTS_MAX_LEFT	 4u  /* of a user */
#define DEBTS_MAX_STAYED 32u /* of all users; after that nobody is waited for */

struct debts_user {
	uid_t uid;
	uint64_t debt_ns;
	uint64_t at_ns; /* when it was that, CLOCK_MONOTONIC */
};

struct debts_given {
	pid_t pid;
	int pidfd; /* owned; -1: there was none */
};

struct debts_left {
	pid_t pid; /* of ours */
	uid_t uid; /* who holds it */
};

struct debts {
	struct debts_user users[DEBTS_MAX_USERS];
	size_t n_users;
	struct debts_given given[DEBTS_MAX_GIVEN]; /* in the order in which they were given up */
	size_t n_given;
	struct debts_left left[DEBTS_MAX_STAYED];
	size_t n_left;
};

/* For how long processes of @uid may be waited for at @now_ns. */
uint64_t debts_patience(const struct debts *d, uid_t uid, uint64_t now_ns);

/* We slept for @slept_ns because of a process of @uid. */
void debts_add(struct debts *d, uid_t uid, uint64_t slept_ns, uint64_t now_ns);

/* Give up @pid; and whether it was. */
void debts_give_up(struct debts *d, pid_t pid);
bool debts_gave_up(struct debts *d, pid_t pid);

/* Our child @pid is held in the kernel by a process of @uid. */
void debts_leave(struct debts *d, pid_t pid, uid_t uid);

/* Whether some user holds as many as one may; and whether @uid does. */
bool debts_refuse_some(struct debts *d);
bool debts_refuse(const struct debts *d, uid_t uid);

void debts_deinit(struct debts *d);

#endif
