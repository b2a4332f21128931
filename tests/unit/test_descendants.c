/* SPDX-License-Identifier: GPL-2.0-only */
/* The processes that were there before the recording, and whose children they are. */
#include <criterion/criterion.h>
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sample/collector_state.h"
#include "sample/descendants.h"
#include "support/collecting.h"

#define DEPTH 4

static struct collecting f;
static pid_t chain[DEPTH]; /* each the parent of the next */

/* Be the processes: tell each one's pid, and wait to be killed, at the latest with the parent. */
static void be_chain(int fd)
{
	for (int depth = 0; depth < DEPTH; depth++) {
		const pid_t self = getpid();

		prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);
		if (write(fd, &self, sizeof(self)) != sizeof(self))
			_exit(1);
		if (depth + 1 == DEPTH || fork())
			break;
	}
	for (;;)
		pause();
}

static void setup(void)
{
	int fds[2];

	collecting_init(&f, NULL);
	cr_assert_eq(pipe(fds), 0);
	if (!fork())
		be_chain(fds[1]);
	for (int i = 0; i < DEPTH; i++)
		cr_assert_eq(read(fds[0], &chain[i], sizeof(pid_t)), (ssize_t)sizeof(pid_t));
	close(fds[0]);
	close(fds[1]);
}

static void teardown(void)
{
	kill(chain[0], SIGKILL);
	waitpid(chain[0], NULL, 0);
	collecting_deinit(&f);
}

static void start(void)
{
	cr_assert_eq(collector_start(f.c, &f.sink.sink, &f.err), 0, "%s", f.err.msg);
}

Test(descendants, all_are_followed, .init = setup, .fini = teardown)
{
	cr_expect_eq(collector_add_family(f.c, chain[1], &f.err), -ENOENT, "none is a Ruby");
	cr_expect_not_null(strstr(f.err.msg, "is not a Ruby process"), "%s", f.err.msg);
	for (int i = 1; i < DEPTH; i++)
		cr_expect(scripted_has(&f.engine.followed, chain[i]), "%d", i);
	cr_expect_eq(f.engine.followed.n, DEPTH - 1, "neither its parent nor this test");
	for (int i = 1; i < DEPTH; i++)
		cr_expect_eq(scripted_count(&f.engine, SCRIPTED_FOLLOW, chain[i]), 1);
}

/* Whichever of them was met first. */
Test(descendants, parents, .init = setup, .fini = teardown)
{
	cr_assert_eq(collector_add(f.c, chain[3], false, &f.err), 0);
	cr_assert_eq(collector_add(f.c, chain[1], false, &f.err), 0);
	cr_assert_eq(collector_add(f.c, chain[0], false, &f.err), 0);
	cr_assert_eq(collector_add(f.c, chain[2], false, &f.err), 0);
	start();
	cr_expect_eq(collecting_profile(&f)->n_processes, DEPTH);
	cr_expect_eq(collecting_process(&f, chain[0])->parent, PROFILE_NONE);
	for (int i = 1; i < DEPTH; i++)
		cr_expect_eq(collecting_process(&f, chain[i])->parent,
			     collecting_find(&f, chain[i - 1]), "%d", i);
	collecting_finish(&f);
}

/* What is found by both ways is followed once. */
Test(descendants, one_that_was_added, .init = setup, .fini = teardown)
{
	cr_assert_eq(collector_add(f.c, chain[2], false, &f.err), 0);
	cr_expect_eq(collector_add_family(f.c, chain[0], &f.err), -ENOENT);
	cr_assert_eq(collector_add(f.c, chain[1], false, &f.err), 0);
	start();
	cr_expect_eq(collecting_profile(&f)->n_processes, DEPTH);
	for (int i = 0; i < DEPTH; i++)
		cr_expect_eq(scripted_count(&f.engine, SCRIPTED_FOLLOW, chain[i]), 1);
	collecting_finish(&f);
}

/* The engine has no room for one, and those below that are strangers, until there is some again. */
Test(descendants, one_that_cannot_be_followed, .init = setup, .fini = teardown)
{
	scripted_engine_fail(&f.engine, SCRIPTED_FOLLOW, 3, -E2BIG);
	cr_expect_eq(collector_add_family(f.c, chain[0], &f.err), -ENOENT);
	cr_expect_not_null(strstr(f.err.msg, "is not a Ruby process"), "%s", f.err.msg);
	cr_expect_eq(scripted_count(&f.engine, SCRIPTED_FOLLOW, chain[2]), 2);
	cr_expect_eq(scripted_count(&f.engine, SCRIPTED_FOLLOW, chain[3]), 1);
	start();
	cr_expect_eq(collecting_profile(&f)->n_processes, DEPTH);
	collecting_finish(&f);
	cr_expect_eq(f.totals.counters[COUNTER_NOT_FOLLOWED], 1);
}
