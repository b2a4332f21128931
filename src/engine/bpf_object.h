/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The BPF programs and their maps, by libbpf's skeleton: to size, load and attach them. Who opens
 * it owns it: rbpf_bpf__destroy() detaches and frees all.
 */
#ifndef RBPF_ENGINE_BPF_OBJECT_H
#define RBPF_ENGINE_BPF_OBJECT_H

struct engine_options;
struct err;
struct rbpf_bpf;
struct unwind_memory;

/* The kernel has refused to do @what, with errno -@r: sets @err, and returns @r. */
int bpf_object_refused(int r, const char *what, struct err *err);

/*
 * Load what @opts ask for; nothing is attached yet. Returns 0 or a negative errno with @err set.
 * *@ret is also set on failure; NULL: nothing was opened.
 */
int bpf_object_load(const struct engine_options *opts, struct rbpf_bpf **ret, struct err *err);

/*
 * Map the memory of unwind tables, which an object has if its engine walks native stacks. Also on
 * failure: bpf_object_unmap_unwind().
 */
int bpf_object_map_unwind(const struct rbpf_bpf *skel, struct unwind_memory *ret, struct err *err);
void bpf_object_unmap_unwind(const struct rbpf_bpf *skel, struct unwind_memory *m);

/*
 * Attach the iterators over tasks; to forks, execs and exits; to switches and wake-ups, until the
 * last one.
 */
int bpf_object_attach_iterators(struct rbpf_bpf *skel, struct err *err);
int bpf_object_attach_life(struct rbpf_bpf *skel, struct err *err);
int bpf_object_attach_waits(struct rbpf_bpf *skel, struct err *err);
void bpf_object_detach_waits(struct rbpf_bpf *skel);

#endif
