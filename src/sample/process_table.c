/* SPDX-License-Identifier: GPL-2.0-only */
#include "sample/process_table.h"

#include <errno.h>
#include <search.h>
#include <stdlib.h>

#include "profile/profile.h"
#include "native/native_stacks.h"
#include "symbol/resolver.h"

static int compare_pids(const void *a, const void *b)
{
	pid_t x = ((const struct tracked_process *)a)->pid;
	pid_t y = ((const struct tracked_process *)b)->pid;

	return (x > y) - (x < y);
}

static int compare_tids(const void *a, const void *b)
{
	pid_t x = ((const struct tracked_thread *)a)->tid;
	pid_t y = ((const struct tracked_thread *)b)->tid;

	return (x > y) - (x < y);
}

void process_table_deinit(struct process_table *t)
{
	while (!LIST_EMPTY(&t->list))
		process_table_remove(t, LIST_FIRST(&t->list));
}

struct tracked_process *process_table_find(const struct process_table *t, pid_t pid)
{
	const struct tracked_process key = { .pid = pid };
	void *node = tfind(&key, &t->by_pid, compare_pids);

	return node ? *(struct tracked_process **)node : NULL;
}

int process_table_add(struct process_table *t, pid_t pid, struct tracked_process **ret)
{
	struct tracked_process *p = malloc(sizeof(*p));

	if (!p)
		return -ENOMEM;
	*p = (struct tracked_process) {
		.pid = pid, .info = PROCESS_INIT, .id = PROFILE_NONE, .parent = PROFILE_NONE
	};
	if (!tsearch(p, &t->by_pid, compare_pids)) {
		free(p);
		return -ENOMEM;
	}
	LIST_INSERT_HEAD(&t->list, p, link);
	t->n_processes++;
	*ret = p;
	return 0;
}

void tracked_process_forget_names(struct tracked_process *p)
{
	resolver_free(p->resolver);
	free(p->frame_ids);
	p->resolver = NULL;
	p->frame_ids = NULL;
	p->cap_frame_ids = 0;
	p->names_made++;
}

void tracked_process_forget_pushed(struct tracked_process *p)
{
	for (size_t i = 0; i < p->cap_pushed; i++)
		p->pushed[i].stack = 0;
}

void tracked_process_drop_vm(struct tracked_process *p)
{
	tracked_process_forget_names(p);
	if (p->vm) {
		ruby_vm_deinit(p->vm);
		free(p->vm);
	}
	p->vm = NULL;
	p->interpreter_tries = 0;
	p->interpreter_pending = false;
}

struct resolver *tracked_process_names(struct tracked_process *p)
{
	if (!p->resolver && p->vm)
		resolver_new(p->vm, &p->resolver);
	return p->resolver;
}

void process_table_remove(struct process_table *t, struct tracked_process *p)
{
	while (!LIST_EMPTY(&p->thread_list))
		process_table_remove_thread(t, p, LIST_FIRST(&p->thread_list));
	tracked_process_drop_vm(p);
	native_process_free(p->native);
	held_deinit(&p->held);
	process_close(&p->info);
	free(p->attributes);
	free(p->pushed);
	tdelete(p, &t->by_pid, compare_pids);
	LIST_REMOVE(p, link);
	t->n_processes--;
	free(p);
}

struct tracked_thread *process_table_find_thread(const struct tracked_process *p, pid_t tid)
{
	const struct tracked_thread key = { .tid = tid };
	void *node = tfind(&key, &p->threads, compare_tids);

	return node ? *(struct tracked_thread **)node : NULL;
}

int process_table_thread(struct process_table *t, struct tracked_process *p, pid_t tid,
			 struct tracked_thread **ret, bool *is_new)
{
	struct tracked_thread *thread = process_table_find_thread(p, tid);

	*is_new = !thread;
	if (thread) {
		*ret = thread;
		return 0;
	}
	thread = malloc(sizeof(*thread));
	if (!thread)
		return -ENOMEM;
	*thread = (struct tracked_thread) { .tid = tid, .id = PROFILE_NONE };
	if (!tsearch(thread, &p->threads, compare_tids)) {
		free(thread);
		return -ENOMEM;
	}
	LIST_INSERT_HEAD(&p->thread_list, thread, link);
	t->n_threads++;
	*ret = thread;
	return 0;
}

void process_table_remove_thread(struct process_table *t, struct tracked_process *p,
				 struct tracked_thread *thread)
{
	tdelete(thread, &p->threads, compare_tids);
	LIST_REMOVE(thread, link);
	t->n_threads--;
	free(thread->wait);
	free(thread);
}
