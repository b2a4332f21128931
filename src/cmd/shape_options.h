/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The options that change stacks before they are shown, which the views of stacks share.
 */
#ifndef RBPF_CMD_SHAPE_OPTIONS_H
#define RBPF_CMD_SHAPE_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

#include "cmd/options.h"
#include "view/reshape.h"

struct err;
struct recording;
struct view_filter;

struct shape_options {
	const char *root; /* regex or NULL */
	bool collapse_recursion;
};

#define N_SHAPE_OPTIONS 2
extern const struct option_spec shape_option_specs[N_SHAPE_OPTIONS];

/* The group of these options for a command whose struct @type has them as .shape. */
#define SHAPE_OPTION_GROUP(type)                                                                   \
	{                                                                                          \
		.title = "Stacks", .options = shape_option_specs, .n = N_SHAPE_OPTIONS,            \
		.offset = offsetof(type, shape),                                                   \
	}

/*
 * Compile them into @ret, which is all zero before. ERR_USAGE for a bad pattern. The caller
 * releases
 * @ret with cmd_shape_release(), also after a failure.
 */
int cmd_shape(const struct shape_options *opts, struct reshape_options *ret, struct err *err);
void cmd_shape_release(struct reshape_options *opts);

/*
 * Reshape @rec, then cmd_prepare_recording(). It must have been read as @filter needs it. Returns 0
 * or -ENOMEM.
 */
int cmd_shape_recording(struct recording *rec, struct view_filter *filter,
			const struct reshape_options *opts, struct err *err);

#endif
