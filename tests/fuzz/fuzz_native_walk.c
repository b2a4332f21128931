/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * libFuzzer target: whatever memory, code and rules the native walk finds, it ends, stays within
 * its arrays (native_host.h checks each read, ASan the rest) and its limits, and says what the
 * plain walk of native_naive.h says. The input is the throws of the dice of native_world.h.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "support/native_host.h"
#include "support/native_naive.h"
#include "support/native_world.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct world_dice d = { .data = data, .len = len };
	struct walk *w = native_host_new();
	const char *problem = world_walk(w, &d);

	free(w);
	if (problem) {
		fprintf(stderr, "fuzz_native_walk: %s\n", problem);
		abort();
	}
	return 0;
}
