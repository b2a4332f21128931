/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What a worker does: it takes requests, reads the files that come with them with the parsers of
 * src/elf/, and answers. It runs confined (sandbox.h) and nothing of it runs in rbpf itself.
 */
#ifndef RBPF_WORKER_SERVE_H
#define RBPF_WORKER_SERVE_H

#include <stdint.h>

/* Serve requests from @sock until the other end is closed. A fork_server_main_fn. */
void serve(int sock, int memfd, uint64_t max_memory);

#endif
