/* SPDX-License-Identifier: GPL-2.0-only */
#include "export/function.h"

#include <inttypes.h>

#include "base/buf.h"
#include "base/err.h"
#include "profile/profile.h"
#include "view/label.h"
#include "view/tree.h"

void function_of_frame(const struct profile *p, uint32_t frame, struct function *ret)
{
	const struct profile_frame *f = &p->frames[frame];

	*ret = (struct function)FUNCTION_INIT(label_frame(p, frame));
	if (f->kind == FRAME_CFUNC)
		return;
	ret->file = profile_str(p, f->file);
	if (f->module != PROFILE_NONE)
		ret->module = profile_str(p, p->modules[f->module].path);
	ret->line = f->func_line;
}

const char *function_place(const struct function *f)
{
	return *f->file ? f->file : f->module;
}

void function_thread_title(const struct profile *p, uint32_t thread, struct buf *out)
{
	uint32_t process;

	if (thread == p->n_threads) {
		label_thread(p, thread, out);
		return;
	}
	process = p->threads[thread].process;
	label_process(p, process, out);
	buf_addstr(out, ": ");
	label_thread(p, thread, out);
	buf_addf(out, " (pid %" PRIu32 ", tid %" PRIu32 ")", p->processes[process].pid,
		 p->threads[thread].tid);
}

uint32_t function_process(const struct profile *p, const bool *threads, bool *several)
{
	uint32_t first = PROFILE_NONE, last = 0;

	for (size_t i = 0; i < p->n_threads; i++) {
		const uint32_t process = p->threads[i].process;

		if (!threads[i])
			continue;
		if (process < first)
			first = process;
		if (process > last)
			last = process;
	}
	*several = first < last;
	return first;
}

int export_error(int r, struct err *err)
{
	return !r || (err && err->code == r) ? r : tree_error(r, err);
}
