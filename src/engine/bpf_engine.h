/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The engine that samples with BPF programs (bpf/): it loads and attaches them, opens the perf
 * events of threads or CPUs, and reads the ring buffer. Its folder alone includes libbpf.
 *
 * Everything it holds in the kernel is held by file descriptors: when rbpf dies, in whatever way,
 * the kernel takes it all down. Not thread-safe.
 */
#ifndef RBPF_ENGINE_BPF_ENGINE_H
#define RBPF_ENGINE_BPF_ENGINE_H

#include "engine/engine.h"

/* Where the messages of libbpf go, line by line, for --verbose; NULL drops them. Process-wide. */
void bpf_engine_set_log(void (*log)(const char *line));

/* Load and attach. ERR_ENV with the reason if the kernel refuses. */
int bpf_engine_open(const struct engine_options *opts, struct engine **ret, struct err *err);

/* An engine that samples nothing, to read the threads of processes that it is told to follow. */
int bpf_engine_open_idle(struct engine **ret, struct err *err);

/*
 * Try what recording does, with its defaults, or with @waits what --mode states does: load, attach
 * to this process itself, take a sample. For rbpf doctor. Returns 0 or an ERR_ENV that tells what
 * was refused.
 */
int bpf_engine_trial(bool waits, struct err *err);

#endif
