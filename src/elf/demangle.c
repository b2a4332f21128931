/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * libiberty tells what it has so far, piece by piece, and knows no limit: a name of 200 bytes that
 * says "a pair of what was before" often enough stands for gigabytes. The only way to stop it is
 * not to return. What it has then is on its stack, but for the characters of one identifier of
 * Rust.
 */
#include "elf/demangle.h"

#include <libiberty/demangle.h>
#include <setjmp.h>
#include <string.h>

#include "base/buf.h"

struct demangle_output {
	struct buf *buf;
	size_t start; /* length of buf before */
	jmp_buf too_long;
};

typedef int demangler(const char *, int, demangle_callbackref, void *);

static void collect(const char *piece, size_t len, void *ctx)
{
	struct demangle_output *output = ctx;

	if (len > DEMANGLE_MAX_OUTPUT - (output->buf->len - output->start))
		longjmp(output->too_long, 1);
	buf_add(output->buf, piece, len);
}

static bool run(demangler *run_demangler, const char *name, struct demangle_output *output)
{
	if (!setjmp(output->too_long) && run_demangler(name, DMGL_NO_OPTS, collect, output) &&
	    !buf_failed(output->buf) && output->buf->len > output->start)
		return true;
	output->buf->len = output->start;
	if (output->buf->data)
		output->buf->data[output->start] = '\0';
	return false;
}

bool demangle(const char *name, struct buf *out)
{
	struct demangle_output output = { .buf = out, .start = out->len };

	if (name[0] != '_' || strnlen(name, DEMANGLE_MAX_NAME + 1) > DEMANGLE_MAX_NAME)
		return false;
	/* Rust first: its legacy names are valid ones of C++. */
	if (run(rust_demangle_callback, name, &output))
		return true;
	if (!run(cplus_demangle_v3_callback, name, &output))
		return false;
	/* Without parameters, libiberty stops at their place and does not see what follows them. */
	buf_addstr(out, strchrnul(name, '.'));
	return true;
}
