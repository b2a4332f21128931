/* SPDX-License-Identifier: GPL-2.0-only */
#include "profile/reason.h"

#include <string.h>

#include "base/buf.h"

static const struct {
	const char *word, *label, *why;
	enum frame_kind kind;
} reasons[FRAME_REASON_COUNT] = { [REASON_NONE] = { "", "", "not recorded", FRAME_KIND_COUNT },
#define REASON_ROW(name, number, kind, word, label, why)                                           \
	[number] = { word, label, why, FRAME_##kind },
				  FRAME_REASONS(REASON_ROW)
#undef REASON_ROW
};

bool frame_reason_fits(uint32_t reason, enum frame_kind kind)
{
	if (reason == REASON_NONE)
		return kind != FRAME_NOT_RECORDED;
	return reason < FRAME_REASON_COUNT && reasons[reason].kind == kind;
}

bool frame_reason_of_no_ruby_stack(uint32_t reason)
{
	return (reason >= REASON_NO_RUBY_FRAME && reason <= REASON_STACK_LOST) ||
	       reason == REASON_WAITED_BEFORE || reason == REASON_INTERRUPT ||
	       reason == REASON_OTHER_PROCESS || reason == REASON_EXECUTING;
}

enum frame_kind frame_reason_kind(enum frame_reason reason)
{
	return reasons[reason].kind;
}

const char *frame_reason_word(enum frame_reason reason)
{
	return reasons[reason].word;
}

const char *frame_reason_label(enum frame_reason reason)
{
	return reasons[reason].label;
}

const char *frame_reason_why(enum frame_reason reason)
{
	return reasons[reason].why;
}

void wait_label_add(enum frame_reason reason, const char *on, struct buf *out)
{
	const char *label = frame_reason_label(reason);

	buf_addf(out, "%.*s: %s)", (int)strlen(label) - 1, label, on);
}

const char *wait_label_on(enum frame_reason reason, const char *label, size_t *n)
{
	const char *plain = frame_reason_label(reason);
	const size_t begin = strlen(plain) + 1, len = strlen(label);

	*n = 0;
	if (reason == REASON_NONE || len <= begin + 1 || strncmp(label, plain, begin - 2) ||
	    strncmp(label + begin - 2, ": ", 2))
		return label;
	*n = len - begin - 1;
	return label + begin;
}

enum frame_reason frame_reason_of_label(enum frame_kind kind, const char *label)
{
	for (unsigned int i = REASON_NONE + 1; i < FRAME_REASON_COUNT; i++)
		if (reasons[i].kind == kind && !strcmp(reasons[i].label, label))
			return i;
	return REASON_NONE;
}
