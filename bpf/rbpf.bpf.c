// SPDX-License-Identifier: GPL-2.0-only
/*
 * The BPF programs of rbpf: one object from small units. They walk, count and send; they know no
 * names, no files and no policy.
 */
#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include <bpf/bpf_core_read.h>

#include "rbpf_abi.h"
#include "rbpf_cfi.h"

#include "walk_state.bpf.h"
#include "maps.bpf.h"
#include "tick.bpf.h"
#include "life.bpf.h"
#include "wait.bpf.h"

char LICENSE[] SEC("license") = "GPL";
