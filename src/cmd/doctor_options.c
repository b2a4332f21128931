/* SPDX-License-Identifier: GPL-2.0-only */
/* The options of doctor; what it does is in doctor.c. */
#include "cmd/doctor.h"

#include "base/array.h"
#include "base/err.h"
#include "cmd/command.h"

#define OPT(member) .offset = offsetof(struct doctor_options, member)

static const struct option_spec specs[] = {
	{
		.letter = 'p',
		.name = "pid",
		.type = OPTION_PID,
		OPT(pid),
		.arg = "PID",
		.help = "check this process, too",
		.complete = COMPLETE_RUBY_PID,
	},
	{
		.name = "json",
		.type = OPTION_FLAG,
		OPT(json),
		.help = "print JSON, for bug reports",
	},
};

static const struct option_group group = {
	.title = "Options",
	.options = specs,
	.n = ARRAY_SIZE(specs),
};

static int doctor_main(struct cmd_context *ctx, int argc, char **argv, struct err *err)
{
	struct doctor_options opts = { .pid = 0 };
	struct option_rest rest;
	int r;

	r = command_parse(&command_doctor, ctx, &opts, argc, argv, &rest, err);
	if (r)
		return r == COMMAND_DONE ? 0 : r;
	return doctor_run(&opts, ctx, err);
}

static const char *const usages[] = { "[-p PID] [--json]", NULL };

static const struct option_group *const groups[] = { &group };

static const struct command_example examples[] = {
	{ "sudo rbpf doctor", "will recording work on this machine?" },
	{ "sudo rbpf doctor -p 4242 --json",
	  "check a process, and print what to attach to a bug report" },
	{ NULL, NULL },
};

const struct command command_doctor = {
	.name = "doctor",
	.summary = "check whether recording will work here",
	.usage = usages,
	.about = "Tries everything that recording needs from the kernel, and from a process if one "
		 "is given, and says what is missing and how to get it. Exits with 0 if recording "
		 "will work, with 4 if it does not on this machine, and with 3 if it does not for "
		 "that process alone.",
	.groups = groups,
	.n_groups = ARRAY_SIZE(groups),
	.args = ARGS_NONE,
	.examples = examples,
	.run = doctor_main,
};
