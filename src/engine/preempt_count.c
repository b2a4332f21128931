/* SPDX-License-Identifier: GPL-2.0-only */
#include "engine/preempt_count.h"

#include <bpf/btf.h>
#include <string.h>

/* The offset of member @name of struct @id, in bytes; -1 if there is none. */
static int64_t offset_of_member(const struct btf *btf, uint32_t id, const char *name)
{
	const struct btf_type *t = btf__type_by_id(btf, id);

	for (uint32_t i = 0; t && btf_is_composite(t) && i < btf_vlen(t); i++) {
		const struct btf_member *m = &btf_members(t)[i];
		const char *of = btf__name_by_offset(btf, m->name_off);

		if (of && !strcmp(of, name))
			return btf_member_bit_offset(t, i) / 8;
		/* An anonymous union or struct has members of this one. */
		if (of && !*of) {
			const int64_t inner = offset_of_member(btf, m->type, name);

			if (inner >= 0)
				return btf_member_bit_offset(t, i) / 8 + inner;
		}
	}
	return -1;
}

/* Take the variable @info of a section, if it is one of the two. */
static void take(const struct btf *btf, const struct btf_var_secinfo *info, int64_t *rq,
		 int64_t *count)
{
	const struct btf_type *var = btf__type_by_id(btf, info->type);
	const char *name = var ? btf__name_by_offset(btf, var->name_off) : NULL;

	if (!name)
		return;
	if (!strcmp(name, "runqueues"))
		*rq = info->offset;
	else if (!strcmp(name, "__preempt_count"))
		*count = info->offset;
	else if (!strcmp(name, "pcpu_hot")) { /* Linux 6.2 to 6.14 */
		const int64_t at = offset_of_member(btf, var->type, "preempt_count");

		*count = at < 0 ? -1 : info->offset + at;
	}
}

static int64_t distance(const struct btf *btf)
{
	const int32_t id = btf__find_by_name_kind(btf, ".data..percpu", BTF_KIND_DATASEC);
	const struct btf_type *section = id > 0 ? btf__type_by_id(btf, (uint32_t)id) : NULL;
	int64_t rq = -1, count = -1;

	for (uint32_t i = 0; section && i < btf_vlen(section); i++)
		take(btf, &btf_var_secinfos(section)[i], &rq, &count);
	return rq < 0 || count < 0 ? 0 : count - rq;
}

int64_t preempt_count_from_rq(void)
{
	struct btf *btf = btf__load_vmlinux_btf();
	int64_t ret;

	if (!btf)
		return 0;
	ret = distance(btf);
	btf__free(btf);
	return ret;
}
