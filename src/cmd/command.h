/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The table of commands.
 *
 * A command is a row: how it is called, what it takes, and the function that runs it. Help, shell
 * completion and the lint of the man pages are made from the rows. Each command's row stands at the
 * end of its own file, or of NAME_options.c; command.c only lists them.
 */
#ifndef RBPF_CMD_COMMAND_H
#define RBPF_CMD_COMMAND_H

#include <stdbool.h>
#include <stddef.h>

#include "cmd/options.h"

struct err;

/* The state of one run of rbpf: on the stack of main(), handed down. */
struct cmd_context {
	const char *command_line; /* as a shell would take it again; never NULL */
	const char *command;	  /* its name; NULL until it is known */
	bool verbose;
	bool quiet; /* errors only */
	bool help;
	bool version;
	unsigned int color;	    /* enum term_when */
	const char *recording;	    /* what the recording is called in pages; NULL: its path */
	const char *said_recording; /* what messages call it; NULL: its path */
	const char *layout_from;    /* for tests: see ruby_sources_parse(); NULL: all sources */
};

/* The arguments of a command that are no options. */
enum command_args {
	ARGS_NONE,
	ARGS_RECORDING,		   /* at most one file */
	ARGS_RECORDINGS,	   /* two or more files, of which some may be after "--" */
	ARGS_TARGET,		   /* exactly one method or file, which is not the recording */
	ARGS_PROGRAM,		   /* only after "--": a program and its arguments */
	ARGS_RECORDING_OR_PROGRAM, /* at most one file; or, only after "--", a program */
	ARGS_COMMAND,		   /* at most one name of a command */
	ARGS_SHELL,		   /* exactly one name of a shell */
};

struct command_example {
	const char *line; /* a command line, without the prompt */
	const char *what; /* lower case, no full stop */
};

struct command {
	const char *name;
	const char *summary; /* lower case, no full stop */
	const char *const
		*usage;	   /* what may follow "rbpf NAME", one string a form; NULL-terminated */
	const char *about; /* a paragraph or more, split by "\n\n"; wrapped by help */
	const struct option_group *const *groups;
	size_t n_groups;
	enum command_args args;
	const char *page;			/* of the manual; NULL: rbpf-NAME */
	const struct command_example *examples; /* ends with a row whose line is NULL */

	/*
	 * @argv[0] is the command's name; argv[argc] is NULL. Returns 0; or a negative errno with
	 * @err set, whose kind becomes the exit status; or an exit status above 0 when all was
	 * said.
	 */
	int (*run)(struct cmd_context *ctx, int argc, char **argv, struct err *err);
};

extern const struct command *const commands[];
extern const size_t n_commands;

/* The exit status of check; those of errors are in base/err.h. */
#define EXIT_REGRESSION 7

/* The options every command takes: members of struct cmd_context. */
extern const struct option_group option_group_global;
/* The same for options that no help shows, which are for tests. */
extern const struct option_group option_group_hidden;
/* The same as the first and --version, which are for rbpf itself. */
extern const struct option_group option_group_rbpf;

const struct command *command_find(const char *name);

/* Like command_find(), with the error "unknown command '…'" (-ENOENT, ERR_USAGE). */
int command_lookup(const char *name, const struct command **ret, struct err *err);

/* command_parse() returns this when --help was asked for and has been printed. */
#define COMMAND_DONE 1

/* Whether @name of @len is a long option of @cmd, without dashes. */
bool command_has_option(const struct command *cmd, const char *name, size_t len);

/*
 * What each command starts with: give @opts (the command's struct, zeroed; NULL if it has none) the
 * initial values of its tables, then parse the command line into it and the global options into
 * @ctx. Arguments that the command does not take are refused.
 *
 * Returns 0, COMMAND_DONE, or a negative errno with @err set. The caller must release
 * @opts with command_release() in all three cases.
 */
int command_parse(const struct command *cmd, struct cmd_context *ctx, void *opts, int argc,
		  char **argv, struct option_rest *rest, struct err *err);
void command_release(const struct command *cmd, void *opts);

/* Run what main() was given. Returns the exit status; prints the error, if any. */
int command_main(int argc, char **argv);

extern const struct command command_annotate;
extern const struct command command_check;
extern const struct command command_completion;
extern const struct command command_diff;
extern const struct command command_doctor;
extern const struct command command_dump;
extern const struct command command_export;
extern const struct command command_flame;
extern const struct command command_timeline;
extern const struct command command_heatmap;
extern const struct command command_help;
extern const struct command command_ps;
extern const struct command command_record;
extern const struct command command_report;
extern const struct command command_serve;
extern const struct command command_top;

#endif
