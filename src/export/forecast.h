/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * How much a format that writes the whole stack of each sample will write: of a long recording that
 * can be hundreds of times what the recording takes, and more than its reader can hold.
 */
#ifndef RBPF_EXPORT_FORECAST_H
#define RBPF_EXPORT_FORECAST_H

#include <stddef.h>
#include <stdint.h>

struct profile;
struct view_filter;

/* About how many bytes the format writes for a frame. */
typedef size_t frame_bytes_fn(const struct profile *p, uint32_t frame);

/*
 * About how many bytes the selected samples of @p take, at @per_sample each and what @of_frame says
 * of each frame that is shown. Returns 0, -ENOMEM, or -EINVAL as view_selection_new().
 */
int forecast_bytes(const struct profile *p, const struct view_filter *f, size_t per_sample,
		   frame_bytes_fn *of_frame, uint64_t *ret);

#endif
