/* SPDX-License-Identifier: GPL-2.0-only */
#include "export/export.h"

#include <string.h>

#include "base/array.h"
#include "export/exporters.h"

const struct exporter exporters[] = {
	{ "folded", "one line a stack with its weight, for flamegraph.pl and speedscope", ".folded",
	  STACK_MIXED, export_folded },
	{ "json", "the whole recording: processes, threads, frames, stacks, samples", ".json",
	  STACK_ALL, export_json },
	{ "flame", "interactive flame graph (SVG), as drawn by 'rbpf flame'", ".svg", STACK_MIXED,
	  export_flame },
};

const size_t n_exporters = ARRAY_SIZE(exporters);

const struct exporter *exporter_find(const char *name)
{
	for (size_t i = 0; i < n_exporters; i++)
		if (!strcmp(exporters[i].name, name) || !strcmp(exporters[i].suffix + 1, name))
			return &exporters[i];
	return NULL;
}
