/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Names of symbols, as a file may hold them: what is demangled is appended, within its limit, and
 * what is not leaves the output as it was.
 */
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "elf/demangle.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_free_ char *name = strndup((const char *)data, size);
	_cleanup_buf_ struct buf out = BUF_INIT;
	bool done;

	buf_addstr(&out, "before ");
	done = demangle(name, &out);
	if (strncmp(buf_str(&out), "before ", 7) || strlen(buf_str(&out)) != out.len)
		abort();
	/* What follows a "." is appended to it as it is. */
	if (done != (out.len > 7) || out.len > 7 + DEMANGLE_MAX_OUTPUT + DEMANGLE_MAX_NAME)
		abort();
	return 0;
}
