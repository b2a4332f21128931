/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Owners: the process, thread, container, version of Ruby or kind of request that a sample belongs
 * to, by which views group and split.
 *
 * An owner is an id: the index of a process or thread; the kind of a request (request.h); of a
 * container or a version of Ruby the string that names it, which is one as strings are interned.
 * String 0, "", is the owner of what is in no container (that is known), or is no Ruby.
 *
 * Threads may be shown as one (thread_series.h): then the first of them owns the samples of all.
 *
 * Who ended a wait and is not recorded (profile_stack_not_recorded()) is no process or thread of
 * the profile, and of no request that is known: it has the id behind all others. It counts as in no
 * container and as no Ruby.
 */
#ifndef RBPF_VIEW_OWNER_H
#define RBPF_VIEW_OWNER_H

#include <stddef.h>
#include <stdint.h>

struct buf;
struct flat;
struct profile;
struct profile_aggregate;
struct view_selection;

enum owner_kind { OWNER_PROCESS, OWNER_THREAD, OWNER_CONTAINER, OWNER_RUBY, OWNER_REQUEST };

/* Ids of this kind are below this. */
size_t owner_limit(const struct profile *p, enum owner_kind kind);

/* The owner of the samples of a thread (by index); not of OWNER_REQUEST. */
uint32_t owner_of_thread(const struct profile *p, enum owner_kind kind, uint32_t thread);

/*
 * The owner of the samples of an aggregate, of a profile that is by_thread, or by_request for
 * OWNER_REQUEST.
 */
uint32_t owner_of_aggregate(const struct profile *p, enum owner_kind kind,
			    const struct profile_aggregate *a);

/*
 * Append what it is called: "ruby (pid 42)" (see label_pid()), "worker (tid 43)", "worker * (3)",
 * "3f2a9c1b0d4e", "ruby 3.1.2". Never empty.
 */
void owner_label(const struct profile *p, enum owner_kind kind, uint32_t id, struct buf *out);

/*
 * The place of each owner that has a thread in the order of name, pid or tid, id: an array by id.
 * Returns 0 or -ENOMEM. *@ret: free().
 */
int owner_ranks(const struct profile *p, enum owner_kind kind, uint32_t **ret);

/*
 * Append a row for each owner that has selected samples to @flat, in no order; not of
 * OWNER_REQUEST. Returns 0 or -ENOMEM.
 */
int owner_rows(const struct profile *p, const struct view_selection *sel, enum owner_kind kind,
	       struct flat *flat);

#endif
