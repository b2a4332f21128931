/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A thread's DTV (dynamic thread vector), as the dynamic linker of glibc and that of musl make it:
 * where the thread has the block of thread-local storage (TLS) of each module, which is an
 * executable or a library.
 *
 * It says nothing of what lies in a block. Whose memory is read may lie. Not thread-safe.
 */
#ifndef RBPF_TARGET_DTV_H
#define RBPF_TARGET_DTV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct memory;

#define DTV_MAX_MODULES 256 /* entries that are read */
#define DTV_ENTRY_GLIBC 16  /* bytes of one */
#define DTV_ENTRY_MUSL	8
/* What lies in static TLS is nearer to the thread pointer than this. */
#define DTV_STATIC_MAX	65536

/* Which of the two it is, is only seen by what is in it. */
enum dtv_form { DTV_GLIBC, DTV_MUSL, DTV_FORMS };

struct dtv {
	int32_t offset; /* of the DTV's address, from the thread pointer */
	uint16_t entry; /* bytes of an entry */
	uint64_t words[DTV_MAX_MODULES * DTV_ENTRY_GLIBC / 8];
	size_t n; /* entries; the first one is of no module */
};

/* Read the DTV of the thread with thread pointer @tp; false: it has none of that form. */
bool dtv_read(const struct memory *mem, uint64_t tp, enum dtv_form form, struct dtv *ret);

/*
 * The block of module @m, which is below n. It may be no address: the thread has not got one yet.
 */
uint64_t dtv_block(const struct dtv *dtv, size_t m);

/* glibc: the heap chunk that the block of module @m is in; 0: none. */
uint64_t dtv_chunk(const struct dtv *dtv, size_t m);

/*
 * Whether the block of module @m is where only static TLS is, for which it is at the same distance
 * from each thread pointer.
 */
bool dtv_is_static(const struct dtv *dtv, size_t m, uint64_t tp);

#endif
