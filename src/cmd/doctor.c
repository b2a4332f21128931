/* SPDX-License-Identifier: GPL-2.0-only */
#include "cmd/doctor.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/json.h"
#include "base/utf8.h"
#include "cmd/command.h"
#include "cmd/common.h"
#include "ruby/vm.h"
#include "sample/environment.h"
#include "sample/session.h"
#include "target/process.h"
#include "ui/term.h"

struct report {
	struct buf out;
	struct json json;
	bool as_json;
	bool color;
	bool failed; /* something that recording needs */
};

static void add_row(struct report *rep, const char *name, bool ok, bool needed, const char *detail,
		    const char *hint)
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
	buf_addf(&rep->out, "%-18s %-58s  %s\n", name, buf_str(&clean), verdict);
	if (hint[0])
		buf_addf(&rep->out, "  hint: %s\n", hint);
}

static void add_trial(struct report *rep)
{
	struct err err = { 0 };
	int r;

	if (!environment_privileged()) {
		add_row(rep, "bpf", false, true, "not tried without the privilege", "");
		return;
	}
	r = session_trial(&err);
	add_row(rep, "bpf", !r, true,
		r ? err.msg : "programs loaded, attached to a clock, a sample read",
		r ? "-v shows what libbpf says" : "");
}

static int no_records(void *arg, const void *data, size_t len)
{
	(void)arg;
	(void)data;
	(void)len;
	return 0;
}

/* Attach to the process as record would, and show each step. */
static int add_target(struct report *rep, pid_t pid, struct err *err)
{
	struct session_options opts = { .frequency = 1,
					.max_frames = RBPF_MIN_FRAMES,
					.ring_bytes = 64 << 10,
					.follow = true,
					.on_record = no_records };
	_cleanup_free_ struct rbpf_task *tasks = NULL;
	struct process process = PROCESS_INIT;
	struct ruby_vm vm = RUBY_VM_INIT;
	struct session *session;
	size_t i, n = 0;
	int r;

	r = process_open(pid, &process, err);
	if (r)
		return r;
	r = session_open(&opts, &session, err);
	if (r) {
		process_close(&process);
		return r;
	}
	r = session_follow(session, pid, NULL, err);
	if (!r)
		r = session_tasks(session, &tasks, &n, err);
	if (!r) {
		add_row(rep, "target", true, true, process.exe, "");
		r = ruby_vm_attach(pid, tasks, n, &vm, err);
		for (i = 0; i < vm.n_checks; i++)
			add_row(rep, vm.checks[i].name, vm.checks[i].ok, true, vm.checks[i].detail,
				"");
		if (r == -ENOENT)
			process_not_ruby(&process, err);
		if (r)
			add_row(rep, "ruby", false, true, err->msg, err->hint);
		r = 0;
	}
	session_close(session);
	ruby_vm_deinit(&vm);
	process_close(&process);
	return r;
}

int doctor_run(const struct doctor_options *opts, struct cmd_context *ctx, struct err *err)
{
	struct environment_row rows[ENVIRONMENT_ROWS];
	struct report rep = { .as_json = opts->json,
			      .color = term_color(STDOUT_FILENO, ctx->color) };
	size_t i, n;
	int r = 0;

	rep.json.out = &rep.out;
	if (rep.as_json)
		json_array_begin(&rep.json, NULL);
	n = environment_look(rows);
	for (i = 0; i < n; i++)
		add_row(&rep, rows[i].name, rows[i].ok, rows[i].needed, rows[i].detail,
			rows[i].hint);
	add_trial(&rep);
	if (opts->pid && !rep.failed)
		r = add_target(&rep, opts->pid, err);
	if (!r && rep.as_json) {
		json_array_end(&rep.json);
		buf_addch(&rep.out, '\n');
	} else if (!r) {
		buf_addf(&rep.out, "result: recording will %swork\n", rep.failed ? "not " : "");
	}
	if (!r)
		r = cmd_write(NULL, &rep.out, err);
	buf_deinit(&rep.out);
	return r ? r : rep.failed ? (int)ERR_ENV : 0;
}
