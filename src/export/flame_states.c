/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The hues are those of Okabe and Ito, which people who see no difference between red and green can
 * tell apart: running is vermilion and orange, the GVL purple, the network blue, files green.
 * States that are near in hue differ in lightness, and who has nothing to do is pale.
 */
#include "export/flame_states.h"

#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/number.h"
#include "export/flame_color.h"
#include "profile/profile.h"
#include "view/filter.h"

static const struct {
	struct hsl light, dark;
} colors[STATE_PARTS] = {
	[STATE_USER] = { { 18, 86, 66 }, { 16, 56, 42 } },
	[STATE_SYSTEM] = { { 40, 92, 62 }, { 34, 62, 32 } },
	[STATE_MINOR_FAULT] = { { 28, 60, 52 }, { 26, 50, 27 } },
	[STATE_WAIT_CPU] = { { 55, 82, 70 }, { 52, 58, 26 } },
	[STATE_THROTTLED] = { { 52, 46, 54 }, { 50, 32, 22 } },
	[STATE_GVL] = { { 326, 58, 66 }, { 326, 44, 41 } },
	[STATE_LOCK] = { { 278, 48, 78 }, { 278, 28, 46 } },
	[STATE_FAULT] = { { 142, 34, 74 }, { 142, 22, 33 } },
	[STATE_DISK] = { { 164, 50, 54 }, { 164, 44, 24 } },
	[STATE_NETWORK] = { { 203, 74, 66 }, { 205, 54, 36 } },
	[STATE_PIPE] = { { 186, 44, 80 }, { 186, 34, 30 } },
	[STATE_TIMER] = { { 228, 40, 84 }, { 228, 24, 42 } },
	[STATE_JOIN] = { { 250, 46, 74 }, { 250, 32, 37 } },
	[STATE_CHILD] = { { 222, 52, 70 }, { 222, 38, 36 } },
	[STATE_STOPPED] = { { 30, 12, 60 }, { 30, 8, 32 } },
	[STATE_OTHER] = { { 250, 14, 74 }, { 250, 12, 42 } },
	[STATE_IDLE] = { { 220, 8, 89 }, { 220, 6, 26 } },
	[STATE_PART_HELD] = { { 300, 36, 60 }, { 300, 36, 32 } },
};

_Static_assert(STATE_PARTS <= FLAME_MAX_CATEGORIES, "each has a category");

/* Of the aggregates of one profile. */
struct states_of {
	const struct profile *profile;
	struct view_selection *selection; /* owned, as is … */
	uint8_t *stacks;		  /* … this: state.h */
};

static void states_of_deinit(struct states_of *s)
{
	view_selection_free(s->selection);
	free(s->stacks);
}

static int states_of_init(const struct profile *p, const struct view_filter *f,
			  struct states_of *ret)
{
	*ret = (struct states_of) { .profile = p };
	return view_selection_new(p, f, &ret->selection) || state_of_stacks(p, &ret->stacks)
		       ? -ENOMEM
		       : 0;
}

/* The part that selected samples of @a are; STATE_PARTS of others. */
static unsigned int part_of(const struct states_of *s, const struct profile_aggregate *a)
{
	if (!view_selected(s->selection, a))
		return STATE_PARTS;
	return state_part(state_of(s->stacks, a->stack, a->flags));
}

int flame_states_init(const struct profile *p, const struct view_filter *f,
		      struct flame_colors *ret)
{
	struct states_of of;
	int r = states_of_init(p, f, &of);

	for (size_t i = 0; i < STATE_PARTS; i++) {
		buf_addstr(&ret->categories[i].name, state_part_word(i));
		ret->categories[i].about = state_part_text(i);
		ret->light[i] = colors[i].light;
		ret->dark[i] = colors[i].dark;
	}
	ret->n_categories = STATE_PARTS;
	for (size_t i = 0; !r && i < p->n_aggregates; i++) {
		const struct profile_aggregate *a = &p->aggregates[i];
		const unsigned int part = part_of(&of, a);

		if (part < STATE_PARTS)
			flame_category_add(&ret->categories[part], a->value, a->samples);
	}
	states_of_deinit(&of);
	return r;
}

/* Which parts selected samples are of, bits of @found, and the time in each. */
static int sum_parts(const struct profile *p, const struct view_filter *f, uint32_t *found,
		     uint64_t parts[STATE_PARTS])
{
	struct states_of of;
	int r = states_of_init(p, f, &of);

	for (size_t i = 0; !r && i < p->n_aggregates; i++) {
		const unsigned int part = part_of(&of, &p->aggregates[i]);

		if (part == STATE_PARTS)
			continue;
		*found |= 1u << part;
		profile_add(&parts[part], p->aggregates[i].value);
	}
	states_of_deinit(&of);
	return r;
}

int flame_states_differ(const struct profile *p, const struct view_filter *f)
{
	uint64_t parts[STATE_PARTS] = { 0 };
	uint32_t found = 0, waits;
	int r;

	if (!event_is_of_own_time(profile_event(p)->name) || !profile_has_waits(p))
		return 0;
	r = sum_parts(p, f, &found, parts);
	waits = found & ~(STATE_SET_CPU & STATE_SET_FREE);
	return r ? r : waits && found & (found - 1);
}

int flame_states_seen(const struct profile *p, const struct view_filter *f, double *ret)
{
	uint64_t parts[STATE_PARTS] = { 0 };
	uint32_t found = 0;
	int r = sum_parts(p, f, &found, parts);
	double all = 0;

	for (size_t i = 0; i < STATE_PARTS; i++)
		all += (double)parts[i];
	*ret = all > (double)parts[STATE_IDLE] ? 1 - (double)parts[STATE_IDLE] / all : 1;
	return r;
}

unsigned int flame_states_main(const uint64_t parts[STATE_PARTS])
{
	unsigned int most = 0;

	for (unsigned int i = 1; i < STATE_PARTS; i++)
		if (parts[i] > parts[most])
			most = i;
	return most;
}

static uint64_t sum_of(const uint64_t parts[STATE_PARTS])
{
	uint64_t sum = 0;

	for (size_t i = 0; i < STATE_PARTS; i++)
		sum += parts[i];
	return sum;
}

bool flame_states_is_one(const uint64_t parts[STATE_PARTS])
{
	return parts[flame_states_main(parts)] == sum_of(parts);
}

/* What people read at a glance; the rest of it is little. */
#define MAX_TOLD 4

void flame_states_add_title(const uint64_t parts[STATE_PARTS], struct buf *out)
{
	const uint64_t sum = sum_of(parts);
	uint64_t left[STATE_PARTS];
	const char *comma = "";

	for (size_t i = 0; i < STATE_PARTS; i++)
		left[i] = parts[i];
	buf_addstr(out, "\nstates: ");
	for (size_t i = 0; i < MAX_TOLD; i++) {
		const unsigned int most = flame_states_main(left);

		if (!left[most])
			return;
		buf_addstr(out, comma);
		buf_addstr(out, state_part_word(most));
		buf_addch(out, ' ');
		buf_addstr(out, num_percent_fine(left[most], sum).s);
		left[most] = 0;
		comma = ", ";
	}
	if (sum_of(left))
		buf_addstr(out, ", …");
}

void flame_states_add_data(const uint64_t parts[STATE_PARTS], struct buf *out)
{
	const char *before = " data-s=\"";

	for (size_t i = 0; i < STATE_PARTS; i++) {
		if (!parts[i])
			continue;
		buf_addstr(out, before);
		buf_add_u64(out, i);
		buf_addch(out, ':');
		buf_add_u64(out, parts[i]);
		before = ".";
	}
	buf_addch(out, '"');
}
