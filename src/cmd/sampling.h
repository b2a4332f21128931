/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What record and top have in common: the engine, the collector, and what they follow. Where the
 * samples go, and until when, is each command's own.
 */
#ifndef RBPF_CMD_SAMPLING_H
#define RBPF_CMD_SAMPLING_H

#include <stdbool.h>
#include <stdint.h>

#include "base/pace.h"
#include "request/rules.h"
#include "target/launch.h"
#include "target/selection.h"
#include "worker/file_worker.h"

struct cmd_context;
struct collector;
struct engine;
struct err;
struct profile_meta;
struct record_options;
struct sink;

/* Where the output of a program that is run goes, if not where that of rbpf does. */
enum sampling_output {
	SAMPLING_OUTPUT_OURS,
	SAMPLING_OUTPUT_STDERR, /* all of it to stderr, for stdout is needed */
	SAMPLING_OUTPUT_NONE,	/* nowhere, and it reads nothing: rbpf has the terminal */
};

/*
 * Processes that begin and end are looked at as soon as they do so many times, and then once in
 * each of these, ns: a tenth of what a short script takes.
 */
#define SAMPLING_PACE_NS 5000000ull
#define SAMPLING_AT_ONCE 20

struct sampling {
	const struct record_options *opts;
	struct cmd_context *ctx;
	char own_name[32];	     /* what is kept of rbpf's own command line without arguments */
	enum sampling_output output; /* may be set before sampling_open() */
	/* What is worth a warning; NULL: it is printed. May be set at any time. */
	void (*warn)(void *arg, const char *message);
	void *warn_arg;
	struct engine *engine;	     /* owned */
	struct collector *collector; /* owned */
	struct selection selection;
	struct request_rules requests;
	struct file_worker worker;
	struct launch child; /* pid -1 without a command */
	int child_status;
	bool child_ended;
	uint64_t lives; /* collector_lives(), at the last sampling_poll() */
	struct pace pace;
	/*
	 * When second 0 began, of who shows each second when it has ended, which may be set at any
	 * time: waits that go on are told then. 0: nobody does.
	 */
	uint64_t seconds_since_ns;
	uint64_t seconds_told; /* how many of these had ended when they were told last */
};

#define SAMPLING_INIT                                                                              \
	{                                                                                          \
		.child = LAUNCH_INIT, .pace = {                                                    \
			.interval_ns = SAMPLING_PACE_NS,                                           \
			.at_once = SAMPLING_AT_ONCE,                                               \
		}                                                                                  \
	}

/*
 * Check what is permitted, open all, and find the targets of @opts, which with @ctx must outlive @s
 * (SAMPLING_INIT). Signals ask to stop from here on (base/stop.h). sampling_close() in any case.
 */
int sampling_open(struct sampling *s, const struct record_options *opts, struct cmd_context *ctx,
		  struct err *err);
void sampling_close(struct sampling *s);

/*
 * What is known of the recording before it begins; strings are not owned: they are those of @s, and
 * those of uname(2) are in @names.
 */
struct utsname;
void sampling_meta(const struct sampling *s, struct utsname *names, struct profile_meta *ret);

/* Begin to sample into @sink, and let the program go that is to be run. */
int sampling_start(struct sampling *s, struct sink *sink, struct err *err);

/*
 * Wait @timeout_ms at most for records, for what is ready on @fd (-1: none), or a signal; then take
 * what there is. Returns 1 if there are more, 0, or -errno.
 */
int sampling_poll(struct sampling *s, int timeout_ms, int fd, struct err *err);

/* Fails with ERR_TARGET if all targets have ended and none of them was a Ruby. */
int sampling_check_ruby(const struct sampling *s, struct err *err);

/*
 * Send the program that was run the signal that this process was asked to stop with, if it has not
 * got it.
 */
void sampling_pass_signal(struct sampling *s);

#endif
