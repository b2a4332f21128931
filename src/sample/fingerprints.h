/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Which entry of an array a fingerprint of the BPF programs stands for: the one that came last with
 * it.
 */
#ifndef RBPF_SAMPLE_FINGERPRINTS_H
#define RBPF_SAMPLE_FINGERPRINTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/intern.h"

/* All 0: none. */
struct fingerprints {
	struct intern ids;
	uint32_t *latest; /* by id: index of the entry; owned */
	size_t cap;
};

void fingerprints_deinit(struct fingerprints *f);

/* Empty it, and keep what it took: see array_recycle(). */
void fingerprints_recycle(struct fingerprints *f);

/* Let @fingerprint stand for entry @index from now on. Returns 0 or -ENOMEM. */
int fingerprints_set(struct fingerprints *f, uint64_t fingerprint, size_t index);

/* Whether it stands for one, which *@index is. */
bool fingerprints_find(const struct fingerprints *f, uint64_t fingerprint, size_t *index);

#endif
