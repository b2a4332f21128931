/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Who fills a sink keeps ids that it returned. A sink that drops what nobody needs any more asks
 * for them, and changes them where they are.
 */
#ifndef RBPF_PROFILE_ID_HOLDER_H
#define RBPF_PROFILE_ID_HOLDER_H

#include <stdint.h>

enum id_kind { ID_STRING, ID_PROCESS, ID_THREAD, ID_FRAME, ID_STACK, ID_REQUEST, ID_KINDS };

/* Called with each id that is held, of which it may make another. */
typedef void id_fn(void *arg, enum id_kind kind, uint32_t *id);

/* @each calls @fn for all ids of @holder; an id that is PROFILE_NONE may be among them. */
struct id_holder {
	void (*each)(void *holder, id_fn *fn, void *arg);
	void *holder;
};

#endif
