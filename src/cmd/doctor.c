/* SPDX-License-Identifier: GPL-2.0-only */
#include "cmd/doctor.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/json.h"
#include "base/utf8.h"
#include "cmd/command.h"
#include "cmd/messages.h"
#include "cmd/output.h"
#include "ruby/cache.h"
#include "ruby/not_found.h"
#include "ruby/vm.h"
#include "engine/environment.h"
#include "engine/bpf_engine.h"
#include "target/process.h"
#include "ui/term.h"
#include "worker/file_worker.h"

struct doctor_report {
	struct buf out;
	struct json json;
	bool as_json;
	bool color;
	bool failed; /* something that recording needs */
};

static void add_row(struct doctor_report *rep, const char *name, bool ok, bool needed,
		    const char *detail, const char *hint)
{
	struct buf clean _cleanup_(buf_deinit) = BUF_INIT;
	const char *verdict = ok ? "ok" : needed ? "FAIL" : "no";

	utf8_sanitise(&clean, detail, strlen(detail));
	rep->failed |= needed && !ok;
	if (rep->as_json) {
		json_object_begin(&rep->json, NULL);
		json_str(&rep->json, "name", name);
		json_bool(&rep->json, "ok", ok);
		json_bool(&rep->json, "needed", needed);
		json_str(&rep->json, "detail", buf_str(&clean));
		json_str(&rep->json, "hint", hint);
		json_object_end(&rep->json);
		return;
	}
	if (!ok && rep->color)
		verdict = needed ? TERM_RED "FAIL" TERM_RESET : TERM_AMBER "no" TERM_RESET;
	buf_addf(&rep->out, "%-30s %-58s  %s\n", name, buf_str(&clean), verdict);
	if (hint[0])
		buf_addf(&rep->out, "  hint: %s\n", hint);
}

static void add_trial(struct doctor_report *rep)
{
	struct err err = { 0 };
	int r;

	if (!environment_privileged()) {
		add_row(rep, "bpf", false, true, "not tried: needs the privilege that is missing",
			"");
		return;
	}
	r = bpf_engine_trial(false, &err);
	add_row(rep, "bpf", !r, true,
		r ? err.msg : "loaded the programs, attached to a clock, read a sample", err.hint);
	if (r)
		return;
	r = bpf_engine_trial(true, &err);
	add_row(rep, "waits", !r, false,
		r ? err.msg : "loaded the programs of --mode states, attached to the scheduler",
		err.hint);
}

/* Each fact of the layout, and who said so. */
static void add_layout(struct doctor_report *rep, const struct ruby_vm *vm)
{
	char name[64], detail[64];
	size_t i;

	for (i = 0; i < RUBY_FIELDS; i++) {
		uint16_t value = ruby_layout_get(&vm->layout, i);

		snprintf(name, sizeof(name), "  %s", ruby_field_info[i].name);
		if (value == RUBY_UNKNOWN)
			snprintf(detail, sizeof(detail), "unknown");
		else if (value == RUBY_ABSENT)
			snprintf(detail, sizeof(detail), "none in this version, by %s",
				 ruby_source_name(vm->source[i]));
		else
			snprintf(detail, sizeof(detail), "%u, by %s", value,
				 ruby_source_name(vm->source[i]));
		add_row(rep, name, value != RUBY_UNKNOWN, false, detail, "");
	}
}

/* How long attaching takes, to a binary never seen before and to one that was. */
static void add_attach_time(struct doctor_report *rep, pid_t pid,
			    const struct ruby_attach_options *opts, uint64_t first_ns)
{
	uint64_t start = clock_ns(CLOCK_MONOTONIC), again_ns;
	struct ruby_vm vm = RUBY_VM_INIT;
	char detail[80];

	if (!ruby_vm_attach(pid, opts, &vm, NULL)) {
		again_ns = clock_ns(CLOCK_MONOTONIC) - start;
		snprintf(detail, sizeof(detail), "%.1f ms, %.1f ms once the binary is known",
			 (double)first_ns / NSEC_PER_MSEC, (double)again_ns / NSEC_PER_MSEC);
		add_row(rep, "attach", true, false, detail, "");
	}
	ruby_vm_deinit(&vm);
}

/* What attaching to process @pid needs to know of its threads; the caller frees *@ret. */
static int read_tasks(pid_t pid, struct rbpf_task **ret, size_t *n, struct err *err)
{
	struct engine *engine = NULL;
	int r = bpf_engine_open_idle(&engine, err);

	if (!r)
		r = engine_follow(engine, pid, NULL, 0, err);
	if (!r)
		r = engine_read_threads(engine, pid, ret, n, err);
	engine_close(engine);
	return r;
}

/* Attach to @process as record would, and show each step. */
static void add_ruby(struct doctor_report *rep, const struct process *process,
		     const struct ruby_attach_options *opts)
{
	uint64_t took = clock_ns(CLOCK_MONOTONIC);
	struct ruby_vm vm = RUBY_VM_INIT;
	struct err err = { 0 };
	int r = ruby_vm_attach(process->pid, opts, &vm, &err);

	took = clock_ns(CLOCK_MONOTONIC) - took;
	for (size_t i = 0; i < vm.n_checks; i++)
		add_row(rep, vm.checks[i].name, vm.checks[i].ok, vm.checks[i].needed,
			vm.checks[i].detail, "");
	if (r == -ENOENT)
		ruby_not_found(process, opts->worker, &err);
	if (r) {
		add_row(rep, "ruby", false, true, err.msg, err.hint);
	} else {
		add_attach_time(rep, process->pid, opts, took);
		add_layout(rep, &vm);
	}
	ruby_vm_deinit(&vm);
}

static void add_target(struct doctor_report *rep, pid_t pid, unsigned int sources,
		       struct file_worker *worker)
{
	struct ruby_cache cache = RUBY_CACHE_INIT;
	struct ruby_attach_options opts = { .worker = worker, .sources = sources, .cache = &cache };
	_cleanup_free_ struct rbpf_task *tasks = NULL;
	struct process process = PROCESS_INIT;
	struct err err = { 0 };
	int r = process_open(pid, &process, &err);

	if (!r)
		r = read_tasks(pid, &tasks, &opts.n_tasks, &err);
	opts.tasks = tasks;
	add_row(rep, "target", !r, true, r ? err.msg : process.exe, err.hint);
	if (!r)
		add_ruby(rep, &process, &opts);
	ruby_cache_deinit(&cache);
	process_close(&process);
}

/* End the report and print it. @works_here: as far as the machine is concerned. */
static int add_result(struct doctor_report *rep, bool works_here, pid_t pid, struct err *err)
{
	if (rep->as_json) {
		json_array_end(&rep->json);
		buf_addch(&rep->out, '\n');
	} else if (works_here && rep->failed) {
		buf_addf(&rep->out, "result: recording works here, but not for pid %d\n", (int)pid);
	} else {
		buf_addf(&rep->out, "result: recording will %swork\n", rep->failed ? "not " : "");
	}
	return cmd_write(NULL, &rep->out, err);
}

int doctor_run(const struct doctor_options *opts, struct cmd_context *ctx, struct err *err)
{
	struct environment_row rows[ENVIRONMENT_ROWS];
	struct doctor_report rep = { .as_json = opts->json,
				     .color = term_color(STDOUT_FILENO, ctx->color) };
	struct file_worker worker _cleanup_(file_worker_deinit);
	unsigned int sources;
	bool works_here;
	size_t i, n;
	int r;

	file_worker_init(&worker, NULL);
	r = ruby_sources_parse(ctx->layout_from, &sources, err);
	if (!r)
		r = cmd_prepare_worker(&worker, err);
	if (r)
		return r;
	cmd_log_libbpf(ctx);
	rep.json.out = &rep.out;
	if (rep.as_json)
		json_array_begin(&rep.json, NULL);
	n = environment_probe(rows);
	for (i = 0; i < n; i++)
		add_row(&rep, rows[i].name, rows[i].ok, rows[i].needed, rows[i].detail,
			rows[i].hint);
	add_trial(&rep);
	works_here = !rep.failed;
	if (opts->pid && works_here)
		add_target(&rep, opts->pid, sources, &worker);
	r = add_result(&rep, works_here, opts->pid, err);
	cmd_warn_of_unread(ctx, &worker);
	buf_deinit(&rep.out);
	return r ? r : !works_here ? (int)ERR_ENV : rep.failed ? (int)ERR_TARGET : 0;
}
