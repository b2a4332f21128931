/* SPDX-License-Identifier: GPL-2.0-only */
#include "profile/sample_parts.h"

#include "base/clock.h"

static uint64_t begin_of(const struct profile_sample *s)
{
	return s->ts > s->value ? s->ts - s->value : 0;
}

bool sample_part_within(const struct profile *p, struct profile_sample *s, uint64_t from,
			uint64_t to)
{
	uint64_t begin = begin_of(s), end = s->ts;

	if (!s->value || !profile_is_wait(p, s))
		return s->ts >= from && s->ts < to;
	if (begin < from)
		begin = from;
	if (end >= to) {
		end = to;
		s->ts = end - 1;
	}
	s->value = end > begin ? end - begin : 0;
	return s->value;
}

bool sample_part_before(const struct profile *p, struct profile_sample *s, uint64_t at,
			struct profile_sample *before)
{
	if (s->ts < at || begin_of(s) >= at || !profile_is_wait(p, s))
		return false;
	*before = *s;
	before->value = at - begin_of(s);
	before->ts = at - 1;
	s->value -= before->value;
	return true;
}

int sample_parts_in_cells(const struct profile *p, struct profile_sample s, uint32_t max,
			  const struct sample_cells *cells)
{
	struct profile_sample before;
	uint32_t n;
	int r = 0;

	for (n = 1; n < max && !r; n++) {
		if (!sample_part_before(p, &s, cells->end(cells->arg, begin_of(&s)), &before))
			break;
		r = cells->fn(cells->arg, &before);
	}
	/* One that ended just with a cell is of that one. */
	return r || (n > 1 && !s.value) ? r : cells->fn(cells->arg, &s);
}

struct by_second {
	uint64_t start;
	sample_fn *fn;
	void *arg;
};

static uint64_t second_end(void *arg, uint64_t at)
{
	const uint64_t start = ((const struct by_second *)arg)->start;
	const uint64_t next = at > start ? (at - start) / NSEC_PER_SEC + 1 : 1;

	return start + next * NSEC_PER_SEC;
}

static int take_part(void *arg, const struct profile_sample *part)
{
	const struct by_second *b = arg;

	return b->fn(b->arg, part);
}

int sample_parts_by_second(const struct profile *p, struct profile_sample s, uint32_t max,
			   sample_fn *fn, void *arg)
{
	struct by_second b = { .start = p->meta.start_monotonic_ns, .fn = fn, .arg = arg };
	const struct sample_cells cells = { .end = second_end, .fn = take_part, .arg = &b };

	return sample_parts_in_cells(p, s, max, &cells);
}

/* The first cut of @p that @s begins before and does not end before; 0: none. */
static uint64_t first_cut(const struct profile *p, const struct profile_sample *s)
{
	uint64_t first = 0;

	for (size_t i = 0; i < p->n_cuts; i++)
		if (p->cuts[i] > begin_of(s) && p->cuts[i] <= s->ts &&
		    (!first || p->cuts[i] < first))
			first = p->cuts[i];
	return first;
}

int sample_parts_between_cuts(const struct profile *p, struct profile_sample s, sample_fn *fn,
			      void *arg)
{
	struct profile_sample before;
	uint64_t cut;
	int r = 0;

	if (!first_cut(p, &s) || !profile_is_wait(p, &s))
		return fn(arg, &s);
	while (!r && (cut = first_cut(p, &s)) && sample_part_before(p, &s, cut, &before))
		r = fn(arg, &before);
	/* One that ended just at a cut is before it. */
	return r || !s.value ? r : fn(arg, &s);
}
