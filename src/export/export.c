/* SPDX-License-Identifier: GPL-2.0-only */
#include "export/export.h"

#include <string.h>

#include "base/array.h"
#include "export/exporters.h"
#include "view/filter.h"

const struct exporter exporters[] = {
	{
		.name = "folded",
		.description = "one line a stack with its weight, for flamegraph.pl and speedscope",
		.suffix = ".folded",
		.stack = STACK_MIXED,
		.needs = { .by_process = true }, /* by_thread for its option --threads */
		.run = export_folded,
	},
	{
		.name = "json",
		.description = "the whole recording: processes, threads, frames, stacks, samples",
		.suffix = ".json",
		.stack = STACK_ALL,
		.needs = { .read_again = true, .spans = true, .take_all = true },
		.run = export_json,
	},
	{
		.name = "speedscope",
		.description = "for speedscope.app: a profile of each thread, in the order of time",
		.suffix = ".speedscope.json",
		.stack = STACK_MIXED,
		.needs = { .read_again = true },
		.of_threads = true,
		.warn = speedscope_warn,
		.run = export_speedscope,
	},
	{
		.name = "firefox",
		.description = "for profiler.firefox.com: threads over time, waits, requests, GC",
		.suffix = ".firefox.json",
		.stack = STACK_MIXED,
		.needs = { .by_request = true, .read_again = true, .wall = true },
		.of_threads = true,
		.run = export_firefox,
	},
	{
		.name = "pprof",
		.description = "for pprof: functions, lines, threads (profile.proto, compressed)",
		.suffix = ".pb.gz",
		.binary = true,
		.stack = STACK_MIXED,
		.needs = { .by_thread = true,
			   .by_request = true,
			   .by_span = true,
			   .spans = true,
			   .by_event = true },
		.run = export_pprof,
	},
	{
		.name = "callgrind",
		.description =
			"for KCachegrind and callgrind_annotate: costs of functions and calls",
		.suffix = ".callgrind",
		.stack = STACK_MIXED,
		.needs = { .read_again = true },
		.run = export_callgrind,
	},
	{
		.name = "perf-script",
		.description = "each sample as 'perf script' prints it, for what reads that",
		.suffix = ".perf.txt",
		.stack = STACK_MIXED,
		.needs = { .read_again = true },
		.warn = perf_script_warn,
		.run = export_perf_script,
	},
	{
		.name = "chrome",
		.description = "trace events of Chrome: waits, requests, GC, stacks over time",
		.suffix = ".trace.json",
		.stack = STACK_MIXED,
		.needs = { .by_request = true, .read_again = true, .wall = true },
		.of_threads = true,
		.run = export_chrome,
	},
	{
		.name = "stackprof",
		.description = "a dump for the reports of stackprof, as JSON",
		.suffix = ".stackprof.json",
		.stack = STACK_MIXED,
		.run = export_stackprof,
	},
	{
		.name = "sampling-prof",
		.description = "the text of sampling_prof: lines of methods, and their calls",
		.suffix = ".sampling_prof.txt",
		.stack = STACK_MIXED,
		.run = export_sampling_prof,
	},
	{
		.name = "dot",
		.description = "the call graph, for graphviz",
		.suffix = ".dot",
		.stack = STACK_MIXED,
		.run = export_dot,
	},
	{
		.name = "flame",
		.description = "interactive flame graph (SVG), as drawn by 'rbpf flame'",
		.suffix = ".svg",
		.stack = STACK_MIXED,
		.run = export_flame,
	},
};

const size_t n_exporters = ARRAY_SIZE(exporters);

struct read_options exporter_needs(const struct exporter *exporter,
				   const struct view_filter *filter)
{
	struct read_options needs = exporter->needs;

	needs.by_thread |= exporter->of_threads && view_filter_of_samples(filter);
	return needs;
}

const struct exporter *exporter_find(const char *name)
{
	for (size_t i = 0; i < n_exporters; i++)
		if (!strcmp(exporters[i].name, name) || !strcmp(exporters[i].suffix + 1, name))
			return &exporters[i];
	return NULL;
}
