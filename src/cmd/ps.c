/* SPDX-License-Identifier: GPL-2.0-only */
#include "cmd/ps.h"

#include <errno.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/attributes.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/json.h"
#include "base/number.h"
#include "base/utf8.h"
#include "cmd/command.h"
#include "cmd/messages.h"
#include "cmd/output.h"
#include "ruby/binary.h"
#include "ruby/layout.h"
#include "engine/environment.h"
#include "engine/privileges.h"
#include "target/maps.h"
#include "target/memory.h"
#include "target/otel_context.h"
#include "target/process.h"
#include "ui/table.h"
#include "ui/term.h"
#include "view/label.h"
#include "worker/file_worker.h"

struct ruby_process {
	struct process process;
	struct process_times times;
	struct ruby_binary binary;
	struct buf attributes; /* that it publishes, see otel_context.h */
};

static void ruby_process_deinit(struct ruby_process *rp)
{
	ruby_binary_deinit(&rp->binary);
	process_close(&rp->process);
	buf_deinit(&rp->attributes);
}

/* Returns 0 if @pid runs a Ruby, -ENOENT if not, -EACCES if that cannot be seen: @err says why. */
static int look_at(struct file_worker *worker, pid_t pid, struct ruby_process *ret, struct err *err)
{
	const struct memory mem = memory_process(pid);
	struct ruby_process rp = { .process = PROCESS_INIT };
	struct maps maps = MAPS_INIT;
	int r;

	r = process_open(pid, &rp.process, NULL);
	if (r)
		return -ENOENT;
	r = maps_read(pid, &maps, err);
	if (!r)
		r = ruby_binary_find(worker, pid, &maps, &mem, &rp.binary, err);
	if (!r && otel_context_read(&mem, &maps, &rp.attributes) == -ENOMEM)
		r = -ENOMEM;
	maps_deinit(&maps);
	/* Without the privilege /proc still tells the file, but not what is in the memory. */
	if (!r && !rp.binary.version[0])
		r = err_set(err, -EACCES, ERR_ENV, "cannot read the memory of pid %d", (int)pid);
	if (!r && process_times(pid, &rp.times))
		r = -ENOENT;
	if (r) {
		ruby_process_deinit(&rp);
		return r == -EACCES || r == -EPERM ? -EACCES : -ENOENT;
	}
	*ret = rp;
	return 0;
}

static void add_clean(struct buf *out, const char *s)
{
	buf_reset(out);
	utf8_sanitise(out, s, strlen(s));
}

/* The name of the user @uid on this machine, or the number. */
static void add_user(struct buf *out, uid_t uid)
{
	const struct passwd *pw = uid == (uid_t)-1 ? NULL : getpwuid(uid);

	buf_reset(out);
	if (pw)
		utf8_sanitise(out, pw->pw_name, strlen(pw->pw_name));
	else if (uid != (uid_t)-1)
		buf_addf(out, "%u", uid);
	else
		buf_addch(out, '?');
}

static void add_json(struct json *j, const struct ruby_process *rp)
{
	struct buf clean _cleanup_(buf_deinit) = BUF_INIT;
	const char *row = ruby_layout_row(rp->binary.version);

	json_object_begin(j, NULL);
	json_u64(j, "pid", (uint64_t)rp->process.pid);
	json_u64(j, "ppid", (uint64_t)rp->process.ppid);
	add_user(&clean, rp->process.context.uid);
	json_str(j, "user", buf_str(&clean));
	add_clean(&clean, rp->process.context.cgroup);
	json_str(j, "cgroup", buf_str(&clean));
	add_clean(&clean, rp->process.context.container);
	json_str(j, "container", buf_str(&clean));
	json_u64(j, "cpu_ns", rp->times.cpu_ns);
	json_u64(j, "age_ns", rp->times.age_ns);
	json_str(j, "ruby", rp->binary.version);
	json_str(j, "build_id", rp->binary.build_id);
	add_clean(&clean, rp->binary.path);
	json_str(j, "path", buf_str(&clean));
	if (row)
		json_str(j, "layout", row);
	else
		json_nil(j, "layout");
	add_clean(&clean, rp->process.cmdline);
	json_str(j, "command", buf_str(&clean));
	attributes_json(buf_str(&rp->attributes), "attributes", j);
	json_object_end(j);
}

/* In a column: "42s", "12m", "3h", "17d". */
static void age_cell(struct table *t, uint64_t ns)
{
	static const struct {
		unsigned int seconds;
		char unit;
	} units[] = { { 86400, 'd' }, { 3600, 'h' }, { 60, 'm' }, { 1, 's' } };
	uint64_t seconds = ns / NSEC_PER_SEC;
	size_t i = 0;

	/* Of two units of the larger one on, that is precise enough. */
	while (units[i].seconds > 1 && seconds < 2 * units[i].seconds)
		i++;
	table_cell(t, "%llu%c", (unsigned long long)(seconds / units[i].seconds), units[i].unit);
}

static void add_row(struct table *t, const struct ruby_process *rp)
{
	struct buf clean _cleanup_(buf_deinit) = BUF_INIT;
	const struct process_times *times = &rp->times;

	table_cell(t, "%d", (int)rp->process.pid);
	add_user(&clean, rp->process.context.uid);
	table_cell(t, "%s", buf_str(&clean));
	table_cell(t, "%.1f",
		   times->age_ns ? 100.0 * (double)times->cpu_ns / (double)times->age_ns : 0.0);
	age_cell(t, times->age_ns);
	table_cell(t, "%s%s", rp->binary.version,
		   ruby_version_supported(rp->binary.version) ? "" : " (unsupported)");
	add_clean(&clean, rp->process.context.container);
	table_cell(t, "%.*s", clean.len ? (int)label_container_len(buf_str(&clean)) : 1,
		   clean.len ? buf_str(&clean) : "-");
	add_clean(&clean, rp->process.cmdline);
	table_cell(t, "%s", buf_str(&clean));
}

/* Processes that could not be looked at; the first few are named. */
#define REFUSED_NAMED 5
struct refused {
	pid_t pids[REFUSED_NAMED];
	size_t n;
	struct err why; /* of the first one */
};

static void note_refused(struct refused *refused, pid_t pid, const struct err *why)
{
	if (refused->n < REFUSED_NAMED)
		refused->pids[refused->n] = pid;
	if (!refused->n++)
		refused->why = *why;
}

static void warn_of_refused(const struct cmd_context *ctx, const struct refused *refused)
{
	const struct num_text processes = num_of(refused->n, "process", "processes");
	struct buf pids _cleanup_(buf_deinit) = BUF_INIT;

	if (!refused->n)
		return;
	if (geteuid()) {
		cmd_warn(ctx, "no permission to look at %s; 'sudo rbpf ps' looks at all",
			 processes.s);
		return;
	}
	for (size_t i = 0; i < refused->n && i < REFUSED_NAMED; i++)
		buf_addf(&pids, "%s%d", i ? ", " : "", (int)refused->pids[i]);
	if (refused->n > REFUSED_NAMED)
		buf_addf(&pids, " and %s more", num_count(refused->n - REFUSED_NAMED).s);
	cmd_warn(ctx, "no permission to look at %s, %s %s: %s", processes.s,
		 refused->n > 1 ? "pids" : "pid", buf_str(&pids), refused->why.msg);
}

/* Of a command line both ends tell something: what is run, and on what. */
static const struct table_column columns[] = {
	{ "PID", TABLE_RIGHT, TABLE_WHOLE },	     { "USER", TABLE_LEFT, TABLE_WHOLE },
	{ "%CPU", TABLE_RIGHT, TABLE_WHOLE },	     { "AGE", TABLE_RIGHT, TABLE_WHOLE },
	{ "RUBY", TABLE_LEFT, TABLE_WHOLE },	     { "CONTAINER", TABLE_LEFT, TABLE_WHOLE },
	{ "COMMAND", TABLE_LEFT, TABLE_CUT_MIDDLE },
};

int ps_run(const struct ps_options *opts, struct cmd_context *ctx, struct err *err)
{
	struct buf out _cleanup_(buf_deinit) = BUF_INIT;
	struct table table _cleanup_(table_deinit);
	_cleanup_free_ pid_t *pids = NULL;
	struct json json = JSON_INIT(&out);
	size_t i, n, found = 0;
	struct refused refused = { .n = 0 };
	struct file_worker worker _cleanup_(file_worker_deinit);
	struct ruby_process rp;
	int r;

	file_worker_init(&worker, NULL);
	table_init(&table, columns, ARRAY_SIZE(columns));
	r = cmd_prepare_worker(&worker, err);
	privileges_reduce();
	if (!r)
		r = process_list(&pids, &n, err);
	if (r)
		return r;
	if (opts->json)
		json_array_begin(&json, NULL);
	for (i = 0; i < n; i++) {
		struct err why = { 0 };

		r = look_at(&worker, pids[i], &rp, &why);
		if (r == -EACCES)
			note_refused(&refused, pids[i], &why);
		if (r)
			continue;
		found++;
		if (opts->json)
			add_json(&json, &rp);
		else if (opts->pids)
			buf_addf(&out, "%d\n", (int)pids[i]);
		else
			add_row(&table, &rp);
		ruby_process_deinit(&rp);
	}
	if (opts->json) {
		json_array_end(&json);
		buf_addch(&out, '\n');
	} else if (!opts->pids && found) {
		if (table_render(&table, term_width(STDOUT_FILENO),
				 term_color(STDOUT_FILENO, ctx->color), &out))
			return err_oom(err);
	}
	cmd_warn_of_unread(ctx, &worker);
	if (!opts->pids)
		warn_of_refused(ctx, &refused);
	if (!found && !opts->json && !opts->pids)
		cmd_info(ctx, "no Ruby process found");
	if (!opts->pids && !environment_sees_all_processes())
		cmd_warn(ctx, "rbpf sees only the processes of this container; start it with "
			      "--pid=host (Kubernetes: hostPID: true)");
	return cmd_write(NULL, &out, err);
}
