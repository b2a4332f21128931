/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Room in the arrays of a profile. What is in them is named by ids, of which a recording has a
 * limited number.
 */
#ifndef RBPF_PROFILE_RESERVE_H
#define RBPF_PROFILE_RESERVE_H

#include <errno.h>

#include "base/array.h"
#include "rbpf_file.h"

/*
 * Make room for one more in the array @v of @n elements (array_reserve()). Returns 0, -ENOMEM, or
 * -E2BIG if there are RBPF_FILE_MAX_IDS already.
 */
#define RESERVE_ONE(v, n, cap)                                                                     \
	((n) >= RBPF_FILE_MAX_IDS ? -E2BIG : array_reserve((v), (cap), (n) + 1))

#endif
