/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Command line options as data.
 *
 * A command describes its options once, in tables of struct option_spec; the parser, the help text,
 * the shell completions and the lint of the man pages all read the same tables. Values land in a
 * struct on the command's stack, at the offset the table names; there is no global state.
 *
 * The grammar is strict, so that a typing error never widens what is done:
 *   - long options match exactly (an abbreviation would break when options are added);
 *   - "--opt=value", "--opt value", "-o value", "-ovalue"; short flags may be bundled ("-vn5");
 *   - a value given as a word of its own may not look like an option ("-o -v" is an error; "-o=-v"
 *     is not needed: "--output=-v" says it);
 *   - a switch takes no value: "--children" or "--no-children";
 *   - options and other arguments may be mixed; "--" ends the options;
 *   - the last of several wins, except that lists of pids add up.
 */
#ifndef RBPF_CMD_OPTIONS_H
#define RBPF_CMD_OPTIONS_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct err;

/* The type of a value, and the C type of the member it is stored in. */
enum option_type {
	OPTION_FLAG,	 /* bool: true when given; takes no value */
	OPTION_SWITCH,	 /* bool: --x is true, --no-x is false; takes no value */
	OPTION_U64,	 /* uint64_t, min <= value <= max */
	OPTION_DURATION, /* uint64_t, ns */
	OPTION_SIZE,	 /* uint64_t, bytes, min <= value <= max */
	OPTION_PERCENT,	 /* double, 0 to 100 */
	OPTION_STRING,	 /* const char *: points into argv; not empty */
	OPTION_CHOICE,	 /* unsigned int: index into the choices */
	OPTION_PID,	 /* pid_t */
	OPTION_PIDS,	 /* struct pid_list */
};

/*
 * What a caller may put into an OPTION_CHOICE without initial value, to see whether it was given.
 */
#define OPTION_UNSET UINT_MAX

/* Pids as given, without duplicates; n is 0 when none were. */
struct pid_list {
	pid_t *pids; /* owned */
	size_t n;
};

void pid_list_deinit(struct pid_list *list);

/* How a shell completes a value (or an argument); choices complete by themselves. */
enum option_complete {
	COMPLETE_NOTHING,
	COMPLETE_FILE,
	COMPLETE_RUBY_PID, /* of "rbpf ps --pids" */
};

struct option_spec {
	char letter;	  /* short name; 0 if none */
	const char *name; /* long name, without dashes */
	enum option_type type;
	size_t offset;	     /* of the member, in the struct of the group */
	const char *arg;     /* name of the value in help, "HZ"; NULL if it takes none */
	const char *help;    /* lower case, no full stop */
	const char *initial; /* value when not given, in the words of the command line ("99"; "yes"
			      * for a switch that is on); NULL: the member stays as it was */
	uint64_t min, max;   /* of OPTION_U64 and OPTION_SIZE */
	const char *(*choice)(size_t i); /* i-th word of an OPTION_CHOICE; NULL past the last */
	const char *(*choice_help)(
		size_t i); /* what the i-th word means; NULL if they speak for themselves */
	/* What may have been meant by a word that is none of them; NULL: nobody knows. */
	const char *(*choice_hint)(const char *word);
	enum option_complete complete;
};

/* Options that belong together: one heading in the help text, one struct. */
struct option_group {
	const char *title;
	const struct option_spec *options;
	size_t n;
	/*
	 * The last ones, which the command refuses, and says why: no help or completion offers
	 * them.
	 */
	size_t n_refused;
	size_t offset; /* of the group's struct in the command's */
};

/* How many of them help and completion offer. */
static inline size_t option_group_offered(const struct option_group *group)
{
	return group->n - group->n_refused;
}

/* Groups and the struct their offsets count from. */
struct option_target {
	const struct option_group *const *groups;
	size_t n_groups;
	void *base;
};

/*
 * The arguments that are no options: argv[0 .. n - 1], of which the first n_before came before
 * "--".
 */
struct option_rest {
	char **argv; /* NULL-terminated; the caller's, rearranged */
	size_t n;
	size_t n_before;
	const char *
		unknown; /* after a failure: the option that there is not, "--x", "--x=…" or "-x" */
};

/* Set the members that have an initial value to it. Only a wrong table can make it fail. */
int options_init(const struct option_target *targets, size_t n, struct err *err);

/*
 * Parse argv[1 .. argc - 1], storing into @targets; an option of an earlier target hides one of the
 * same name in a later one. @command names the command in messages, NULL for rbpf itself.
 * argv is rearranged in place: *@rest points into it. After a failure rest->unknown is set, and
 * rest->n_before words of rest->argv are those that came before it.
 *
 * With @stop_at_word, parsing ends at the first word that is no option (for "rbpf -v record -F 9").
 *
 * Returns 0, -EINVAL or -ERANGE with ERR_USAGE, or -ENOMEM. Values parsed before an error stay: the
 * caller releases the targets in both cases.
 */
int options_parse(const struct option_target *targets, size_t n, const char *command,
		  bool stop_at_word, int argc, char **argv, struct option_rest *rest,
		  struct err *err);

/* Free what parsing allocated (pid lists), and reset those members. */
void options_release(const struct option_target *targets, size_t n);

/* Whether an option of this type has a value. */
bool option_takes_value(enum option_type type);

#endif
