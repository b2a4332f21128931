/* SPDX-License-Identifier: GPL-2.0-only */
#include "ui/summary.h"

#include <inttypes.h>

#include "base/buf.h"
#include "base/clock.h"
#include "profile/profile.h"

/* Above this share of failed samples the summary says so in a line of its own. */
#define FAILED_PERCENT_TOLD 5

/* So far may samples be from the kernel's account: summary_cpu_differs(). */
#define CPU_PERCENT_APART   5
#define CPU_DEVIATIONS	    3

/* A recording of at least this length, of threads that used less CPU time, is mostly of waiting. */
#define WAITED_NS	    NSEC_PER_SEC
#define WAITED_PERCENT_USED 10

struct num_text num_value(enum value_unit unit, uint64_t value)
{
	switch (unit) {
	case UNIT_NS:
		return num_duration(value);
	case UNIT_BYTES:
		return num_bytes(value);
	default:
		return num_count(value);
	}
}

struct num_text num_column(enum value_unit unit, uint64_t value)
{
	return unit == UNIT_NS ? num_seconds(value) : num_value(unit, value);
}

/* Of the CPU time that was sampled. What was measured is told apart from what could not be. */
static void add_gc(const struct profile_totals *t, struct buf *out)
{
	if (!t->gc_ns && !t->gc_unknown_ns)
		return;
	if (!t->gc_ns && t->gc_unknown_ns >= t->cpu_sampled_ns) {
		buf_addstr(out, "   GC unknown");
		return;
	}
	buf_addf(out, "   GC %s", num_percent(t->gc_ns, t->cpu_sampled_ns).s);
	if (t->gc_unknown_ns)
		buf_addf(out, ", unknown of %s",
			 num_percent(t->gc_unknown_ns, t->cpu_sampled_ns).s);
}

/*
 * In "A of B (p%)" B is measured and A estimated from samples: p is above 100 % now and then, and
 * that is not hidden. Where nothing was sampled B is 0, too, or unknown.
 */
static void add_cpu(const struct profile_totals *t, const char *between, struct buf *out)
{
	buf_addf(out, "%s%s", num_duration(t->cpu_sampled_ns).s, between);
	if (t->cpu_kernel_ns)
		buf_addf(out, " of %s by the kernel's account (%s)",
			 num_duration(t->cpu_kernel_ns).s,
			 num_percent(t->cpu_sampled_ns, t->cpu_kernel_ns).s);
	else if (t->cpu_sampled_ns)
		buf_addstr(out, "; the kernel's account is not in the recording");
	add_gc(t, out);
}

static void add_share_of_core(uint64_t ns, uint64_t duration_ns, struct buf *out)
{
	if (duration_ns)
		buf_addf(out, " (%s of one core)", num_percent(ns, duration_ns).s);
}

/* What @n that took @ns cost each, after what stands in the line already. */
static void add_each(uint64_t ns, uint64_t n, struct num_text of, const char *more, struct buf *out)
{
	if (n)
		buf_addf(out, "   %s at each of %s%s", num_duration_fine(ns / n).s, of.s, more);
}

/* Waits have a line of their own: threads are switched and woken much more often than clocks tick.
 */
static void add_kernel_cost(const struct profile_totals *t, uint64_t duration_ns, struct buf *out)
{
	if (!t->kernel_ns_per_sample && !t->other_ticks && !t->bpf_ns)
		return;
	buf_addstr(out, "  kernel ");
	if (t->bpf_ns) {
		buf_addf(out, "   %s", num_duration(t->bpf_ns).s);
		add_share_of_core(t->bpf_ns, duration_ns, out);
	}
	if (t->kernel_ns_per_sample)
		buf_addf(out, "   %s a sample%s", num_duration(t->kernel_ns_per_sample).s,
			 t->switches ? " of CPU time" : "");
	if (!t->bpf_ns && !t->other_ticks)
		buf_addstr(out, "; what else it takes is not known without CAP_SYS_ADMIN or "
				"kernel.bpf_stats_enabled=1");
	add_each(t->other_ticks_ns, t->other_ticks, num_of(t->other_ticks, "tick", "ticks"),
		 " that made no sample", out);
	buf_addch(out, '\n');
	if (!t->switches && !t->wakeups)
		return;
	buf_addstr(out, "  waits  ");
	add_each(t->switches_ns, t->switches, num_of(t->switches, "switch", "switches"),
		 " of threads", out);
	add_each(t->wakeups_ns, t->wakeups, num_of(t->wakeups, "wake-up", "wake-ups"), "", out);
	buf_addch(out, '\n');
}

static void add_lowered(const struct profile_totals *t, uint32_t frequency, struct buf *out)
{
	if (t->lowered_ns)
		buf_addf(out,
			 "  fewer samples for %s, down to %s: at %" PRIu32
			 " Hz they cost this busy machine more than --max-cost\n",
			 num_duration(t->lowered_ns).s, num_frequency(0, t->lowest_hz).s,
			 frequency);
}

static void add_cost(const struct profile_totals *t, uint64_t duration_ns, struct buf *out)
{
	uint64_t start_ns = t->rbpf_start_cpu_ns, sampling_ns;

	sampling_ns = t->rbpf_cpu_ns > start_ns ? t->rbpf_cpu_ns - start_ns : 0;
	buf_addf(out, "  overhead  rbpf %s", num_duration(sampling_ns).s);
	add_share_of_core(sampling_ns, duration_ns, out);
	if (start_ns)
		buf_addf(out, "   %s to start", num_duration(start_ns).s);
	buf_addch(out, '\n');
	add_kernel_cost(t, duration_ns, out);
}

/* Above this share of what the CPUs of the machine had to do it is told what was stolen of it. */
#define STOLEN_PERCENT_TOLD 1

static bool much_stolen(const struct profile_totals *t)
{
	const uint64_t all = t->machine_busy_ns + t->machine_stolen_ns;

	return t->machine_stolen_ns > all / 100 * STOLEN_PERCENT_TOLD;
}

static void add_stolen(const struct profile_totals *t, struct buf *out)
{
	const uint64_t all = t->machine_busy_ns + t->machine_stolen_ns;

	if (!much_stolen(t))
		return;
	buf_addf(
		out,
		"  %s of CPU time was taken by the hypervisor (steal), %s of what the CPUs of this "
		"machine had to do: clocks lose ticks in it, or count it\n",
		num_duration(t->machine_stolen_ns).s, num_percent(t->machine_stolen_ns, all).s);
}

/* How far the samples are from the kernel's account. */
static uint64_t cpu_apart_ns(const struct profile_totals *t)
{
	return t->cpu_sampled_ns > t->cpu_kernel_ns ? t->cpu_sampled_ns - t->cpu_kernel_ns
						    : t->cpu_kernel_ns - t->cpu_sampled_ns;
}

static double lowest_hz(const struct profile_totals *t, uint32_t frequency)
{
	return (double)(t->lowest_hz && t->lowest_hz < frequency ? t->lowest_hz : frequency);
}

bool summary_cpu_differs(const struct profile_totals *t, uint32_t frequency)
{
	const double per_ns = lowest_hz(t, frequency) / NSEC_PER_SEC;
	/* Samples: that there should be, and that there are too many, or are missing. */
	const double expected = (double)t->cpu_kernel_ns * per_ns;
	const double apart = (double)cpu_apart_ns(t) * per_ns;
	const double got = (double)t->cpu_sampled_ns * per_ns;

	/*
	 * If chance places the samples, the root of their number is its standard deviation; here
	 * both are squared. Clocks of threads do better than chance. Of a program that used hardly
	 * any CPU time there should be less than one.
	 */
	return apart > expected * CPU_PERCENT_APART / 100 &&
	       apart * apart >
		       CPU_DEVIATIONS * CPU_DEVIATIONS * (got > expected ? got : expected) &&
	       expected > 0;
}

/* Why there are too few samples: what is known to have happened comes before what is likely. */
static const char *why_too_few(const struct profile_totals *t, uint32_t frequency)
{
	const double missing = (double)cpu_apart_ns(t) * lowest_hz(t, frequency) / NSEC_PER_SEC;

	if ((double)t->lost > missing / 2)
		return "for samples were lost: 'rbpf report --info' says why";
	if (much_stolen(t))
		return "for clock ticks are lost in what the hypervisor takes";
	return "probably that of switching threads that run for less than 1 ms at a time, in which "
	       "no clock ticks; 'rbpf report --states' of a --mode states recording has all of it";
}

/* … or too many. */
static const char *why_too_many(const struct profile_totals *t)
{
	if (much_stolen(t))
		return "probably as clocks run on while the hypervisor has the CPU";
	return "what begins and ends many times a second, or works at the rate of the clock, can "
	       "be sampled too often; compare with another -F";
}

static void warn_cpu_differs(const struct profile_totals *t, uint32_t frequency, struct buf *out)
{
	const struct num_text apart = num_percent(cpu_apart_ns(t), t->cpu_kernel_ns);

	if (!summary_cpu_differs(t, frequency))
		return;
	if (t->cpu_sampled_ns < t->cpu_kernel_ns)
		buf_addf(out, "  warning: %s of the CPU time was not sampled, %s\n", apart.s,
			 why_too_few(t, frequency));
	else
		buf_addf(out,
			 "  warning: the samples stand for %s more CPU time than was used: %s\n",
			 apart.s, why_too_many(t));
}

/* Of a program that mostly waits, samples of CPU time tell little of where its time goes. */
static void hint_at_waits(const struct profile_totals *t, const struct summary_recording *recording,
			  struct buf *out)
{
	const uint64_t used = t->cpu_kernel_ns ? t->cpu_kernel_ns : t->cpu_sampled_ns;

	if (recording->waits || recording->duration_ns < WAITED_NS ||
	    used >= recording->duration_ns / 100 * WAITED_PERCENT_USED)
		return;
	buf_addf(out,
		 "  mostly waiting: all threads together used %s of one core; 'rbpf record "
		 "--mode states' records what they wait for\n",
		 num_percent(used, recording->duration_ns).s);
}

/* What is missing or uncertain for another reason than samples that were lost. */
static void add_counters(const struct profile_totals *t, struct buf *out)
{
	const struct profile_counter_info *c;
	int i;

	for (i = 0; i < COUNTER_COUNT; i++) {
		c = &profile_counters[i];
		if (profile_counter_matters(t, i))
			buf_addf(out, "  %s %s\n", num_of(t->counters[i], c->one, c->many).s,
				 c->text);
	}
}

void summary_totals(const struct profile_totals *t, const struct summary_recording *recording,
		    struct buf *out)
{
	uint64_t ruby = t->samples - t->failed - t->no_ruby;
	uint64_t no_ruby = t->no_ruby > t->not_recorded ? t->no_ruby - t->not_recorded : 0;

	if (t->failed + t->no_ruby > t->samples)
		ruby = 0; /* totals of a damaged recording */
	buf_addf(out, "  samples   %-9s Ruby %s   no Ruby %s   walk failed %s",
		 num_count(t->samples).s, num_percent(ruby, t->samples).s,
		 num_percent(no_ruby, t->samples).s, num_percent(t->failed, t->samples).s);
	if (t->not_recorded)
		buf_addf(out, "   wakers not recorded %s",
			 num_percent(t->not_recorded, t->samples).s);
	buf_addch(out, '\n');
	if (t->native_samples)
		buf_addf(out, "  native    %-9s complete %s\n", num_count(t->native_samples).s,
			 num_percent(t->native_samples > t->native_gaps
					     ? t->native_samples - t->native_gaps
					     : 0,
				     t->native_samples)
				 .s);
	buf_addf(out, "  lost      %-9s truncated stacks %s   unresolved %s\n",
		 num_count(t->lost).s, num_count(t->truncated).s, num_count(t->unresolved).s);
	buf_addstr(out, "  cpu       ");
	add_cpu(t, " sampled", out);
	buf_addch(out, '\n');
	add_cost(t, recording->duration_ns, out);
	add_lowered(t, recording->frequency, out);
	warn_cpu_differs(t, recording->frequency, out);
	hint_at_waits(t, recording, out);
	if (t->failed * 100 > t->samples * FAILED_PERCENT_TOLD)
		buf_addf(out,
			 "  %s of the samples have no Ruby stack because the walk failed: "
			 "'rbpf doctor -p PID' says more\n",
			 num_percent(t->failed, t->samples).s);
	add_stolen(t, out);
	if (t->gc_unknown_ns)
		buf_addstr(out, "  GC is unknown where it is not known who collects: "
				"'rbpf doctor -p PID' says more\n");
	add_counters(t, out);
}

void summary_defects(const struct profile_totals *t, const struct summary_recording *recording,
		     struct buf *out)
{
	buf_addf(out, "  lost %s, truncated %s, unresolved %s, failed %s (%s of samples)\n",
		 num_count(t->lost).s, num_count(t->truncated).s, num_count(t->unresolved).s,
		 num_count(t->failed).s, num_percent(t->failed, t->samples).s);
	buf_addstr(out, "  cpu sampled ");
	add_cpu(t, "", out);
	buf_addch(out, '\n');
	warn_cpu_differs(t, recording->frequency, out);
	add_stolen(t, out);
	add_counters(t, out);
}
