/* SPDX-License-Identifier: GPL-2.0-only */
#include "sample/thread_context.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/attributes.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/io.h"
#include "base/stop.h"
#include "engine/engine.h"
#include "elf/elf_headers.h"
#include "profile/sink.h"
#include "ruby/mapped_files.h"
#include "sample/collector_state.h"
#include "sample/tls_variable.h"
#include "target/maps.h"
#include "target/memory.h"
#include "target/target_file.h"
#include "worker/file_worker.h"

#define SCHEMA_KEY "threadlocal.schema_version"
#define VARIABLE   "otel_thread_ctx_v1"

bool thread_context_is_published(const char *attributes)
{
	/* The first one until the OTEP was accepted. */
	static const char *const schemas[] = { "tlsdesc_v1_dev", "tls_v1" };
	_cleanup_buf_ struct buf value = BUF_INIT;
	size_t i;

	if (!attributes || !attributes_get(attributes, SCHEMA_KEY, &value))
		return false;
	for (i = 0; i < ARRAY_SIZE(schemas); i++)
		if (!strcmp(buf_str(&value), schemas[i]))
			return true;
	return false;
}

bool thread_context_is_known(const struct tracked_process *p)
{
	return p->thread_context.model != RBPF_TLS_NONE;
}

static void tell_engine(struct collector *c, struct tracked_process *p)
{
	engine_set_thread_context(c->engine, p->pid, &p->thread_context);
	p->told_ns = clock_ns(CLOCK_MONOTONIC);
}

void thread_context_inherit(struct collector *c, struct tracked_process *p,
			    const struct tracked_process *parent)
{
	p->thread_context = parent->thread_context;
	/* The BPF programs know it, unless it was found right after the fork. */
	if (thread_context_is_known(p))
		tell_engine(c, p);
}

/* The search in one process. */
struct variable_search {
	struct file_worker *worker;
	const struct tracked_process *process;
	struct memory mem;
	uint64_t tp;	   /* thread pointer of one of its threads */
	struct statx exe;  /* of the file that it executes … */
	bool exe_is_known; /* … if that can be told */
};

/* The load bias of the file that is open as @file, by its code, which is mapped as @map. */
static int find_bias(const struct variable_search *s, const struct worker_file *file,
		     const struct map *map, uint64_t *ret)
{
	struct elf_headers headers = ELF_HEADERS_INIT;
	uint64_t address;
	int r;

	r = file_worker_headers(s->worker, file, &headers);
	if (!r)
		r = elf_headers_address(&headers, map->offset, map->end - map->start, &address);
	if (!r)
		*ret = map->start - address;
	elf_headers_deinit(&headers);
	return r;
}

/* By the file whose code is mapped as @map. Returns 0, -ENOENT or another reason why not. */
static int find_in_file(const struct variable_search *s, const struct map *map,
			struct rbpf_tls *ret)
{
	_cleanup_close_ int fd = maps_open_file(s->process->pid, map);
	const struct worker_file file = { .fd = fd, .path = map->path };
	struct elf_tls tls;
	struct tls_file found = { .tls = &tls };
	struct statx st;
	int r;

	if (fd < 0 || io_stat(fd, &st))
		return -ENOENT;
	r = file_worker_tls(s->worker, &file, VARIABLE, &tls);
	if (!r)
		r = find_bias(s, &file, map, &found.bias);
	if (r)
		return r;
	found.is_exe = s->exe_is_known && io_device(&st) == io_device(&s->exe) &&
		       st.stx_ino == s->exe.stx_ino;
	return tls_variable_find(&s->mem, s->tp, &found, ret);
}

static int find_variable(const struct variable_search *s, const struct maps *maps,
			 struct rbpf_tls *ret)
{
	_cleanup_free_ size_t *mapped = NULL;
	size_t i, n = 0;
	int r;

	r = mapped_files_list(maps, &mapped, &n);
	if (r)
		return r;
	r = -ENOENT;
	for (i = 0; i < n && r && r != -ENOMEM && !stop_overdue(); i++)
		r = find_in_file(s, &maps->v[mapped[i]], ret);
	return r;
}

/* The thread pointer of any thread of @pid. */
static int any_thread_pointer(struct collector *c, pid_t pid, uint64_t *ret)
{
	_cleanup_free_ struct rbpf_task *tasks = NULL;
	size_t i, n = 0;
	int r;

	r = engine_read_threads(c->engine, pid, &tasks, &n, NULL);
	for (i = 0; i < n && !r; i++) {
		if (tasks[i].tgid != (uint32_t)pid || !tasks[i].thread_pointer)
			continue;
		*ret = tasks[i].thread_pointer;
		return 0;
	}
	return r ? r : -ESRCH;
}

int thread_context_look(struct collector *c, struct tracked_process *p, const struct maps *maps)
{
	const struct target_file_request of_exe = { .kind = TARGET_FILE_EXE, .pid = p->pid };
	struct variable_search s = { .worker = c->opts.worker,
				     .process = p,
				     .mem = memory_process(p->pid) };
	_cleanup_close_ int exe = -1;
	int r;

	r = any_thread_pointer(c, p->pid, &s.tp);
	if (r)
		return r == -ENOMEM ? r : 0;
	exe = target_file_open(&of_exe);
	s.exe_is_known = exe >= 0 && !io_stat(exe, &s.exe);
	r = find_variable(&s, maps, &p->thread_context);
	if (!r)
		tell_engine(c, p);
	return r == -ENOMEM ? r : 0;
}

int thread_context_span(struct sink *out, const struct rbpf_span *span, uint32_t *ret)
{
	struct profile_span def;
	int r;

	*ret = 0;
	if (!span->span)
		return 0;
	memcpy(def.trace_id, span->trace, sizeof(def.trace_id));
	memcpy(def.span_id, &span->span, sizeof(def.span_id));
	r = sink_span(out, &def, ret);
	return r == -E2BIG ? 0 : r; /* there are too many to tell more of them */
}
