/* SPDX-License-Identifier: GPL-2.0-only */
#include "profile/copy.h"

#include <string.h>

int copy_string(const struct profile *p, struct sink *to, uint32_t *id)
{
	const char *s = profile_str(p, *id);

	return sink_string(to, s, strlen(s), id);
}

int copy_process(const struct profile *p, uint32_t process, uint32_t parent, struct sink *to,
		 uint32_t *ret)
{
	struct profile_process def = p->processes[process];
	int r;

	def.parent = parent;
	r = copy_string(p, to, &def.exe);
	if (!r)
		r = copy_string(p, to, &def.cmdline);
	if (!r)
		r = copy_string(p, to, &def.ruby_version);
	if (!r)
		r = copy_string(p, to, &def.cgroup);
	if (!r)
		r = copy_string(p, to, &def.container);
	if (!r)
		r = copy_string(p, to, &def.attributes);
	return r ? r : sink_process(to, &def, ret);
}

int copy_frame(const struct profile *p, uint32_t frame, struct sink *to, uint32_t *ret)
{
	struct profile_frame def = p->frames[frame];
	struct profile_module module;
	int r;

	/* The sink makes the label again. */
	if (def.raw_name)
		def.name = def.raw_name;
	def.raw_name = 0;
	r = copy_string(p, to, &def.name);
	if (!r)
		r = copy_string(p, to, &def.file);
	if (!r && def.module != PROFILE_NONE) {
		module = p->modules[def.module];
		r = copy_string(p, to, &module.path);
		if (!r)
			r = copy_string(p, to, &module.build_id);
		if (!r)
			r = sink_module(to, &module, &def.module);
	}
	return r ? r : sink_frame(to, &def, ret);
}
