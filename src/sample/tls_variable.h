/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Where the threads of a process have a variable of thread-local storage (TLS), of which the files
 * that define or use it say where the dynamic linker leaves that (elf_file_tls()).
 *
 * What is read of the process may be anything: what comes out is in range, and no more is promised.
 * Whoever reads the variable reads the process' own memory.
 */
#ifndef RBPF_SAMPLE_TLS_VARIABLE_H
#define RBPF_SAMPLE_TLS_VARIABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "rbpf_abi.h"

struct elf_tls;
struct memory;

/* A file that is mapped into the process. */
struct tls_file {
	const struct elf_tls *tls;
	uint64_t bias; /* the address here less the address in the file, modulo 2^64 */
	bool is_exe;   /* it is what the process executes */
};

/*
 * Find the variable by @file; @tp is the thread pointer of any thread. Returns 0 or -ENOENT: it is
 * not known from this file, or not yet, as the dynamic linker may decide only when it is used
 * first.
 */
int tls_variable_find(const struct memory *mem, uint64_t tp, const struct tls_file *file,
		      struct rbpf_tls *ret);

#endif
