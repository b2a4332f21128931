/* SPDX-License-Identifier: GPL-2.0-only */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "profile/profile.h"
#include "sample/process_table.h"
#include "symbol/resolver.h"

static void assert_sane_table(struct process_table *t)
{
	size_t processes = 0, threads = 0;
	struct tracked_process *p;
	struct tracked_thread *th;
	bool is_new;

	LIST_FOREACH(p, &t->list, link) {
		processes++;
		cr_assert_eq(process_table_find(t, p->pid), p, "pid %d", (int)p->pid);
		cr_assert(!p->resolver || p->vm, "pid %d", (int)p->pid);
		LIST_FOREACH(th, &p->thread_list, link) {
			struct tracked_thread *found;

			threads++;
			cr_assert_eq(process_table_thread(t, p, th->tid, &found, &is_new), 0);
			cr_assert(found == th && !is_new, "tid %d", (int)th->tid);
		}
	}
	cr_assert_eq(t->n_processes, processes);
	cr_assert_eq(t->n_threads, threads);
}

static struct tracked_process *add(struct process_table *t, pid_t pid)
{
	struct tracked_process *p;

	cr_assert_eq(process_table_add(t, pid, &p), 0);
	cr_assert_eq(p->pid, pid);
	cr_assert_eq(p->id, PROFILE_NONE);
	cr_assert_eq(p->parent, PROFILE_NONE);
	cr_assert_eq(p->info.pidfd, -1);
	cr_assert(!p->vm && !p->since_ns && LIST_EMPTY(&p->thread_list));
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
	struct tracked_process *kept[501];

	for (pid_t pid = 1; pid <= 500; pid++) {
		kept[pid] = add(&t, pid * 7);
		if (pid % 3 == 0)
			process_table_remove(&t, process_table_find(&t, pid * 7));
	}
	assert_sane_table(&t);
	for (pid_t pid = 1; pid <= 500; pid++)
		cr_assert_eq(process_table_find(&t, pid * 7), pid % 3 ? kept[pid] : NULL,
			     "pid %d: entries stay where they are", (int)pid * 7);
	cr_expect_null(process_table_find(&t, 3500 + 7));
	cr_expect_eq(t.n_processes, 500 - 166);
	process_table_deinit(&t);
	cr_expect_eq(t.n_processes, 0);
}

Test(process_table, pid_is_used_again)
{
	struct process_table t = { 0 };
	struct tracked_process *p = add(&t, 42);
	struct tracked_thread *th;
	bool is_new;

	cr_assert_eq(process_table_thread(&t, p, 42, &th, &is_new), 0);
	th->cpu_base = 7;
	process_table_remove(&t, p);
	cr_expect_null(process_table_find(&t, 42));
	cr_expect_eq(t.n_threads, 0);
	p = add(&t, 42);
	cr_expect_eq(process_table_find(&t, 42), p);
	cr_assert_eq(process_table_thread(&t, p, 42, &th, &is_new), 0);
	cr_expect(is_new && !th->cpu_base, "its thread is another one, too");
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
			cr_assert_eq(th->tid, tid);
			cr_assert_eq(th->cpu_base, again ? (uint64_t)tid + 1 : 0);
			if (is_new)
				cr_assert(th->id == PROFILE_NONE && !th->ended_ns && !th->cpu_base);
			th->cpu_base = (uint64_t)tid + 1;
		}
	}
	cr_expect_eq(t.n_threads, 300);
	assert_sane_table(&t);
	for (pid_t tid = 0; tid < 300; tid += 2) {
		struct tracked_process *p = process_table_find(&t, 100 + tid % 30);

		cr_assert_eq(process_table_thread(&t, p, tid, &th, &is_new), 0);
		process_table_remove_thread(&t, p, th);
		if (tid % 4)
			continue;
		cr_assert_eq(process_table_thread(&t, p, tid, &th, &is_new), 0);
		cr_assert(is_new && !th->cpu_base, "the id is used again");
	}
	cr_expect_eq(t.n_threads, 225);
	assert_sane_table(&t);
	process_table_deinit(&t);
}

Test(process_table, a_ruby_belongs_to_its_process)
{
	struct process_table t = { 0 };
	struct tracked_process *p;
	struct resolver *names;

	for (pid_t pid = 1; pid <= 3; pid++) {
		p = add(&t, pid);
		cr_expect_null(tracked_process_names(p), "there is no Ruby in it");
		p->vm = calloc(1, sizeof(*p->vm));
		cr_assert_not_null(p->vm);
		p->vm->binary.path = strdup("/usr/bin/ruby");
		names = tracked_process_names(p);
		cr_assert_not_null(names);
		cr_expect_eq(tracked_process_names(p), names);
		p->frame_ids = calloc(10, sizeof(*p->frame_ids));
		p->cap_frame_ids = 10;
		p->info.exe = strdup("/usr/bin/ruby");
	}
	assert_sane_table(&t);
	p = process_table_find(&t, 1);
	tracked_process_forget_names(p);
	cr_expect(p->vm && !p->resolver && !p->frame_ids && !p->cap_frame_ids);
	cr_expect_not_null(tracked_process_names(p), "they are learnt anew");
	tracked_process_drop_vm(p); /* exec */
	cr_expect(!p->vm && !p->resolver && !p->frame_ids && !p->cap_frame_ids);
	cr_expect_not_null(p->info.exe, "it is still that process");
	tracked_process_drop_vm(p);
	process_table_remove(&t, process_table_find(&t, 2));
	assert_sane_table(&t);
	process_table_deinit(&t);
}
