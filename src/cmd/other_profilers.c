/* SPDX-License-Identifier: GPL-2.0-only */
#include "cmd/other_profilers.h"

#include <stddef.h>
#include <string.h>

#include "base/array.h"
#include "base/err.h"
#include "cmd/command.h"

static const char RATE[] = "-F HZ is how often samples are taken; -F 100 is every 10 ms";
static const char WAITS[] =
	"--mode wall records time off the CPU, too, and --mode states also what is waited for";
static const char STACKS[] = "stacks are always recorded; --no-native leaves out native ones";
static const char CHILDREN[] = "children are recorded, too, unless --no-children is given";
static const char ALL[] = "--all-ruby records all Ruby processes of the machine";
static const char THREADS[] =
	"each thread is recorded by itself; 'rbpf report --by thread' shows them";

static const struct {
	const char *theirs;
	const char *ours; /* an option that the command has, if this is of use */
	const char *hint; /* NULL: it is only called otherwise */
} options[] = {
	{ "--file", "output", NULL },
	{ "--frequency", "freq", NULL },
	{ "--rate", "freq", NULL },
	{ "-r", "freq", RATE },
	{ "--interval", "freq", RATE },
	{ "-i", "freq", RATE },
	{ "--event", "mode", WAITS },
	{ "-e", "mode", WAITS },
	{ "--idle", "mode", WAITS },
	{ "--wall", "mode", WAITS },
	{ "--gil", "mode", "'rbpf report --state gvl' of a --mode states recording shows the GVL" },
	{ "--call-graph", "native", STACKS },
	{ "-g", "native", STACKS },
	{ "--follow", "children", NULL },
	{ "--subprocesses", "children", NULL },
	{ "-s", "children", CHILDREN },
	{ "--all-cpus", "all-ruby", ALL },
	{ "-a", "all-ruby", ALL },
	{ "--threads", "freq", THREADS },
	{ "-t", "freq", THREADS },
	{ "--nonblocking", "pid", "rbpf never stops a process" },
};

bool other_profilers_hint(const struct command *cmd, const char *option, struct err *err)
{
	const size_t len = strcspn(option, "=");

	for (size_t i = 0; i < ARRAY_SIZE(options); i++) {
		if (strlen(options[i].theirs) != len ||
		    strncmp(options[i].theirs, option, len) != 0 ||
		    !command_has_option(cmd, options[i].ours, strlen(options[i].ours)))
			continue;
		if (options[i].hint)
			err_hint(err, "%s", options[i].hint);
		else
			err_hint(err, "it is --%s here", options[i].ours);
		return true;
	}
	return false;
}
