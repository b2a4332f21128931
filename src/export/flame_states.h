/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The colours of a flame graph that tells what threads did (FLAME_COLOR_STATE): categories are the
 * parts of all time (state.h), and a box is of the one that most of its time is in. Beside that
 * each box says how its time divides, so that the script can take a state out of the picture.
 */
#ifndef RBPF_EXPORT_FLAME_STATES_H
#define RBPF_EXPORT_FLAME_STATES_H

#include <stdbool.h>
#include <stdint.h>

#include "view/state.h"

struct buf;
struct flame_colors;
struct profile;
struct view_filter;

/* The categories of @ret, with the self times of selected samples. Returns 0 or -ENOMEM. */
int flame_states_init(const struct profile *p, const struct view_filter *f,
		      struct flame_colors *ret);

/*
 * Whether selected samples are of waits, and of more than one state: then colours by state say
 * more than others. Returns 1, 0 or -ENOMEM.
 */
int flame_states_differ(const struct profile *p, const struct view_filter *f);

/*
 * The part of the time of selected samples that the script shows at first: all but that of threads
 * that wait for something to do, which takes most of a server's picture and nobody asks about. 1:
 * there is none, or no other. Returns 0 or -ENOMEM.
 */
int flame_states_seen(const struct profile *p, const struct view_filter *f, double *ret);

/* The part with the most of @parts. */
unsigned int flame_states_main(const uint64_t parts[STATE_PARTS]);

/* Whether all is of one part. */
bool flame_states_is_one(const uint64_t parts[STATE_PARTS]);

/* Append what @parts are of all together, the most first: "\nstates: network 80.1%, gvl 19.9%". */
void flame_states_add_title(const uint64_t parts[STATE_PARTS], struct buf *out);

/* Append the same for the script, an attribute: " data-s=\"8:1200.4:300\"". */
void flame_states_add_data(const uint64_t parts[STATE_PARTS], struct buf *out);

#endif
