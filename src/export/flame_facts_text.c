/* SPDX-License-Identifier: GPL-2.0-only */
/* The facts in words. */
#include "export/flame_facts.h"

#include "base/number.h"
#include "profile/profile.h"
#include "view/filter.h"
#include "view/label.h"

void flame_facts_value(struct buf *out, uint32_t unit, uint64_t value)
{
	if (unit == UNIT_NS)
		buf_addstr(out, num_duration_fine(value).s);
	else
		buf_addstr(out, (unit == UNIT_BYTES ? num_bytes(value) : num_count(value)).s);
}

/* What is said of the mode; NULL where it is that of all pictures. */
static const char *stacks_shown(const struct flame_facts_text *t)
{
	switch (t->filter ? t->filter->stack : STACK_ALL) {
	case STACK_RUBY:
		return "Ruby frames only";
	case STACK_NATIVE:
		return "native frames only";
	case STACK_BOTH:
		return "Ruby and native frames side by side";
	default:
		return NULL;
	}
}

/* "application code only", "gems, stdlib hidden" */
static void add_hidden(uint32_t origins, struct buf *out)
{
	const char *comma = "";

	if ((origins | 1u << ORIGIN_APP) == (1u << ORIGIN_COUNT) - 1) {
		buf_addstr(out, "application code only");
		return;
	}
	for (size_t i = 0; i < ORIGIN_COUNT; i++) {
		if (!(origins & 1u << i))
			continue;
		buf_addf(out, "%s%s", comma, label_origin_word(i));
		comma = ", ";
	}
	buf_addstr(out, " hidden");
}

void flame_facts_tell(const struct flame_facts_text *t)
{
	const struct flame_facts *facts = t->facts;
	const struct profile_event *event = profile_event(t->profile);
	const char *stacks = stacks_shown(t);
	_cleanup_buf_ struct buf s = BUF_INIT;

	buf_addstr(&s, num_duration_fine(facts->duration_ns).s);
	t->piece(t->arg, &s);
	buf_addstr(&s, num_of(facts->n_processes, "process", "processes").s);
	t->piece(t->arg, &s);
	buf_addstr(&s, num_of(facts->n_threads, "thread", "threads").s);
	t->piece(t->arg, &s);
	buf_addstr(&s, num_count(facts->samples).s);
	if (facts->samples != facts->all_samples) {
		buf_addstr(&s, " of ");
		buf_addstr(&s, num_count(facts->all_samples).s);
	}
	buf_addstr(&s, facts->all_samples == 1 ? " sample" : " samples");
	if (t->profile->meta.frequency && event_is_cpu(event))
		buf_addf(&s, " at %s",
			 num_frequency(t->profile->totals.lowest_hz, t->profile->meta.frequency).s);
	t->piece(t->arg, &s);
	if (facts->value) {
		flame_facts_value(&s, event->unit, facts->value);
		buf_addf(&s, " %s", event_is_cpu(event) ? "CPU time" : "in all");
		t->piece(t->arg, &s);
	}
	if (facts->rubies.len) {
		buf_addf(&s, "Ruby %s", buf_str(&facts->rubies));
		t->piece(t->arg, &s);
	}
	if (stacks) {
		buf_addstr(&s, stacks);
		t->piece(t->arg, &s);
	}
	if (t->filter && t->filter->no_gc) {
		buf_addstr(&s, "without GC");
		t->piece(t->arg, &s);
	}
	if (t->filter && t->filter->hide) {
		add_hidden(t->filter->hide, &s);
		t->piece(t->arg, &s);
	}
}

/* "3 samples truncated (0.02%)"; nothing if there are none. */
static void add_defect(const struct flame_facts_text *t, uint64_t n, const char *what)
{
	_cleanup_buf_ struct buf s = BUF_INIT;

	if (!n)
		return;
	buf_addstr(&s, num_of(n, "sample", "samples").s);
	buf_addf(&s, " %s (", what);
	buf_addstr(&s, num_percent_fine(n, t->facts->samples).s);
	buf_addch(&s, ')');
	t->piece(t->arg, &s);
}

void flame_facts_tell_defects(const struct flame_facts_text *t)
{
	_cleanup_buf_ struct buf s = BUF_INIT;

	if (!t->profile->complete) {
		buf_addstr(&s, "recording was interrupted");
		t->piece(t->arg, &s);
	}
	if (t->profile->totals.lost) {
		buf_addstr(&s, num_of(t->profile->totals.lost, "sample lost", "samples lost").s);
		t->piece(t->arg, &s);
	}
	add_defect(t, t->facts->truncated, "cut at the depth limit");
	add_defect(t, t->facts->unresolved, "with unnamed frames");
	add_defect(t, t->facts->failed, "whose Ruby stack could not be read");
	add_defect(t, t->facts->frameless, "without any frame");
	add_defect(t, t->facts->gc_unknown, "that may be GC, as it is not known who collects");
	if (!t->filter || t->filter->stack != STACK_RUBY)
		add_defect(t, t->facts->gaps, "with gaps in the native stack");
}

void flame_facts_programs(const struct profile *p, const struct flame_facts *facts, struct buf *out)
{
	if (facts->n_processes > 1 && facts->n_programs == 1)
		buf_addf(out, "%zu × ", facts->n_processes);
	buf_addstr(out, buf_str(&facts->programs));
	if (facts->n_processes == 1)
		buf_addf(out, " (pid %u)", p->processes[facts->process].pid);
}
