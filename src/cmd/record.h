/* SPDX-License-Identifier: GPL-2.0-only */
/* The command record: what its options say, and the function that does it. */
#ifndef RBPF_CMD_RECORD_H
#define RBPF_CMD_RECORD_H

#include <stdbool.h>
#include <stdint.h>

#include "cmd/options.h"

struct cmd_context;
struct err;
struct exporter;

/* What samples are taken of. */
enum record_mode {
	RECORD_CPU,    /* CPU time */
	RECORD_WALL,   /* and each wait: views show both together, if not asked for one of them */
	RECORD_STATES, /* the same, and views show CPU time */
};

/* "cpu", "states"; NULL past the last. */
const char *record_mode_name(size_t mode);

/* Whether waits are recorded. */
bool record_mode_waits(unsigned int mode);

/* What other profilers mean by @word, which is no mode of rbpf; NULL if that is unknown. */
const char *record_mode_hint(const char *word);

struct record_options {
	/* What: one of these three. */
	struct pid_list pids;
	char **command; /* NULL-terminated argv of "-- CMD"; not owned */
	bool all_ruby;	/* … that fit these, each NULL if not given: see selection_init() */
	const char *comm, *cgroup, *container, *user;

	uint64_t frequency;    /* Hz, 1 to 10000; 0: it was not given … */
	double max_cost;       /* percent, 0: any; negative: as the frequency. See collector.h */
	uint64_t duration_ns;  /* 0: until the targets end or rbpf is stopped */
	const char *output;    /* the recording; "-" is stdout, which is then no terminal */
	uint64_t max_stack;    /* frames kept of a stack, 16 to 4096 */
	uint64_t ring_bytes;   /* a power of two, 64K to 1G */
	uint64_t memory_limit; /* bytes */
	uint64_t max_bytes;    /* of the recording, which then ends; 0: any number */
	bool sync;
	bool force;
	bool children;
	bool requests;		   /* tell which request a sample is of, … */
	bool request_paths;	   /* … with method and path, where a rule reads them */
	const char *request_rules; /* … also by the rules in this file; NULL: none */
	bool peers;		   /* tell what is behind descriptors that are waited for */
	bool sources;		   /* keep the source files that have samples */
	bool arguments;		   /* keep whole command lines */
	bool native;
	bool kernel;
	unsigned int mode; /* enum record_mode; if record_mode_waits() … */
	bool waker;	   /* … also who ends each wait */
	bool inlines;
	bool priority; /* run ahead of ordinary processes: see base/priority.h */
	bool as_root;
	bool guarded; /* another process reads memory: see target/remote.h */
	bool exit_with_child;

	/* What is exported at the end, to pass to cmd_export_file(); both NULL without -f. */
	const struct exporter *exporter;
	const char *export_path;
};

/*
 * The targets of @opts, from its options and the arguments @rest: exactly one of pids, command and
 * all_ruby, else ERR_USAGE.
 */
struct option_rest;
int record_take_targets(struct record_options *opts, const struct option_rest *rest,
			struct err *err);

/*
 * Two rows of a table of options; @MEMBER(member) gives the .offset of that of struct
 * record_options.
 */
#define RECORD_FREQUENCY_OPTIONS(MEMBER)                                                           \
	{                                                                                          \
		.letter = 'F',                                                                     \
		.name = "freq",                                                                    \
		.type = OPTION_U64,                                                                \
		MEMBER(frequency),                                                                 \
		.arg = "HZ",                                                                       \
		.help = "samples per second of CPU time of a thread, 1 to 10000 (default 99, or "  \
			"fewer: see --max-cost)",                                                  \
		.min = 1,                                                                          \
		.max = 10000,                                                                      \
	},                                                                                         \
	{                                                                                          \
		.name = "max-cost", .type = OPTION_PERCENT, MEMBER(max_cost), .arg = "PCT",        \
		.help = "take fewer samples, down to a quarter, where they cost a busy machine "   \
			"more of its CPU time than this; 0 is no limit (default 0.5; with -F, no " \
			"limit)",                                                                  \
	}

/* A row of it, in the same way. */
#define RECORD_ARGUMENTS_OPTION(MEMBER)                                                            \
	{                                                                                          \
		.name = "arguments", .type = OPTION_SWITCH, MEMBER(arguments),                     \
		.help = "keep the command lines of processes, not only the names of their "        \
			"programs",                                                                \
		.initial = "yes",                                                                  \
	}

/* What max_cost is before options are parsed. */
#define RECORD_COST_UNSET (-1)

/* The frequency, and what samples may cost, where they were not given. */
void record_take_frequency(struct record_options *opts);

/*
 * Of a command that records into no file: the frequency and the targets, and what rbpf record has
 * by default where the command has no option for it. As record_take_targets().
 */
int record_take_live(struct record_options *opts, const struct option_rest *rest, struct err *err);

/*
 * Record. The options are complete and consistent: one of pids, command and all_ruby, and all in
 * range.
 *
 * Returns 0; a negative errno with @err set; or, with exit_with_child, the status of the command.
 */
int record_run(const struct record_options *opts, struct cmd_context *ctx, struct err *err);

#endif
