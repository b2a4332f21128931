/* SPDX-License-Identifier: GPL-2.0-only */
#include "target/debts.h"

#include <poll.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fds.h"

/* ---- users ---- */

static uint64_t debt_at(const struct debts_user *u, uint64_t now_ns)
{
	const uint64_t forgiven = (now_ns - u->at_ns) / 100 * DEBTS_PER_CENT;

	return u->debt_ns > forgiven ? u->debt_ns - forgiven : 0;
}

static struct debts_user *find_user(const struct debts *d, uid_t uid)
{
	size_t i;

	for (i = 0; i < d->n_users; i++)
		if (d->users[i].uid == uid)
			return (struct debts_user *)&d->users[i];
	return NULL;
}

/* The one who owes least makes room for another. */
static struct debts_user *add_user(struct debts *d, uid_t uid, uint64_t now_ns)
{
	struct debts_user *least = &d->users[0];
	size_t i;

	if (d->n_users < DEBTS_MAX_USERS)
		least = &d->users[d->n_users++];
	else
		for (i = 1; i < d->n_users; i++)
			if (debt_at(&d->users[i], now_ns) < debt_at(least, now_ns))
				least = &d->users[i];
	*least = (struct debts_user) { .uid = uid, .at_ns = now_ns };
	return least;
}

uint64_t debts_patience(const struct debts *d, uid_t uid, uint64_t now_ns)
{
	const struct debts_user *u = find_user(d, uid);
	const uint64_t debt = u ? debt_at(u, now_ns) : 0;

	return debt + DEBTS_LEAST_NS < DEBTS_LIMIT_NS ? DEBTS_LIMIT_NS - debt : DEBTS_LEAST_NS;
}

void debts_add(struct debts *d, uid_t uid, uint64_t slept_ns, uint64_t now_ns)
{
	struct debts_user *u = find_user(d, uid);

	if (!u)
		u = add_user(d, uid, now_ns);
	u->debt_ns = debt_at(u, now_ns) + slept_ns;
	/* What is owed beyond the limit is not waited for again. */
	if (u->debt_ns > 2 * DEBTS_LIMIT_NS)
		u->debt_ns = 2 * DEBTS_LIMIT_NS;
	u->at_ns = now_ns;
}

/* ---- processes that are given up ---- */

static void remove_given(struct debts *d, size_t i)
{
	if (d->given[i].pidfd >= 0)
		close(d->given[i].pidfd);
	memmove(&d->given[i], &d->given[i + 1], (--d->n_given - i) * sizeof(d->given[0]));
}

void debts_give_up(struct debts *d, pid_t pid)
{
	int fd = (int)syscall(SYS_pidfd_open, pid, 0);

	if (fd >= 0 && !fds_may_keep(fd)) {
		close(fd);
		fd = -1;
	}
	if (d->n_given == DEBTS_MAX_GIVEN)
		remove_given(d, 0);
	d->given[d->n_given++] = (struct debts_given) { .pid = pid, .pidfd = fd };
}

bool debts_gave_up(struct debts *d, pid_t pid)
{
	struct pollfd pfd = { .events = POLLIN };
	size_t i;

	for (i = 0; i < d->n_given && d->given[i].pid != pid; i++)
		;
	if (i == d->n_given)
		return false;
	pfd.fd = d->given[i].pidfd;
	if (pfd.fd < 0 || poll(&pfd, 1, 0) != 1)
		return true;
	/* It has ended, and another process may have its pid. */
	remove_given(d, i);
	return false;
}

/* ---- processes of ours that are left behind ---- */

static void reap(struct debts *d)
{
	size_t i = 0;

	while (i < d->n_left)
		if (waitpid(d->left[i].pid, NULL, WNOHANG))
			d->left[i] = d->left[--d->n_left];
		else
			i++;
}

void debts_leave(struct debts *d, pid_t pid, uid_t uid)
{
	reap(d);
	if (d->n_left < DEBTS_MAX_STAYED)
		d->left[d->n_left++] = (struct debts_left) { .pid = pid, .uid = uid };
}

bool debts_refuse(const struct debts *d, uid_t uid)
{
	size_t i, n = 0;

	for (i = 0; i < d->n_left; i++)
		n += d->left[i].uid == uid;
	return n >= DEBTS_MAX_LEFT || d->n_left == DEBTS_MAX_STAYED;
}

bool debts_refuse_some(struct debts *d)
{
	if (d->n_left < DEBTS_MAX_LEFT)
		return false;
	reap(d);
	return d->n_left >= DEBTS_MAX_LEFT;
}

void debts_deinit(struct debts *d)
{
	while (d->n_given)
		remove_given(d, d->n_given - 1);
	reap(d);
	*d = (struct debts) { .n_users = 0 };
}
