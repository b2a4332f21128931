/* SPDX-License-Identifier: GPL-2.0-only */
#include "cmd/shape_options.h"

#include "base/err.h"
#include "cmd/open_recording.h"
#include "view/filter.h"

#define SHAPE(member) .offset = offsetof(struct shape_options, member)

const struct option_spec shape_option_specs[N_SHAPE_OPTIONS] = {
	{
		.name = "root",
		.type = OPTION_STRING,
		SHAPE(root),
		.arg = "REGEX",
		.help = "keep samples with a frame whose name matches, and of their stacks what "
			"the "
			"outermost such frame called",
	},
	{
		.name = "collapse-recursion",
		.type = OPTION_FLAG,
		SHAPE(collapse_recursion),
		.help = "show a method that calls itself directly as one frame",
	},
};

int cmd_shape(const struct shape_options *opts, struct reshape_options *ret, struct err *err)
{
	ret->collapse_recursion = opts->collapse_recursion;
	if (!opts->root)
		return 0;
	return view_filter_regex(&ret->root, &ret->has_root, opts->root, "--root", err);
}

void cmd_shape_release(struct reshape_options *opts)
{
	if (opts->has_root)
		regfree(&opts->root);
	opts->has_root = false;
}

int cmd_shape_recording(struct recording *rec, struct view_filter *filter,
			const struct reshape_options *opts, struct err *err)
{
	int r = err_code(err, profile_reshape(&rec->profile, filter, opts));

	return r ? r : cmd_prepare_recording(rec, filter, err);
}
