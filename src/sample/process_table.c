/* SPDX-License-Identifier: GPL-2.0-only */
#include "sample/process_table.h"

#include <errno.h>
#include <stdlib.h>

#include "base/array.h"
#include "profile/profile.h"
#include "symbol/resolver.h"

void process_table_deinit(struct process_table *t)
{
	size_t i;

	for (i = 0; i < t->n_processes; i++) {
		tracked_process_drop_vm(&t->processes[i]);
		process_close(&t->processes[i].info);
	}
	free(t->processes);
	free(t->threads);
	free(t->by_pid);
	intern_deinit(&t->pids);
	intern_deinit(&t->threads_by_id);
	*t = (struct process_table) { 0 };
}

struct tracked_process *process_table_find(struct process_table *t, pid_t pid)
{
	uint32_t id;

	if (intern_find(&t->pids, &pid, sizeof(pid), &id) || !t->by_pid[id])
		return NULL;
	return &t->processes[t->by_pid[id] - 1];
}

int process_table_add(struct process_table *t, pid_t pid, struct tracked_process **ret)
{
	uint32_t id;
	int r;

	r = array_reserve(t->by_pid, t->cap_by_pid, t->pids.count + 1);
	if (!r)
		r = intern_add(&t->pids, &pid, sizeof(pid), &id, NULL);
	if (!r)
		r = array_reserve(t->processes, t->cap_processes, t->n_processes + 1);
	if (r)
		return r;
	t->processes[t->n_processes] = (struct tracked_process) { .pid = pid,
								  .info = PROCESS_INIT,
								  .parent = PROFILE_NONE };
	*ret = &t->processes[t->n_processes++];
	t->by_pid[id] = (uint32_t)t->n_processes;
	return 0;
}

void tracked_process_drop_vm(struct tracked_process *p)
{
	resolver_free(p->resolver);
	if (p->vm) {
		ruby_vm_deinit(p->vm);
		free(p->vm);
	}
	free(p->frame_ids);
	p->resolver = NULL;
	p->vm = NULL;
	p->frame_ids = NULL;
	p->cap_frame_ids = 0;
}

void process_table_end(struct process_table *t, struct tracked_process *p)
{
	uint32_t id;

	tracked_process_drop_vm(p);
	process_close(&p->info);
	p->ended = true;
	if (!intern_find(&t->pids, &p->pid, sizeof(p->pid), &id))
		t->by_pid[id] = 0;
}

int process_table_thread(struct process_table *t, const struct tracked_process *p, pid_t tid,
			 struct tracked_thread **ret, bool *is_new)
{
	const uint32_t key[2] = { (uint32_t)(p - t->processes), (uint32_t)tid };
	uint32_t id;
	int r;

	r = array_reserve(t->threads, t->cap_threads, t->n_threads + 1);
	if (!r)
		r = intern_add(&t->threads_by_id, key, sizeof(key), &id, is_new);
	if (r)
		return r;
	if (*is_new) {
		t->threads[id] = (struct tracked_thread) {
			.process = key[0],
			.tid = tid,
			.id = PROFILE_NONE,
		};
		t->n_threads = id + 1;
	}
	*ret = &t->threads[id];
	return 0;
}
