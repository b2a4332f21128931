/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a request asks for, behind the token: a view and its parameters,
 * "flame.svg?from=10s&to=20s".
 *
 * The vocabulary is fixed: a view is a command of rbpf with the options that make the view, and a
 * parameter is an option of that command by its own name. A parameter that the view does not take,
 * is given twice, or whose value is not of the form that this option has, is refused; so no request
 * can name a file or an option that is not listed here. Whether a value means something is the
 * command's to say.
 */
#ifndef RBPF_SERVE_QUERY_H
#define RBPF_SERVE_QUERY_H

#include <stddef.h>
#include <stdint.h>

struct buf;
struct err;
struct serve_view;

#define SERVE_MAX_PARAMETERS 16
#define SERVE_MAX_VALUE	     512 /* bytes */

/* What makes a resource. */
enum serve_kind {
	SERVE_PAGE,	 /* the page itself */
	SERVE_STATE,	 /* what can be asked for, as JSON */
	SERVE_RECORDING, /* the snapshot as it is */
	SERVE_COMMAND,	 /* what a command makes of the snapshot */
};

struct serve_view {
	const char *name; /* "" is the page */
	enum serve_kind kind;
	const char *type;    /* Content-Type */
	const char *command; /* SERVE_COMMAND: with these words, NULL-terminated: */
	const char *const *words;
	uint32_t takes; /* bits of parameters; see query.c */
	/* Another origin may read it, too; NULL: none may. */
	const char *origin;
};

/* A parameter as it came, decoded. */
struct serve_parameter {
	const char *name, *value;
};

struct serve_query {
	const struct serve_view *view;
	/* ns since the samples begin; 0 and UINT64_MAX: all */
	uint64_t from_ns, to_ns;
	uint64_t base_from_ns, base_to_ns; /* what is compared with; base_to_ns 0: nothing */
	/*
	 * The other parameters as words "--option=value", NULs between them and at the end; owned.
	 */
	char *words;
	size_t words_len;
};

/*
 * Parse @path, that behind the token, with its @n parameters, which are not kept.
 *
 * Returns 0; -ENOENT (there is no such view); -EINVAL, -ERANGE (a parameter is refused); -ENOMEM.
 * The last two fill @err. @ret is written only on success and must then be released with
 * serve_query_deinit().
 */
int serve_query_parse(const char *path, const struct serve_parameter *parameters, size_t n,
		      struct serve_query *ret, struct err *err);
void serve_query_deinit(struct serve_query *q);

/* The seconds that it is about: those of both ranges, and all between them. */
void serve_query_seconds(const struct serve_query *q, uint64_t *from, uint64_t *to);

/*
 * Append the command line to @out, words that end in NUL each, beginning with the name of the
 * command: for the recording @path, which has the seconds from @from on and before @to.
 */
void serve_query_command(const struct serve_query *q, const char *path, uint64_t from, uint64_t to,
			 struct buf *out);

#endif
