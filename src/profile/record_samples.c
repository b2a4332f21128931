/* SPDX-License-Identifier: GPL-2.0-only */
#include "profile/record_samples.h"

#include <errno.h>

#include "profile/record_decoder.h"
#include "profile/sample_parts.h"

/* With too many aggregates it is damaged, as a file with a wrong id is. */
static int too_many(int r)
{
	return r == -E2BIG ? -EBADMSG : r;
}

int record_samples_flush(struct record_decoder *d)
{
	int r = aggregate_add_batch(&d->aggregates, d->profile, d->batch, d->n_batch);

	d->n_batch = 0;
	return too_many(r);
}

/*
 * A sample ends at its time, and began that long before. The CPU time of one (@is_cpu) may have
 * been used between waits, or before them: it says when the thread began only if nothing else does.
 */
static void note_thread(struct profile *p, const struct profile_sample *s, bool is_cpu)
{
	struct profile_thread *t = &p->threads[s->thread];
	uint64_t begin = s->ts > s->value ? s->ts - s->value : 0;

	if (!t->last_ns || (begin < t->first_ns && !is_cpu))
		t->first_ns = begin;
	if (s->ts > t->last_ns)
		t->last_ns = s->ts;
	if (s->flags & SAMPLE_BEFORE)
		t->began_before = s->stack;
	if (s->flags & SAMPLE_AFTER)
		t->went_on = s->stack;
}

/* The event that samples of @event are taken for. */
static uint16_t event_of(const struct record_decoder *d, uint16_t event)
{
	return d->in_sum[event] ? (uint16_t)d->event : event;
}

/* Give @recorded to who takes samples, if it is selected: nothing else is asked of this reading. */
static int give_sample(const struct record_decoder *d, const struct profile_sample *recorded)
{
	struct profile_sample s = *recorded;

	s.event = event_of(d, s.event);
	if (s.event != d->event && !d->is_caused[s.event] && !d->take_all)
		return 0;
	return d->take(d->take_arg, &s);
}

/* @recorded is of the times that are selected. */
static int take_sample(void *arg, const struct profile_sample *recorded)
{
	struct record_decoder *d = arg;
	struct profile_sample *s = &d->batch[d->n_batch];
	struct profile *p = d->profile;
	bool of_event;
	int r = 0;

	if (d->take)
		return give_sample(d, recorded);
	*s = *recorded;
	s->event = event_of(d, s->event);
	of_event = s->event == d->event;
	p->n_in_time++;
	if (of_event && d->in_ns) {
		r = profile_note_late(p, s, p->threads[s->thread].last_ns);
		note_thread(p, s, d->is_cpu[recorded->event]);
	}
	if (r)
		return r;
	if (of_event || d->is_caused[s->event] || p->by_event)
		r = ++d->n_batch == AGGREGATE_BATCH ? record_samples_flush(d) : 0;
	if (!r && d->keep_samples && (d->all_events || of_event || d->is_caused[s->event]))
		r = profile_keep_sample(p, s);
	return r;
}

/* Of whatever event and time. */
static void note_sample(struct record_decoder *d, const struct profile_sample *recorded)
{
	profile_count_sample(&d->totals, recorded, d->is_cpu[recorded->event]);
	if (recorded->flags & SAMPLE_NO_RUBY &&
	    profile_stack_not_recorded(d->profile, recorded->stack))
		d->totals.not_recorded++;
	if (event_of(d, recorded->event) == d->event)
		profile_note_sample(d->profile, recorded);
}

/* @s: what is selected of @recorded, if @in_time. */
static void note_request(struct record_decoder *d, const struct profile_sample *recorded,
			 const struct profile_sample *s, bool in_time)
{
	/* What is of none bounds the requests around it. */
	if (recorded->request || d->profile->by_request)
		profile_note_request(d->profile, in_time ? s : recorded,
				     event_of(d, recorded->event) == d->event, in_time);
}

/* The same where wakeups are selected. Returns 1 if it is put off, 0 or -ENOMEM. */
static int note_waker(struct record_decoder *d, const struct profile_sample *recorded,
		      const struct profile_sample *s, bool in_time)
{
	int r;

	if (d->is_wait[recorded->event])
		return wakeups_note_wait(&d->wakeups, d->profile, recorded, in_time ? s->value : 0);
	if (recorded->event != d->event || !in_time)
		return 0;
	r = wakeups_note(&d->wakeups, d->profile, s);
	return r ? r : wait_set_any(&d->wakeups.reasons);
}

/* @recorded is a sample of a wait, of which @s is selected if @in_time. */
static int note_length(struct record_decoder *d, const struct profile_sample *recorded,
		       const struct profile_sample *s, bool in_time)
{
	struct profile_sample selected = *s;

	selected.event = event_of(d, s->event);
	return wait_lengths_note(&d->waits, d->profile, recorded, in_time ? &selected : NULL);
}

int record_samples_take_wait(void *arg, const struct profile_sample *wait)
{
	struct record_decoder *d = arg;
	int r;

	if (d->take_wait)
		return d->take_wait(d->take_arg, wait);
	r = too_many(aggregate_add_length(&d->aggregates, d->profile, wait));
	return r || !d->keep_waits ? r : profile_keep_wait(d->profile, wait);
}

int record_samples_add(struct record_decoder *d, const struct profile_sample *recorded)
{
	struct profile_sample s = *recorded;
	struct profile *p = d->profile;
	bool in_time = true;
	int r = 0;

	if (d->from_ts || d->to_ts != UINT64_MAX)
		in_time = sample_part_within(p, &s, d->from_ts, d->to_ts);
	if (d->take_wait)
		return d->is_wait[recorded->event] ? note_length(d, recorded, &s, in_time) : 0;
	if (!d->take) {
		note_sample(d, recorded);
		if (d->of_wakeups)
			r = note_waker(d, recorded, &s, in_time);
		if (!r)
			note_request(d, recorded, &s, in_time);
		if (!r && p->with_lengths && d->is_wait[recorded->event])
			r = note_length(d, recorded, &s, in_time);
	}
	if (r || !in_time)
		return r < 0 ? r : 0;
	return p->n_cuts ? sample_parts_between_cuts(p, s, take_sample, d) : take_sample(d, &s);
}

int record_samples_end(struct record_decoder *d)
{
	return wait_lengths_end(&d->waits);
}

int record_samples_add_wakeups(struct record_decoder *d)
{
	int r = 0;

	wakeups_choose(&d->wakeups, d->profile);
	for (size_t i = 0; i < d->wakeups.n_samples && !r; i++) {
		const struct profile_sample *s = &d->wakeups.samples[i];

		note_request(d, s, s, true);
		r = take_sample(d, s);
	}
	return r ? r : record_samples_flush(d);
}
