/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Where the result of a command goes.
 */
#ifndef RBPF_CMD_OUTPUT_H
#define RBPF_CMD_OUTPUT_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"

struct cmd_context;
struct export_options;
struct exporter;
struct io_output;
struct recording;
struct write_behind;

/* Whether @output (NULL or "-": stdout) is a terminal. */
bool cmd_to_terminal(const char *output);

/* "refusing to write WHAT to a terminal", with @hint. Returns -EINVAL. */
int cmd_refuse_terminal(const char *what, const char *hint, struct err *err);

/*
 * Refuse an @output that is the file @input, which would replace the recording. Returns 0, or
 * -EINVAL and ERR_USAGE.
 */
int cmd_check_output(const char *output, const char *input, struct err *err);

/*
 * Let @out take no more than profile_output_max() of @rec; then, after rendering into it gave @r,
 * the error if it did not suffice, else @r.
 */
void cmd_limit_output(const struct recording *rec, struct buf *out);
int cmd_rendered(int r, const struct recording *rec, const struct buf *out, struct err *err);

/* Write a finished @result (io_write_output), or fail if it ran out of memory. */
int cmd_write(const char *output, const struct buf *result, struct err *err);

/* Output that is written while it is made: what is rendered into .buf. */
struct cmd_stream {
	struct buf buf; /* can be appended to only */
	const char *path;
	struct write_behind *behind; /* writes; NULL until there is much */
	struct io_output *out;	     /* opened when there is something to write */
	struct err why; /* why it could not be written; both are the writer's until it has ended */
};

/* To @output (NULL or "-": stdout), within the limit of cmd_limit_output(). */
void cmd_stream_begin(struct cmd_stream *s, const struct recording *rec, const char *output);

/*
 * After rendering gave @r: write what is left of it, or leave a file @output as it was if it
 * failed. Nothing of @s is left. Returns @r or why it could not be written; that nobody reads on is
 * no failure.
 */
int cmd_stream_end(struct cmd_stream *s, int r, struct err *err);

/*
 * The words of -f where any exporter will do: the names of the exporters, then "svg" as another
 * name of the flame graph.
 */
const char *cmd_format_choice(size_t i);

/* The exporter of an index of cmd_format_choice(). */
const struct exporter *cmd_format_exporter(unsigned int format);

/*
 * Render @rec, which is prepared first (cmd_prepare_recording()), and write it to @output. Long
 * output is written while it is made: if that fails, a file is left as it was. ERR_EMPTY if no
 * sample passes the filter: then nothing is written.
 */
int cmd_export(const struct cmd_context *ctx, struct recording *rec,
	       const struct exporter *exporter, const struct export_options *opts,
	       const char *output, struct err *err);

/*
 * Render the finished @recording (a path) with @exporter into the file @output: the -f of record.
 * ERR_EMPTY if it holds no samples.
 */
int cmd_export_file(const struct cmd_context *ctx, const char *recording,
		    const struct exporter *exporter, const char *output, struct err *err);

#endif
