/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The call frame information of an ELF file, read through libdw and compiled into a table that the
 * BPF programs can search (include/rbpf_cfi.h): where a function's caller goes on, for each of its
 * instructions. It knows nothing of processes: addresses are the file's own.
 *
 * The file may belong to a hostile target: what is read and what is made of it is limited in size
 * and in time, and a table may be wrong, but cannot harm its reader. Thread-safe for different
 * lists of rules.
 */
#ifndef RBPF_ELF_CFI_H
#define RBPF_ELF_CFI_H

#include <stddef.h>
#include <stdint.h>

#include "base/intern.h"
#include "rbpf_cfi.h"

#define CFI_MAX_BYTES	(64ull << 20) /* of the section */
#define CFI_MAX_ENTRIES (1u << 20)    /* in it */
#define CFI_MAX_ROWS	(4u << 20)    /* of a table: 16 MiB */
#define CFI_MAX_NS	2000000000ull /* of CPU time for one, once the section is in memory */

/* The rules of all tables: by number, only ever more of them. */
struct cfi_rules {
	struct intern in;
};

#define CFI_RULES_INIT                                                                             \
	{                                                                                          \
		.in = INTERN_INIT                                                                  \
	}

/*
 * Add to @rules, which are empty (CFI_RULES_INIT), those that all tables need. Returns 0 or
 * -ENOMEM.
 */
int cfi_rules_init(struct cfi_rules *rules);
void cfi_rules_deinit(struct cfi_rules *rules);

/*
 * The number of @rule, whose padding is zero, added if it is new. Past RBPF_CFI_MAX_RULES it is
 * the number of a rule that says that there was no room. Returns 0 or -ENOMEM.
 */
int cfi_rules_add(struct cfi_rules *rules, const struct rbpf_cfi_rule *rule, uint16_t *ret);

/* Rule @i, which must be below cfi_rules_count(). Valid until cfi_rules_deinit(). */
const struct rbpf_cfi_rule *cfi_rules_get(const struct cfi_rules *rules, uint32_t i);
uint32_t cfi_rules_count(const struct cfi_rules *rules);

/* How many of the file's entries are in the table, and why others are not. */
struct cfi_stats {
	uint32_t entries;		      /* functions, or parts of some */
	uint32_t broken;		      /* of them, left out as MALFORMED */
	uint32_t outside;		      /* of them, that describe no code of the file */
	uint32_t unknown[RBPF_CFI_WHY_MAX];   /* rows without a CFA, by reason, but for gaps */
	uint64_t covered;		      /* bytes of code that have a CFA */
	uint64_t uncovered[RBPF_CFI_WHY_MAX]; /* that have none, by reason, gaps too */
};

struct cfi_table {
	uint64_t base;	  /* the file's address that 0 stands for: of the lowest PT_LOAD */
	uint16_t machine; /* EM_X86_64, EM_AARCH64 */
	uint32_t pages;
	uint32_t rows;
	uint32_t n_words;
	uint32_t *words; /* as in rbpf_cfi.h; owned */
	struct cfi_stats stats;
};

#define CFI_TABLE_INIT                                                                             \
	{                                                                                          \
		0                                                                                  \
	}

/*
 * Compile what .eh_frame or, where there is none, .debug_frame says about the code in @fd, which
 * stays the caller's. The debug file of a file (debug_file.h) gives a table for that file.
 *
 * Returns 0, -ENOEXEC (no ELF file of a machine that is known), -ENOENT (it has neither), -E2BIG,
 * -ETIME (past the limits), -EBADMSG (nothing in it can be read) or -ENOMEM.
 */
int cfi_table_read(int fd, struct cfi_rules *rules, struct cfi_table *ret);

/* The same for a file in memory, as a process has a vDSO. */
int cfi_table_read_image(const void *image, size_t size, struct cfi_rules *rules,
			 struct cfi_table *ret);

/* Accepts CFI_TABLE_INIT, and makes it that. */
void cfi_table_deinit(struct cfi_table *table);

#endif
