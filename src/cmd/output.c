/* SPDX-License-Identifier: GPL-2.0-only */
#include "cmd/output.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/io.h"
#include "base/write_behind.h"
#include "cmd/command.h"
#include "cmd/messages.h"
#include "cmd/options.h"
#include "cmd/open_recording.h"
#include "export/export.h"
#include "export/function.h"
#include "view/filter.h"

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
			       "cannot write to %s: it is the recording that is read", output);
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
	return err_set(err, -E2BIG, ERR_PROFILE,
		       "the output would be far larger than the recording %s, "
		       "which is probably damaged",
		       recording_name(rec));
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

static int write_out(void *arg, const void *data, size_t len)
{
	struct cmd_stream *s = arg;
	int r = s->out ? 0 : io_output_open(s->path, &s->out, &s->why);

	if (!r)
		r = io_output_write(s->out, data, len, &s->why);
	/* Nobody wants the rest of what may be many GB. */
	return !r && io_output_ended(s->out) ? -EPIPE : r;
}

#define WRITE_AHEAD (3u * BUF_DRAIN) /* for the thread that writes: two pieces */

/* What is short is never drained, and needs no thread. */
static int drain(void *arg, const void *data, size_t len)
{
	struct cmd_stream *s = arg;
	int r = s->behind ? 0 : write_behind_new(write_out, s, WRITE_AHEAD, &s->behind);

	return r ? r : write_behind_add(s->behind, data, len);
}

void cmd_stream_begin(struct cmd_stream *s, const struct recording *rec, const char *output)
{
	*s = (struct cmd_stream) { .buf = { .drain = drain, .drain_arg = s }, .path = output };
	cmd_limit_output(rec, &s->buf);
}

int cmd_stream_end(struct cmd_stream *s, int r, struct err *err)
{
	int written = write_behind_end(s->behind), closed;

	if (!r && (written || buf_failed(&s->buf) || write_out(s, buf_str(&s->buf), s->buf.len)))
		r = err_oom(err);
	if (r && s->out && io_output_ended(s->out))
		r = 0;
	if (r && s->why.code) {
		*err = s->why;
		r = s->why.code;
	}
	closed = io_output_close(s->out, !r, err);
	buf_deinit(&s->buf);
	return r ? r : closed;
}

static int warn(const struct cmd_context *ctx, const struct recording *rec,
		const struct exporter *exporter, const struct export_options *opts, struct err *err)
{
	_cleanup_buf_ struct buf text = BUF_INIT;
	int r;

	if (!exporter->warn)
		return 0;
	r = exporter->warn(&rec->profile, opts, &text);
	if (!r && buf_failed(&text))
		r = -ENOMEM;
	if (!r && text.len)
		cmd_warn(ctx, "%s", buf_str(&text));
	return err_code(err, r);
}

/* Looks for a sample that passes the filter. */
struct any_sample {
	const struct profile *profile;
	struct view_selection *selection;
	bool found;
};

static int take_any(void *arg, const struct profile_sample *s)
{
	struct any_sample *any = arg;
	const struct profile_aggregate alike = profile_aggregate_of(any->profile, s);

	any->found = view_selected(any->selection, &alike);
	return any->found ? -ECANCELED : 0; /* one is enough */
}

/*
 * Whether a sample passes the filter, which is asked once for all formats: most have a file for no
 * samples, too, from which nobody would see that there is none. Samples of other events than the
 * profile's may be in the recording alone.
 */
static int find_any(const struct recording *rec, const struct exporter *exporter,
		    const struct export_options *opts, bool *ret, struct err *err)
{
	const struct profile *p = &rec->profile;
	struct any_sample any = { .profile = p };
	int r = view_selection_new(p, opts->filter, &any.selection);

	for (size_t i = 0; !r && i < p->n_aggregates && !any.found; i++)
		any.found = view_selected(any.selection, &p->aggregates[i]);
	if (!r && !any.found && exporter->needs.take_all)
		r = profile_each_of_all(p, &opts->replay, take_any, &any, err);
	view_selection_free(any.selection);
	*ret = any.found;
	return any.found ? 0 : export_error(r, err);
}

static int run_exporter(const struct cmd_context *ctx, struct recording *rec,
			const struct exporter *exporter, const struct export_options *opts,
			struct buf *out, struct err *err)
{
	const struct view_filter *filter = opts->filter;
	struct export_options options = *opts;
	bool any = true;
	int r;

	options.replay = cmd_replay(rec, filter, &exporter->needs);
	r = cmd_prepare_recording(rec, filter, err);
	if (!r)
		r = find_any(rec, exporter, &options, &any, err);
	if (!any && !r)
		r = err_set(err, -ENODATA, ERR_EMPTY, "no sample of %s passes the filters",
			    recording_name(rec));
	if (!r)
		r = warn(ctx, rec, exporter, &options, err);
	if (!r)
		r = exporter->run(&rec->profile, &options, out, err);
	return cmd_rendered(r, rec, out, err);
}

int cmd_export(const struct cmd_context *ctx, struct recording *rec,
	       const struct exporter *exporter, const struct export_options *opts,
	       const char *output, struct err *err)
{
	struct cmd_stream to;

	cmd_stream_begin(&to, rec, output);
	return cmd_stream_end(&to, run_exporter(ctx, rec, exporter, opts, &to.buf, err), err);
}

int cmd_export_file(const struct cmd_context *ctx, const char *recording,
		    const struct exporter *exporter, const char *output, struct err *err)
{
	_cleanup_recording_ struct recording rec = RECORDING_INIT;
	const struct option_rest none = { 0 };
	struct view_filter filter = { .stack = exporter->stack };
	const struct export_options options = { .filter = &filter };
	const struct read_options needs = exporter_needs(exporter, &filter);
	int r;

	r = cmd_open_recording(ctx, recording, &none, &filter, &needs, &rec, err);
	return r ? r : cmd_export(ctx, &rec, exporter, &options, output, err);
}
