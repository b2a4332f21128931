/* SPDX-License-Identifier: GPL-2.0-only */
#include "export/callgrind_file.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/json.h"
#include "export/function.h"
#include "export/origin.h"
#include "profile/profile.h"

struct writer {
	const struct callgrind_file *file;
	/* Was it written with its number? By name; of functions by fn. Owned. */
	bool *objects, *files, *fns;
	struct buf *out;
};

static void write_text(struct writer *w, uint32_t name)
{
	buf_addch(w->out, ' ');
	buf_addstr(w->out, intern_get(&w->file->names, name, NULL));
}

/* "fl=(3) /app/a.rb", and from the second time on "fl=(3)". Returns whether it is the first. */
static bool write_number(struct writer *w, const char *key, bool *written, uint32_t id)
{
	const bool first = !written[id];

	buf_addstr(w->out, key);
	buf_addstr(w->out, "=(");
	buf_add_u64(w->out, (uint64_t)id + 1);
	buf_addch(w->out, ')');
	written[id] = true;
	return first;
}

static void write_name(struct writer *w, const char *key, bool *written, uint32_t name)
{
	if (write_number(w, key, written, name))
		write_text(w, name);
	buf_addch(w->out, '\n');
}

/*
 * The number of a function is not that of its name: KCachegrind takes all with one number for one
 * function, whatever file and object they are said to be in.
 */
static void write_fn(struct writer *w, uint32_t id, bool called)
{
	const struct callgrind_fn *fn = intern_get(&w->file->fns, id, NULL);

	write_name(w, called ? "cob" : "ob", w->objects, fn->object);
	write_name(w, called ? "cfi" : "fl", w->files, fn->file);
	if (write_number(w, called ? "cfn" : "fn", w->fns, id)) {
		write_text(w, fn->name);
		if (fn->depth > 1)
			buf_addf(w->out, "'%u", fn->depth);
	}
	buf_addch(w->out, '\n');
}

static void write_sum(struct writer *w, uint64_t line, const struct cost_sum *sum)
{
	buf_add_u64(w->out, line);
	buf_addch(w->out, ' ');
	buf_add_u64(w->out, json_clamp(sum->value));
	buf_addch(w->out, ' ');
	buf_add_u64(w->out, json_clamp(sum->samples));
	buf_addch(w->out, '\n');
}

static struct cost_key key_of(const struct callgrind_file *f, uint32_t id)
{
	const struct prefix_node *key = &f->keys.nodes[id];
	const struct prefix_node *place = &f->places.nodes[key->parent];
	const struct prefix_node *called = &f->places.nodes[key->what];

	return (struct cost_key) {
		.fn = place->parent,
		.line = place->what,
		.callee = key->what ? called->parent : NO_CALLEE,
		.callee_line = key->what ? called->what : 0,
	};
}

static int compare_keys(const void *a, const void *b, void *arg)
{
	const struct writer *w = arg;
	const struct cost_key x = key_of(w->file, *(const uint32_t *)a);
	const struct cost_key y = key_of(w->file, *(const uint32_t *)b);

	if (x.fn != y.fn)
		return x.fn < y.fn ? -1 : 1;
	/* Own costs first. */
	if ((x.callee == NO_CALLEE) != (y.callee == NO_CALLEE))
		return x.callee == NO_CALLEE ? -1 : 1;
	if (x.line != y.line)
		return x.line < y.line ? -1 : 1;
	if (x.callee != y.callee)
		return x.callee < y.callee ? -1 : 1;
	return (x.callee_line > y.callee_line) - (x.callee_line < y.callee_line);
}

static void write_cost(struct writer *w, const struct cost_key *key, const struct cost_sum *sum)
{
	if (key->callee != NO_CALLEE) {
		write_fn(w, key->callee, true);
		buf_addstr(w->out, "calls=");
		buf_add_u64(w->out, json_clamp(sum->samples));
		buf_addch(w->out, ' ');
		buf_add_u64(w->out, key->callee_line);
		buf_addch(w->out, '\n');
	}
	write_sum(w, key->line, sum);
}

static int write_costs(struct writer *w)
{
	const size_t n = w->file->keys.n_nodes - 1; /* without the root */
	_cleanup_free_ uint32_t *order = calloc(n + 1, sizeof(*order));
	uint32_t fn = UINT32_MAX;

	if (!order)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		order[i] = (uint32_t)i + 1;
	if (n)
		qsort_r(order, n, sizeof(*order), compare_keys, w);
	for (size_t i = 0; i < n && !buf_failed(w->out); i++) {
		const struct cost_key key = key_of(w->file, order[i]);

		if (key.fn != fn) {
			fn = key.fn;
			buf_addch(w->out, '\n');
			write_fn(w, fn, false);
		}
		write_cost(w, &key, &w->file->costs[order[i]]);
	}
	return 0;
}

/* What callgrind calls the program; of several, the first one. */
static void write_process(struct writer *w)
{
	const struct profile *p = w->file->profile;
	const char *command = "";
	bool several;
	const uint32_t process = function_process(p, w->file->threads, &several);

	if (process != PROFILE_NONE)
		command = profile_str(p, p->processes[process].cmdline);
	if (process != PROFILE_NONE && !several)
		buf_addf(w->out, "pid: %u\n", p->processes[process].pid);
	buf_addf(w->out, "cmd: %s\n", command);
}

static void write_header(struct writer *w)
{
	const struct profile_event *event = profile_event(w->file->profile);

	buf_addstr(w->out, "# callgrind format\nversion: 1\ncreator: rbpf " RBPF_VERSION "\n");
	write_process(w);
	buf_addstr(w->out, "desc: recording: ");
	origin_add(w->file->profile, w->out);
	buf_addstr(w->out, "\ndesc: calls are counted in samples\npositions: line\nevents: ");
	for (const char *s = event->name; *s; s++)
		buf_addch(w->out, *s == '-' ? '_' : *s);
	buf_addf(w->out, "_%s samples\n", value_unit_name(event->unit));
}

int callgrind_write(const struct callgrind_file *f, struct buf *out)
{
	struct writer w = {
		.file = f,
		.objects = calloc(f->names.count + 1, sizeof(bool)),
		.files = calloc(f->names.count + 1, sizeof(bool)),
		.fns = calloc(f->fns.count + 1, sizeof(bool)),
		.out = out,
	};
	int r = -ENOMEM;

	if (w.objects && w.files && w.fns) {
		write_header(&w);
		r = write_costs(&w);
		buf_addf(out, "\ntotals: %llu", (unsigned long long)json_clamp(f->all.value));
		buf_addf(out, " %llu\n", (unsigned long long)json_clamp(f->all.samples));
	}
	free(w.objects);
	free(w.files);
	free(w.fns);
	return r;
}
