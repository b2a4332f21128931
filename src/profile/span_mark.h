/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Traces and spans that samples are asked for by: those of one are added up apart, so that a filter
 * can tell them apart afterwards (struct profile_aggregate, .marks).
 */
#ifndef RBPF_PROFILE_SPAN_MARK_H
#define RBPF_PROFILE_SPAN_MARK_H

#include <stdbool.h>
#include <stdint.h>

struct span_mark {
	bool trace;	/* else it is the id of a span, of 8 bytes */
	uint8_t id[16]; /* in the order of its digits */
};

#endif
