/* SPDX-License-Identifier: GPL-2.0-only */
/* Processes and their descendants, in the order in which they are listed. */
#include <criterion/criterion.h>
#include <stdint.h>
#include <unistd.h>

#include "base/err.h"
#include "support/target_process.h"
#include "target/family.h"
#include "target/remote.h"

#define CHILDREN 3
#define DEPTH	 4

static struct target parent;
static pid_t children[CHILDREN]; /* of parent */
static pid_t chain[DEPTH];	 /* each the parent of the next */

static void be_chain(int fd)
{
	for (int depth = 0; depth < DEPTH; depth++) {
		const pid_t self = getpid(), above = getppid();

		target_end_with(above);
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

	parent = target_start();
	for (int i = 0; i < CHILDREN; i++)
		children[i] = target_fork(&parent);
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
	target_end(&parent);
	kill(chain[0], SIGKILL);
	waitpid(chain[0], NULL, 0);
}

static void assert_sane_family(const struct family *f)
{
	for (size_t i = 0; i < f->n; i++) {
		cr_assert(f->v[i].parent == FAMILY_NONE || f->v[i].parent < i, "a parent is first");
		cr_assert(f->v[i].parent != FAMILY_NONE || f->v[i].root);
		for (size_t k = 0; k < i; k++)
			cr_assert_neq(f->v[i].pid, f->v[k].pid, "once each");
		cr_assert(family_descends(f, i, i));
	}
}

static void list(const pid_t *roots, size_t n, bool with_children, struct family *f)
{
	struct err err = { 0 };

	cr_assert_eq(family_list(roots, n, with_children, f, &err), 0, "%s", err.msg);
	assert_sane_family(f);
}

Test(family, children_are_behind_their_parent, .init = setup, .fini = teardown)
{
	const pid_t roots[] = { parent.pid, chain[1] };
	struct family f;

	list(roots, 2, true, &f);
	cr_assert_eq(f.n, 1 + CHILDREN + DEPTH - 1);
	cr_expect_eq(f.v[0].pid, parent.pid);
	for (size_t i = 0; i < CHILDREN; i++) {
		cr_expect_eq(f.v[1 + i].pid, children[i], "by their pids");
		cr_expect_eq(f.v[1 + i].parent, 0);
		cr_expect_not(f.v[1 + i].root);
	}
	for (size_t i = 0; i < DEPTH - 1; i++) {
		cr_expect_eq(f.v[1 + CHILDREN + i].pid, chain[1 + i]);
		cr_expect_eq(f.v[1 + CHILDREN + i].parent, i ? CHILDREN + i : FAMILY_NONE);
		cr_expect(family_descends(&f, 1 + CHILDREN + i, 1 + CHILDREN));
		cr_expect_not(family_descends(&f, 1 + CHILDREN + i, 0));
	}
	family_deinit(&f);
}

Test(family, a_root_below_another_is_listed_there, .init = setup, .fini = teardown)
{
	const pid_t roots[] = { chain[2], children[1], chain[0], parent.pid, chain[0] };
	struct family f;

	list(roots, 5, true, &f);
	cr_assert_eq(f.n, DEPTH + 1 + CHILDREN);
	for (size_t i = 0; i < DEPTH; i++)
		cr_expect_eq(f.v[i].pid, chain[i]);
	cr_expect(f.v[0].root && !f.v[1].root && f.v[2].root && !f.v[3].root);
	cr_expect_eq(f.v[DEPTH].pid, parent.pid);
	cr_expect(f.v[DEPTH + 2].root, "the second child");
	family_deinit(&f);
}

Test(family, without_children_only_the_roots, .init = setup, .fini = teardown)
{
	const pid_t roots[] = { chain[1], parent.pid, chain[0], chain[1] };
	struct family f;

	list(roots, 4, false, &f);
	cr_assert_eq(f.n, 3);
	cr_expect_eq(f.v[0].pid, chain[1]);
	cr_expect_eq(f.v[1].pid, parent.pid);
	cr_expect_eq(f.v[2].pid, chain[0]);
	family_deinit(&f);
}

Test(family, a_root_that_does_not_exist_is_a_member, .init = setup, .fini = teardown)
{
	const pid_t roots[] = { 0x3fffffff, chain[3] };
	struct family f;

	list(roots, 2, true, &f);
	cr_assert_eq(f.n, 2);
	cr_expect_eq(f.v[0].pid, 0x3fffffff);
	family_deinit(&f);
}

Test(family, the_calling_process_is_a_member_only_as_a_root, .init = setup, .fini = teardown)
{
	const pid_t above = getppid(), self = getpid();
	struct family f;

	remote_prepare();
	list(&above, 1, true, &f);
	for (size_t i = 0; i < f.n; i++)
		cr_expect(f.v[i].pid != self && f.v[i].pid != chain[0]);
	family_deinit(&f);
	list(&self, 1, true, &f);
	/* With the two that read others for it. */
	cr_expect_eq(f.n, 1 + 1 + CHILDREN + DEPTH + 2);
	family_deinit(&f);
}
