/* SPDX-License-Identifier: GPL-2.0-only */
#include <criterion/criterion.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "target/debts.h"

static struct debts d;

static void end(void)
{
	debts_deinit(&d);
}

TestSuite(debts, .fini = end);

Test(debts, patience)
{
	const uint64_t at = 5 * NSEC_PER_SEC;

	cr_expect_eq(debts_patience(&d, 7, at), DEBTS_LIMIT_NS);
	debts_add(&d, 7, 300000000, at);
	cr_expect_eq(debts_patience(&d, 7, at), DEBTS_LIMIT_NS - 300000000);
	cr_expect_eq(debts_patience(&d, 8, at), DEBTS_LIMIT_NS, "another user");
	debts_add(&d, 7, 600000000, at);
	cr_expect_eq(debts_patience(&d, 7, at), DEBTS_LEAST_NS);
	cr_expect_eq(debts_patience(&d, 7, at + 4 * NSEC_PER_SEC), DEBTS_LIMIT_NS - 700000000,
		     "5 % of the time are forgiven");
	cr_expect_eq(debts_patience(&d, 7, at + 1000 * NSEC_PER_SEC), DEBTS_LIMIT_NS);
	debts_add(&d, 7, 100 * NSEC_PER_SEC, at);
	cr_expect_eq(debts_patience(&d, 7, at + 200 * NSEC_PER_SEC), DEBTS_LIMIT_NS,
		     "not for ever");
}

Test(debts, many_users)
{
	uid_t uid;

	for (uid = 0; uid < 3 * DEBTS_MAX_USERS; uid++)
		debts_add(&d, uid, uid == 5 ? 700000000 : 1000000, NSEC_PER_SEC);
	cr_expect_eq(d.n_users, DEBTS_MAX_USERS);
	cr_expect_eq(debts_patience(&d, 5, NSEC_PER_SEC), DEBTS_LIMIT_NS - 700000000,
		     "the one who owes most stays");
}

Test(debts, given_up)
{
	const pid_t pid = fork();
	unsigned int i;

	if (!pid)
		for (;;)
			pause();
	cr_expect_not(debts_gave_up(&d, pid));
	debts_give_up(&d, pid);
	cr_expect(debts_gave_up(&d, pid));
	cr_expect_not(debts_gave_up(&d, getpid()));
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	cr_expect_not(debts_gave_up(&d, pid), "the pid may be that of another process");
	cr_expect_eq(d.n_given, 0);
	for (i = 0; i <= DEBTS_MAX_GIVEN; i++)
		debts_give_up(&d, i ? (pid_t)i : getpid());
	cr_expect_eq(d.n_given, DEBTS_MAX_GIVEN);
	cr_expect_not(debts_gave_up(&d, getpid()), "the first makes room");
}

Test(debts, left_behind)
{
	pid_t pids[DEBTS_MAX_LEFT];
	size_t i;

	for (i = 0; i < DEBTS_MAX_LEFT; i++) {
		cr_expect_not(debts_refuse_some(&d));
		pids[i] = fork();
		if (!pids[i])
			for (;;)
				pause();
		debts_leave(&d, pids[i], 7);
	}
	cr_expect(debts_refuse_some(&d));
	cr_expect(debts_refuse(&d, 7));
	cr_expect_not(debts_refuse(&d, 8));
	kill(pids[1], SIGKILL);
	waitid(P_PID, (id_t)pids[1], NULL, WEXITED | WNOWAIT);
	cr_expect_not(debts_refuse_some(&d), "one of them is gone");
	cr_expect_not(debts_refuse(&d, 7));
	for (i = 0; i < DEBTS_MAX_LEFT; i++)
		kill(pids[i], SIGKILL);
}
