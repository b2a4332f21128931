/* SPDX-License-Identifier: GPL-2.0-only */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "profile/profile.h"
#include "sample/process_table.h"
#include "symbol/resolver.h"

static void assert_sane_table(struct process_table *t)
{
	cr_assert_leq(t->n_processes, t->cap_processes);
	cr_assert_leq(t->n_threads, t->cap_threads);
	for (size_t i = 0; i < t->n_processes; i++) {
		struct tracked_process *p = &t->processes[i];

		cr_assert(p->ended || process_table_find(t, p->pid) == p,
			  "process %zu lives and is not found", i);
		cr_assert(!p->ended || process_table_find(t, p->pid) != p,
			  "process %zu has ended and is found", i);
		cr_assert(!p->resolver || p->vm, "process %zu", i);
	}
	for (size_t i = 0; i < t->n_threads; i++)
		cr_assert_lt(t->threads[i].process, t->n_processes, "thread %zu", i);
}

static struct tracked_process *add(struct process_table *t, pid_t pid)
{
	struct tracked_process *p;

	cr_assert_eq(process_table_add(t, pid, &p), 0);
	cr_assert_eq(p->pid, pid);
	cr_assert_eq(p->parent, PROFILE_NONE);
	cr_assert_eq(p->info.pidfd, -1);
	cr_assert(!p->vm && !p->ended);
	return p;
}

Test(process_table, nothing)
{
	struct process_table t = { 0 };

	cr_expect_null(process_table_find(&t, 1));
	process_table_deinit(&t);
	process_table_deinit(&t);
}

Test(process_table, processes_come_and_go)
{
	struct process_table t = { 0 };

	for (pid_t pid = 1; pid <= 500; pid++) {
		add(&t, pid * 7);
		if (pid % 3 == 0)
			process_table_end(&t, process_table_find(&t, pid * 7));
	}
	assert_sane_table(&t);
	for (pid_t pid = 1; pid <= 500; pid++) {
		struct tracked_process *p = process_table_find(&t, pid * 7);

		cr_assert_eq(p != NULL, pid % 3 != 0, "pid %d", (int)pid * 7);
		if (p)
			cr_assert_eq(p - t.processes, pid - 1, "entries stay where they are");
	}
	cr_expect_null(process_table_find(&t, 3500 + 7));
	process_table_deinit(&t);
}

Test(process_table, pid_is_used_again)
{
	struct process_table t = { 0 };
	struct tracked_process *p = add(&t, 42);

	process_table_end(&t, p);
	cr_expect(t.processes[0].ended);
	cr_expect_null(process_table_find(&t, 42));
	p = add(&t, 42);
	cr_expect_eq(p, &t.processes[1], "an entry of its own");
	cr_expect_eq(process_table_find(&t, 42), p);
	process_table_end(&t, &t.processes[1]);
	add(&t, 42);
	cr_expect_eq(t.n_processes, 3);
	assert_sane_table(&t);
	process_table_deinit(&t);
}

Test(process_table, threads)
{
	struct process_table t = { 0 };
	struct tracked_thread *th;
	bool is_new;

	for (pid_t pid = 0; pid < 30; pid++)
		add(&t, 100 + pid);
	for (int again = 0; again < 2; again++) {
		for (pid_t tid = 0; tid < 300; tid++) {
			struct tracked_process *p = process_table_find(&t, 100 + tid % 30);

			cr_assert_eq(process_table_thread(&t, p, tid, &th, &is_new), 0);
			cr_assert_eq(is_new, !again, "thread %d", (int)tid);
			cr_assert_eq(th, &t.threads[tid]);
			cr_assert_eq(th->tid, tid);
			cr_assert_eq(th->process, (uint32_t)tid % 30);
			if (is_new)
				cr_assert(!th->covered_ns && !th->ended && !th->cpu_base);
			th->covered_ns = 1;
		}
	}
	cr_expect_eq(t.n_threads, 300);
	assert_sane_table(&t);

	/* The same tid in the next process of that pid is another thread. */
	process_table_end(&t, process_table_find(&t, 100));
	cr_assert_eq(process_table_thread(&t, add(&t, 100), 0, &th, &is_new), 0);
	cr_expect(is_new);
	cr_expect_eq(th->process, 30);
	process_table_deinit(&t);
}

Test(process_table, a_ruby_belongs_to_its_process)
{
	struct process_table t = { 0 };

	for (pid_t pid = 1; pid <= 3; pid++) {
		struct tracked_process *p = add(&t, pid);

		p->vm = calloc(1, sizeof(*p->vm));
		cr_assert_not_null(p->vm);
		p->vm->binary.path = strdup("/usr/bin/ruby");
		cr_assert_eq(resolver_new(p->vm, &p->resolver), 0);
		p->frame_ids = calloc(10, sizeof(*p->frame_ids));
		p->cap_frame_ids = 10;
		p->info.exe = strdup("/usr/bin/ruby");
	}
	assert_sane_table(&t);
	tracked_process_drop_vm(&t.processes[0]); /* exec */
	cr_expect(!t.processes[0].vm && !t.processes[0].resolver);
	cr_expect(!t.processes[0].frame_ids && !t.processes[0].cap_frame_ids);
	cr_expect_not_null(t.processes[0].info.exe, "it is still that process");
	tracked_process_drop_vm(&t.processes[0]);
	process_table_end(&t, &t.processes[1]);
	cr_expect_null(t.processes[1].info.exe);
	assert_sane_table(&t);
	process_table_deinit(&t);
}
