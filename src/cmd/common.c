/* SPDX-License-Identifier: GPL-2.0-only */
#include "cmd/common.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/io.h"
#include "base/utf8.h"
#include "cmd/command.h"
#include "export/export.h"
#include "engine/bpf_engine.h"
#include "ui/summary.h"
#include "ui/term.h"
#include "view/filter.h"
#include "worker/file_worker.h"

/* One write(), so that lines of several processes do not mix. A failure has nowhere to be told. */
static void write_stderr(const struct buf *line)
{
	if (line->data)
		io_write_full(STDERR_FILENO, line->data, line->len);
}

static void message(const struct cmd_context *ctx, const char *label, const char *color,
		    const char *fmt, va_list ap)
{
	bool colored = color && term_color(STDERR_FILENO, ctx->color);
	_cleanup_buf_ struct buf text = BUF_INIT;
	_cleanup_buf_ struct buf line = BUF_INIT;

	buf_vaddf(&text, fmt, ap);
	buf_addstr(&line, "rbpf: ");
	if (label)
		buf_addf(&line, "%s%s:%s ", colored ? color : "", label, colored ? TERM_RESET : "");
	utf8_sanitise(&line, buf_str(&text), text.len);
	buf_addch(&line, '\n');
	write_stderr(&line);
}

static void error_line(const struct cmd_context *ctx, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

static void error_line(const struct cmd_context *ctx, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	message(ctx, "error", TERM_RED, fmt, ap);
	va_end(ap);
}

int cmd_fail(const struct cmd_context *ctx, int code, const struct err *err)
{
	_cleanup_buf_ struct buf hint = BUF_INIT;

	if (!err->code) {
		error_line(ctx, "internal error: %s", strerror(-code));
		return ERR_RUNTIME;
	}
	error_line(ctx, "%s", err->msg);
	if (err->hint[0]) {
		buf_addf(&hint, "  hint: %s\n", err->hint);
		write_stderr(&hint);
	}
	return err->kind;
}

void cmd_warn(const struct cmd_context *ctx, const char *fmt, ...)
{
	va_list ap;

	if (ctx->quiet)
		return;
	va_start(ap, fmt);
	message(ctx, "warning", TERM_AMBER, fmt, ap);
	va_end(ap);
}

void cmd_info(const struct cmd_context *ctx, const char *fmt, ...)
{
	va_list ap;

	if (ctx->quiet)
		return;
	va_start(ap, fmt);
	message(ctx, NULL, NULL, fmt, ap);
	va_end(ap);
}

void cmd_verbose(const struct cmd_context *ctx, const char *fmt, ...)
{
	va_list ap;

	if (!ctx->verbose)
		return;
	va_start(ap, fmt);
	message(ctx, NULL, NULL, fmt, ap);
	va_end(ap);
}

static void log_libbpf(const char *line)
{
	struct buf text _cleanup_buf_ = BUF_INIT;

	buf_addstr(&text, "libbpf| ");
	utf8_sanitise(&text, line, strlen(line));
	buf_addch(&text, '\n');
	write_stderr(&text);
}

void cmd_log_libbpf(const struct cmd_context *ctx)
{
	bpf_engine_set_log(ctx->verbose ? log_libbpf : NULL);
}

void cmd_lines(const struct cmd_context *ctx, const struct buf *lines)
{
	_cleanup_buf_ struct buf clean = BUF_INIT;
	const char *line = buf_str(lines);
	size_t len;

	if (ctx->quiet)
		return;
	while (*line) {
		len = strcspn(line, "\n");
		utf8_sanitise(&clean, line, len);
		buf_addch(&clean, '\n');
		line += len + (line[len] == '\n');
	}
	write_stderr(&clean);
}

int cmd_prepare_worker(struct file_worker *worker, struct err *err)
{
	int r = file_worker_prepare(worker);

	return r ? err_set(err, r, ERR_RUNTIME, "cannot make a process that reads files: %s",
			   strerror(-r))
		 : 0;
}

void cmd_warn_of_files(const struct cmd_context *ctx, const struct file_worker *worker)
{
	const struct file_losses *l = &worker->losses;
	struct buf names _cleanup_(buf_deinit) = BUF_INIT;
	size_t i;

	if (!l->files)
		return;
	for (i = 0; i < l->n_names; i++)
		buf_addf(&names, "%s%s", i ? ", " : "", l->names[i]);
	cmd_warn(ctx, "%s not be read: %s%s", num_of(l->files, "file could", "files could").s,
		 buf_str(&names), l->files > l->n_names ? ", ..." : "");
}

static int recording_path(const char *input, const struct option_rest *rest, const char **ret,
			  struct err *err)
{
	const char *env = getenv("RBPF_DATA");

	if (input && rest->n)
		return err_set(err, -EINVAL, ERR_USAGE,
			       "the recording is named twice: --input=%s and '%s'", input,
			       rest->argv[0]);
	if (input)
		*ret = input;
	else if (rest->n)
		*ret = rest->argv[0];
	else if (env && *env)
		*ret = env;
	else
		*ret = CMD_DEFAULT_RECORDING;
	if (!**ret)
		return err_set(err, -EINVAL, ERR_USAGE, "the name of the recording is empty");
	if (strcmp(*ret, "-") == 0 && isatty(STDIN_FILENO))
		return err_set(err, -EINVAL, ERR_USAGE,
			       "refusing to read a recording from a terminal");
	return 0;
}

uint64_t recording_duration(const struct recording *rec)
{
	uint64_t first, last;

	profile_time_range(&rec->profile, &first, &last);
	return last - first;
}

/* profile_read() knows the file, not what the user could do about it. */
static int read_failed(const char *path, int r, struct err *err)
{
	if (r == -ENOENT)
		err_hint(err, "'rbpf record' makes a recording; -i FILE names one");
	else if (r == -EACCES && strcmp(path, "-") != 0)
		err_hint(err, "a recording belongs to the user who made it");
	return r;
}

static void warn_interrupted(const struct cmd_context *ctx, const struct recording *rec)
{
	if (rec->report.complete)
		return;
	cmd_warn(ctx, "%s was not closed properly; using the first %s (%s)", rec->path,
		 num_duration(recording_duration(rec)).s,
		 num_of(rec->profile.n_samples, "sample", "samples").s);
}

int cmd_open_recording(const struct cmd_context *ctx, const char *input,
		       const struct option_rest *rest, const struct view_filter *filter,
		       const struct read_options *needs, struct recording *ret, struct err *err)
{
	struct read_options opts = *needs;
	struct recording rec = RECORDING_INIT;
	int r;

	r = recording_path(input, rest, &rec.path, err);
	if (r)
		return r;
	opts.event = filter->event;
	opts.from_ns = filter->from_ns;
	opts.to_ns = filter->to_ns;
	opts.by_thread |= view_filter_by_thread(filter);
	r = profile_read(rec.path, &opts, &rec.profile, &rec.report, err);
	if (r)
		return read_failed(rec.path, r, err);
	if (!rec.profile.n_samples) {
		err_set(err, -ENODATA, ERR_EMPTY, "%s holds no samples%s", rec.path,
			rec.report.complete ? "" : " and was not closed properly");
		recording_close(&rec);
		return -ENODATA;
	}
	warn_interrupted(ctx, &rec);
	*ret = rec;
	return 0;
}

void recording_close(struct recording *rec)
{
	profile_deinit(&rec->profile);
	*rec = (struct recording)RECORDING_INIT;
}

int recording_prepare(struct recording *rec, const struct view_filter *filter, struct err *err)
{
	return stack_mode_prepare(&rec->profile, filter->stack) ? err_oom(err) : 0;
}

#define FILTER(member) .offset = offsetof(struct filter_options, member)

const struct option_spec filter_option_specs[N_FILTER_OPTIONS] = {
	{
		.letter = 'p',
		.name = "pid",
		.type = OPTION_PIDS,
		FILTER(pids),
		.arg = "LIST",
		.help = "keep samples of these processes",
	},
	{
		.name = "tid",
		.type = OPTION_PIDS,
		FILTER(tids),
		.arg = "LIST",
		.help = "keep samples of these threads, by kernel thread id",
	},
	{
		.name = "thread",
		.type = OPTION_STRING,
		FILTER(thread),
		.arg = "REGEX",
		.help = "keep samples of threads whose name matches",
	},
	{
		.name = "comm",
		.type = OPTION_STRING,
		FILTER(comm),
		.arg = "REGEX",
		.help = "keep samples of processes whose command line matches",
	},
	{
		.name = "container",
		.type = OPTION_STRING,
		FILTER(container),
		.arg = "REGEX",
		.help = "keep samples of processes whose container or control group matches",
	},
	{
		.name = "include",
		.type = OPTION_STRING,
		FILTER(include),
		.arg = "REGEX",
		.help = "keep samples with a frame whose name matches",
	},
	{
		.name = "exclude",
		.type = OPTION_STRING,
		FILTER(exclude),
		.arg = "REGEX",
		.help = "drop samples with a frame whose name matches",
	},
	{
		.name = "stack",
		.type = OPTION_CHOICE,
		FILTER(stack),
		.arg = "MODE",
		.help = "which frames to show:",
		.choice = stack_mode_name,
		.choice_help = stack_mode_help,
	},
	{
		.name = "ruby-only",
		.type = OPTION_FLAG,
		FILTER(ruby_only),
		.help = "the same as --stack ruby",
	},
	{
		.name = "no-gc",
		.type = OPTION_FLAG,
		FILTER(no_gc),
		.help = "drop samples of garbage collection",
	},
	{
		.name = "event",
		.type = OPTION_STRING,
		FILTER(event),
		.arg = "NAME",
		.help = "samples of this event (default: the first; 'report --info' names them)",
	},
	{
		.name = "from",
		.type = OPTION_DURATION,
		FILTER(from_ns),
		.arg = "TIME",
		.help = "leave out what came before, counted from the start of the recording",
	},
	{
		.name = "to",
		.type = OPTION_DURATION,
		FILTER(to_ns),
		.arg = "TIME",
		.help = "leave out what came after, counted from the start of the recording",
	},
};

/* The stacks that are asked for, or @usual if none are. */
static int choose_stacks(const struct filter_options *opts, enum stack_mode usual,
			 enum stack_mode *ret, struct err *err)
{
	if (opts->ruby_only && opts->stack != OPTION_UNSET && opts->stack != STACK_RUBY)
		return err_set(err, -EINVAL, ERR_USAGE,
			       "--ruby-only is --stack ruby and excludes --stack %s",
			       stack_mode_name(opts->stack));
	*ret = opts->ruby_only ? STACK_RUBY : opts->stack == OPTION_UNSET ? usual : opts->stack;
	return 0;
}

int cmd_filter(struct filter_options *opts, enum stack_mode usual, struct view_filter *ret,
	       struct err *err)
{
	const struct {
		const char *pattern;
		const char *what;
		regex_t *re;
		bool *has;
	} patterns[] = {
		{ opts->thread, "--thread", &ret->thread, &ret->has_thread },
		{ opts->comm, "--comm", &ret->comm, &ret->has_comm },
		{ opts->container, "--container", &ret->container, &ret->has_container },
		{ opts->include, "--include", &ret->include, &ret->has_include },
		{ opts->exclude, "--exclude", &ret->exclude, &ret->has_exclude },
	};
	size_t i;
	int r;

	r = choose_stacks(opts, usual, &ret->stack, err);
	if (r)
		return r;
	if (opts->to_ns && opts->from_ns >= opts->to_ns)
		return err_set(err, -EINVAL, ERR_USAGE, "--from must be before --to");
	for (i = 0; i < ARRAY_SIZE(patterns); i++) {
		if (!patterns[i].pattern)
			continue;
		r = view_filter_regex(patterns[i].re, patterns[i].has, patterns[i].pattern,
				      patterns[i].what, err);
		if (r)
			return r;
	}
	ret->n_pids = opts->pids.n;
	ret->pids = take_ptr(opts->pids.pids);
	ret->n_tids = opts->tids.n;
	ret->tids = take_ptr(opts->tids.pids);
	opts->pids.n = 0;
	opts->tids.n = 0;
	ret->event = opts->event;
	ret->from_ns = opts->from_ns;
	ret->to_ns = opts->to_ns;
	ret->no_gc = opts->no_gc;
	return 0;
}

static bool is_stdout(const char *output)
{
	return !output || strcmp(output, "-") == 0;
}

bool cmd_to_terminal(const char *output)
{
	return is_stdout(output) && isatty(STDOUT_FILENO);
}

int cmd_refuse_terminal(const char *what, const char *hint, struct err *err)
{
	err_set(err, -EINVAL, ERR_USAGE, "refusing to write %s to a terminal", what);
	err_hint(err, "%s", hint);
	return -EINVAL;
}

int cmd_check_output(const char *output, const char *input, struct err *err)
{
	struct stat in, out;

	if (is_stdout(output) || strcmp(input, "-") == 0)
		return 0;
	if (stat(input, &in) || stat(output, &out) || !S_ISREG(in.st_mode))
		return 0;
	if (in.st_dev == out.st_dev && in.st_ino == out.st_ino)
		return err_set(err, -EINVAL, ERR_USAGE,
			       "refusing to overwrite the recording %s with what is made from it",
			       input);
	return 0;
}

int cmd_write(const char *output, const struct buf *result, struct err *err)
{
	if (buf_failed(result))
		return err_oom(err);
	return io_write_output(output, buf_str(result), result->len, err);
}

void cmd_limit_output(const struct recording *rec, struct buf *out)
{
	out->max = profile_output_max(&rec->profile);
}

int cmd_rendered(int r, const struct recording *rec, const struct buf *out, struct err *err)
{
	if (!out->exceeded)
		return r;
	return err_set(err, -E2BIG, ERR_PROFILE, "%s expands to far more than its size", rec->path);
}

const char *cmd_format_choice(size_t i)
{
	if (i < n_exporters)
		return exporters[i].name;
	return i == n_exporters ? "svg" : NULL;
}

const struct exporter *cmd_format_exporter(unsigned int format)
{
	return format < n_exporters ? &exporters[format] : exporter_find("flame");
}

int cmd_export_file(const struct cmd_context *ctx, const char *recording,
		    const struct exporter *exporter, const char *output, struct err *err)
{
	_cleanup_recording_ struct recording rec = RECORDING_INIT;
	const struct option_rest none = { 0 };
	const struct view_filter filter = { .stack = exporter->stack };
	const struct export_options options = { .filter = &filter };
	_cleanup_buf_ struct buf out = BUF_INIT;
	int r;

	r = cmd_open_recording(ctx, recording, &none, &filter, &exporter->needs, &rec, err);
	if (r)
		return r;
	cmd_limit_output(&rec, &out);
	r = recording_prepare(&rec, &filter, err);
	if (!r)
		r = exporter->run(&rec.profile, &options, &out, err);
	r = cmd_rendered(r, &rec, &out, err);
	if (r)
		return r;
	return cmd_write(output, &out, err);
}
