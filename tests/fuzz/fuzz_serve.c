/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a client of `rbpf serve` sends, after the library has taken it apart: the first line is a
 * Host, the second a path, the others are parameters. What is accepted becomes a command line that
 * has no word but those of the vocabulary, and no time out of the recording.
 */
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "serve/guard.h"
#include "serve/query.h"

#define MAX_LINES (SERVE_MAX_PARAMETERS + 3)

static const struct serve_token token = {
	"0123456789abcdef0123456789abcdef0123456789abcdef",
};

static void check_command(const struct serve_query *q, uint64_t from, uint64_t to)
{
	_cleanup_buf_ struct buf out = BUF_INIT;
	size_t n = 0;
	const char *word, *last = NULL;

	serve_query_command(q, "FILE", from, to, &out);
	if (buf_failed(&out) || !out.len || out.data[out.len - 1])
		abort();
	for (word = out.data; word < out.data + out.len; word += strlen(word) + 1, n++) {
		/* A file, a place to write to, a program: nothing that is not in the list. */
		if (!strncmp(word, "--output", 8) || !strncmp(word, "-o", 2) ||
		    !strncmp(word, "--input", 7) || !strncmp(word, "--diff", 6))
			abort();
		if (n && word[0] != '-' && strcmp(word, "firefox") != 0 &&
		    strcmp(word, "FILE") != 0)
			abort();
		last = word;
	}
	if (!last || strcmp(last, "FILE") != 0 || n > 2 * SERVE_MAX_PARAMETERS)
		abort();
}

static void check_query(const char *path, const struct serve_parameter *v, size_t n)
{
	struct serve_query q;
	uint64_t from, to;

	if (serve_query_parse(path, v, n, &q, NULL))
		return;
	serve_query_seconds(&q, &from, &to);
	if (q.from_ns >= q.to_ns || from >= to || from > q.from_ns / NSEC_PER_SEC)
		abort();
	if (q.view->kind == SERVE_COMMAND) {
		check_command(&q, from, to);
		check_command(&q, 0, 60);
	}
	serve_query_deinit(&q);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_free_ char *text = strndup((const char *)data, size);
	struct serve_parameter v[MAX_LINES];
	char *rest = text, *line, *name;
	char *host = strsep(&rest, "\n"), *path = strsep(&rest, "\n");
	struct serve_address a;
	size_t n = 0;

	if (serve_host_is_ours(host, false, "box") && !serve_host_is_ours(host, true, "box"))
		abort();
	serve_address_parse(host, &a, NULL);
	if (!path)
		return 0;
	if (serve_token_check(&token, path) && strncmp(path + 1, token.s, SERVE_TOKEN_LEN) != 0)
		abort();
	while (n < MAX_LINES && (line = strsep(&rest, "\n"))) {
		name = strsep(&line, "=");
		v[n++] = (struct serve_parameter) { name, line };
	}
	check_query(path, v, n);
	return 0;
}
