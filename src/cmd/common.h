/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What commands share: messages, the recording they read, filters, and where the result goes.
 *
 * Everything a command says besides its result goes to stderr through these functions, in the form
 * "rbpf: error: WHAT: WHY" with a hint on a line of its own.
 */
#ifndef RBPF_CMD_COMMON_H
#define RBPF_CMD_COMMON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cmd/options.h"
#include "profile/profile.h"
#include "profile/reader.h"
#include "view/stack_mode.h"

struct buf;
struct cmd_context;
struct err;
struct exporter;
struct file_worker;
struct view_filter;

/* Messages, each a line on stderr. */

/* Print @err and return the exit status of its kind. @code is the errno that came with it. */
int cmd_fail(const struct cmd_context *ctx, int code, const struct err *err);

/* "rbpf: warning: …"; nothing with --quiet. */
void cmd_warn(const struct cmd_context *ctx, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* "rbpf: …"; nothing with --quiet. */
void cmd_info(const struct cmd_context *ctx, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* "rbpf: …", with --verbose only. */
void cmd_verbose(const struct cmd_context *ctx, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* From here on print what libbpf says, with --verbose only. */
void cmd_log_libbpf(const struct cmd_context *ctx);

/* Whole lines as they are (a summary), to stderr; nothing with --quiet. */
void cmd_lines(const struct cmd_context *ctx, const struct buf *lines);

/*
 * Make the processes of @worker, with what is given up before there is anything to be had by them.
 * ERR_RUNTIME if that cannot be.
 */
int cmd_prepare_worker(struct file_worker *worker, struct err *err);

/* Warn of the files that @worker gave up. */
void cmd_warn_of_files(const struct cmd_context *ctx, const struct file_worker *worker);

/* The recording a command reads. */

#define CMD_DEFAULT_RECORDING "rbpf.data"

struct recording {
	const char *path; /* as named by the user or the rules; not owned */
	struct profile profile;
	struct read_report report;
};

#define RECORDING_INIT                                                                             \
	{                                                                                          \
		0                                                                                  \
	}

/*
 * Read the recording named by @input (-i), else by the argument in @rest, else by the environment
 * variable RBPF_DATA, else rbpf.data; "-" is stdin. Warns if it was not closed properly. Reads the
 * samples of the event and the time that @filter names, by thread if @filter or @needs
 * needs that.
 *
 * Fails with ERR_USAGE (named twice, or stdin is a terminal), ERR_PROFILE, or -ENODATA and
 * ERR_EMPTY. @ret is written only on success and must then be closed with recording_close().
 */
int cmd_open_recording(const struct cmd_context *ctx, const char *input,
		       const struct option_rest *rest, const struct view_filter *filter,
		       const struct read_options *needs, struct recording *ret, struct err *err);
void recording_close(struct recording *rec);
#define _cleanup_recording_ _cleanup_(recording_close)

/* Make it ready to be shown as @filter says: stack_mode_prepare(). Returns 0 or -ENOMEM. */
int recording_prepare(struct recording *rec, const struct view_filter *filter, struct err *err);

/* Length of the recording in ns. */
uint64_t recording_duration(const struct recording *rec);

/* Filters that report, flame and export share. */

struct filter_options {
	struct pid_list pids, tids;
	const char *thread, *comm, *container, *include, *exclude; /* regexes or NULL */
	const char *event;					   /* or NULL */
	unsigned int stack; /* enum stack_mode, or OPTION_UNSET */
	bool ruby_only, no_gc;
	uint64_t from_ns, to_ns; /* 0 if not given */
};

#define FILTER_OPTIONS_INIT                                                                        \
	{                                                                                          \
		.stack = OPTION_UNSET                                                              \
	}

#define N_FILTER_OPTIONS 13
extern const struct option_spec filter_option_specs[N_FILTER_OPTIONS];

/* The group of these options for a command whose struct @type has them as .filter. */
#define FILTER_OPTION_GROUP(type)                                                                  \
	{                                                                                          \
		.title = "Filters", .options = filter_option_specs, .n = N_FILTER_OPTIONS,         \
		.offset = offsetof(type, filter),                                                  \
	}

/*
 * Make a view_filter of the options; it takes over their pid lists. @usual is the mode where none
 * is asked for. ERR_USAGE for a bad pattern, an empty range of time, or two modes. @ret is
 * VIEW_FILTER_INIT before (a regex_t cannot be moved, so it is filled in place); the caller releases
 * it with view_filter_deinit(), also after a failure.
 */
int cmd_filter(struct filter_options *opts, enum stack_mode usual, struct view_filter *ret,
	       struct err *err);

/* Where the result goes. */

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

/*
 * The words of -f where any exporter will do: the names of the exporters, then "svg" as another
 * name of the flame graph.
 */
const char *cmd_format_choice(size_t i);

/* The exporter of an index of cmd_format_choice(). */
const struct exporter *cmd_format_exporter(unsigned int format);

/*
 * Render the finished @recording (a path) with @exporter into the file @output: the -f of record.
 * ERR_EMPTY if it holds no samples.
 */
int cmd_export_file(const struct cmd_context *ctx, const char *recording,
		    const struct exporter *exporter, const char *output, struct err *err);

#endif
