/* SPDX-License-Identifier: GPL-2.0-only */
/* Giving what a profile defines to a sink, with the strings that it names. */
#ifndef RBPF_PROFILE_COPY_H
#define RBPF_PROFILE_COPY_H

#include <stdint.h>

#include "profile/profile.h"
#include "profile/sink.h"

/* Each returns 0 or what an operation of @to failed with. */

/* *@id, a string of @p, becomes that of @to. */
int copy_string(const struct profile *p, struct sink *to, uint32_t *id);

/* Process @process of @p, with @parent, an id of @to or PROFILE_NONE; *@ret is its id there. */
int copy_process(const struct profile *p, uint32_t process, uint32_t parent, struct sink *to,
		 uint32_t *ret);

/* Frame @frame of @p, with its module; *@ret is its id in @to. */
int copy_frame(const struct profile *p, uint32_t frame, struct sink *to, uint32_t *ret);

#endif
