/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The data model of a recording: the waist of rbpf. What stands before it (engines, symbols)
 * ends in a struct sink (sink.h), what stands after it (views, exports) starts from a struct
 * profile (of reader.h or profile_sink.h). It needs no root, no libbpf and no libelf.
 *
 * Everything is an array indexed by a dense id. Stacks are a prefix tree: a stack is its
 * innermost frame and the stack of its callers; id 0 is the empty stack. Strings are interned,
 * valid UTF-8 without control characters; id 0 is "".
 */
#ifndef RBPF_PROFILE_PROFILE_H
#define RBPF_PROFILE_PROFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/intern.h"
#include "profile/counters.h"
#include "profile/kept_sources.h"
#include "profile/span_mark.h"
#include "profile/time_cut.h"

/*
 * Stored in the file: add at the end, never renumber.
 *
 * Upon the stack that caused a garbage collection stands a FRAME_GC for REASON_GC, and upon that,
 * if it is known, another for what the collector did (reason.h).
 */
enum frame_kind {
	FRAME_RUBY = 0,	     /* a method, block, class body … written in Ruby */
	FRAME_CFUNC = 1,     /* a method written in C; file and line are its Ruby caller's */
	FRAME_NATIVE = 2,    /* a native function; or in place of a Ruby stack (reason.h) */
	FRAME_KERNEL = 3,    /* kernel code */
	FRAME_GC = 4,	     /* garbage collection */
	FRAME_TRUNCATED = 5, /* stands for frames that were cut; its name says how many */
	FRAME_UNKNOWN = 6,   /* a Ruby frame that could not be named; when read from a file, also a
			      * frame of a kind that only a newer rbpf knows */
	FRAME_FIBER = 7,     /* "[fiber]": stands between a fiber and the one that resumed it */
	FRAME_GAP = 8,	     /* native frames are missing here; its reason says why */
	FRAME_WAIT = 9,	     /* stands upon a stack that waited; its reason says what for */
	/* The last one is not stored: in the file it is FRAME_NATIVE, and its reason tells it. */
	FRAME_NOT_RECORDED = 10, /* in place of the stack of who ended a wait and is not recorded */
	FRAME_KIND_COUNT,
};

/* The word used in machine output ("ruby", "cfunc", …); "unknown" for other values. */
const char *frame_kind_name(enum frame_kind kind);

/* The unit of values. Stored in the file by name. */
enum value_unit {
	UNIT_NS,
	UNIT_BYTES,
	UNIT_OBJECTS,
	UNIT_COUNT, /* of whatever the event is; when read from a file, also a unit that only a
		     * newer rbpf knows */
	VALUE_UNITS,
};

/* "ns", "bytes", "objects", "count". */
const char *value_unit_name(enum value_unit unit);

/* An event: what samples are taken of. A recording has one or more; each sample is of one. */
#define EVENT_MAX_NAME 32 /* with its NUL */
struct profile_event {
	char name[EVENT_MAX_NAME]; /* of a-z, 0-9, '-', '_'; "cpu": CPU time, in ns */
	uint32_t unit;		   /* enum value_unit */
	uint64_t period; /* mean value of a sample; 0: values are exact, each sample has its own */
};

#define EVENT_CPU    "cpu"
#define EVENT_WAIT   "wait"	   /* time off the CPU, in ns */
#define EVENT_GVL    "gvl-caused"  /* how long others waited for the GVL that a thread had, in ns */
#define EVENT_LOCK   "lock-caused" /* the same of a Mutex or a Monitor */
#define EVENT_WAKEUP "wakeup"	   /* how long those waited that a thread woke, in ns */
/*
 * What a reader can select in place of an event of the recording: CPU time and waits added up, all
 * the time that threads had; what others waited for the GVL and for other locks.
 */
#define EVENT_WALL   "wall"
#define EVENT_CAUSED "caused"
bool event_is_cpu(const struct profile_event *event);
/*
 * Whether samples of the event with this name are of time that their own thread had, and so tell
 * its state. Of EVENT_GVL, EVENT_LOCK, EVENT_CAUSED and EVENT_WAKEUP it is others that waited.
 */
bool event_is_of_own_time(const char *name);

/* Whether samples of both can be compared: of one name, in one unit. */
bool event_is_same(const struct profile_event *a, const struct profile_event *b);

/* Whether its samples are of what others waited meanwhile. */
bool event_is_charged(const char *name);
/* Whether there is a sample of all that happened, so that sums of values are no estimates. */
bool event_is_exact(const struct profile_event *event);
/*
 * Whether a sample lasts as long as what it is of, as a wait does, so that the number of samples is
 * no measure of time: events in ns without a period, and EVENT_WALL.
 */
bool event_has_durations(const struct profile_event *event);

struct profile_process {
	uint32_t pid;	       /* as rbpf's pid namespace sees it */
	uint32_t parent;       /* process id (index), always below this one's own; PROFILE_NONE if
				* none is in the recording */
	uint64_t start_ticks;  /* /proc/PID/stat field 22: with pid, the identity of a process */
	uint32_t exe;	       /* string */
	uint32_t cmdline;      /* string, arguments joined by spaces */
	uint32_t ruby_version; /* string, "3.1.2"; "" if it is not (yet) known to be a Ruby */
	uint32_t cgroup;       /* string, path of its control group; "" if unknown */
	uint32_t container;    /* string, id or name; "" if it is in none that is known */
	uint32_t attributes;   /* string that it publishes (base/attributes.h); "" if it does not */
	uint32_t ns_pid;       /* in its own pid namespace; 0 if unknown */
	uint32_t uid;	       /* real, in rbpf's user namespace; PROFILE_NONE if unknown */
	bool exited;
	int exit_status;  /* as wait(2) gives it; valid if exited and known, else -1 */
	uint64_t exit_ts; /* ns, CLOCK_MONOTONIC; valid if exited */
};

struct profile_thread {
	uint32_t process; /* process id */
	uint32_t tid;
	uint32_t name;	 /* string; the last name it had */
	uint64_t cpu_ns; /* CPU time while recorded, by the kernel's account; 0 if unknown */
	bool cpu_known;
	uint64_t samples; /* how many of those that were selected (reader.h) */
	/*
	 * When it was first and last seen in these: ns, CLOCK_MONOTONIC; of an event in ns only,
	 * else 0.
	 */
	uint64_t first_ns, last_ns;
	/* Stacks of its waits with SAMPLE_BEFORE and SAMPLE_AFTER in these; 0: none. */
	uint32_t began_before, went_on;
	/* The latest of its samples that profile_note_request() got: when, and of which request. */
	uint64_t noted_ts; /* ns, CLOCK_MONOTONIC; 0 if there was none */
	uint32_t noted_request;
};

/*
 * Frame flag: compiled (JIT) code had not saved the line of execution when the sample was taken. It
 * is that of an earlier instruction of the same method, or the method's first one.
 */
#define FRAME_LINE_APPROXIMATE (1u << 0)
/*
 * Frame flag: a native frame by which the VM interprets and calls what the Ruby frames next to it
 * tell already, or that is the C function of the FRAME_CFUNC right outside of it.
 */
#define FRAME_INTERNAL	       (1u << 1)
/* Frame flags of a Ruby frame: code that this compiler made ran it. */
#define FRAME_YJIT	       (1u << 2)
#define FRAME_ZJIT	       (1u << 3)
#define FRAME_JIT	       (FRAME_YJIT | FRAME_ZJIT)
/* Frame flag: a native function that was inlined into its caller. */
#define FRAME_INLINED	       (1u << 4)

struct profile_frame {
	uint32_t kind;	    /* enum frame_kind */
	uint32_t name;	    /* string: the label, as Ruby 3.4 prints it, but see raw_name */
	uint32_t file;	    /* string: path as Ruby shows it; "" if none */
	uint32_t line;	    /* line of execution; 0 if there is none */
	uint32_t func_line; /* line of the definition; 0 if unknown. (kind, name, file, func_line)
			     * identify a function; frames that differ by line only are of one */
	uint32_t module;    /* module id, PROFILE_NONE if none */
	uint64_t address;   /* relative to the module; 0 for Ruby frames */
	uint32_t flags;	    /* FRAME_LINE_APPROXIMATE … FRAME_INLINED */
	uint32_t reason;    /* enum frame_reason (reason.h): why it is no function */
	uint32_t raw_name;  /* string: what is recorded, if name is made from it to be the same in
			     * all processes (frame_label.h); else 0. To a sink always 0 */
	uint32_t unused;    /* 0: frames are compared as bytes */
};

struct profile_module {
	uint32_t path;	   /* string */
	uint32_t build_id; /* string, hex */
};

struct profile_stack {
	uint32_t parent; /* stack id of the callers; always below this stack's own id */
	uint32_t frame;	 /* frame id of the innermost frame; PROFILE_NONE in the empty stack */
};

/* Sample flags; those of a file are others (sample_flags.h). */
#define SAMPLE_KERNEL	  (1u << 0) /* the tick hit kernel mode */
#define SAMPLE_TRUNCATED  (1u << 1) /* the stack holds a FRAME_TRUNCATED */
#define SAMPLE_UNRESOLVED (1u << 2) /* the stack holds a FRAME_UNKNOWN */
#define SAMPLE_NO_RUBY	  (1u << 3) /* no Ruby stack: the thread or the process has none (now) */
#define SAMPLE_FAILED	  (1u << 4) /* there should have been a Ruby stack, but the walk failed */
#define SAMPLE_GC	  (1u << 5) /* the thread was collecting garbage */
#define SAMPLE_NATIVE	  (1u << 6) /* the native stack was walked, too … */
#define SAMPLE_GAP	  (1u << 7) /* … but holds a FRAME_GAP */
/* Whether it was collecting garbage is not known: the collector of its Ruby is not. */
#define SAMPLE_GC_UNKNOWN (1u << 8)

/* With SAMPLE_KERNEL: it handled a page fault. No sample of older recordings has it. */
#define SAMPLE_PAGE_FAULT (1u << 9)

#define SAMPLE_FLAGS	  0x3ffu /* all of these; a newer rbpf may have written others */
/*
 * Of a wait that began before it was recorded, or went on after that. They are no part of
 * SAMPLE_FLAGS, for aggregates do not tell such samples from others.
 */
#define SAMPLE_BEFORE	  (1u << 10)
#define SAMPLE_AFTER	  (1u << 11)

/*
 * A request that a thread served, or a job that it ran: from its first sample to its last one, of
 * CPU time and of waits. A wait tells exactly how long the request was there, a tick of the
 * thread's clock to a period.
 */
struct profile_request {
	uint32_t thread;   /* thread id */
	uint32_t kind;	   /* of it */
	uint64_t first_ts; /* ns, CLOCK_MONOTONIC: first tick, or when the first wait began */
	uint64_t last_ts;  /* of its last sample; both 0 if it has none */
	/*
	 * When the sample of its thread before it ended, and when the one after it began: the
	 * request was there for no longer than between these. 0 if there is no such sample.
	 */
	uint64_t after_ts, until_ts;
	uint64_t samples; /* of the event of the profile, that were selected (reader.h) */
	uint64_t value;	  /* sum of theirs */
	bool first_waits, last_waits; /* the first and the last sample are of waits */
};

/* All requests with one name. Equal kinds have one id; id 0 is that of no request. */
struct profile_request_kind {
	uint32_t framework; /* string, such as "rails"; "" if unknown */
	uint32_t name;	    /* string, such as "OrdersController#index"; "" if unknown */
};

/*
 * A span of a trace of OpenTelemetry, by its ids as W3C Trace Context has them. Equal spans have
 * one id; id 0 is that of no span.
 */
struct profile_span {
	uint8_t trace_id[16];
	uint8_t span_id[8];
};

struct profile_sample {
	uint64_t ts;	 /* ns, CLOCK_MONOTONIC */
	uint64_t value;	 /* that this sample stands for, in the unit of its event */
	uint32_t thread; /* thread id */
	uint32_t stack;	 /* stack id */
	uint16_t cpu;
	uint16_t flags;
	uint16_t event; /* its number in meta.events */
	uint16_t unused;
	uint32_t request; /* request id; 0 if it is of none */
	uint32_t span;	  /* span id; 0 if it is of none, or if spans were not asked for */
};

_Static_assert(sizeof(struct profile_sample) == 40, "a sample has no padding");

/* Takes a sample. Returns 0, or -errno, which ends the reading. */
typedef int sample_fn(void *arg, const struct profile_sample *s);

/*
 * All samples with one stack and the same SAMPLE_FLAGS; of one thread, if the profile is by_thread,
 * or of one process, if it is by_process; of one kind of request, if it is by_request; of one span,
 * if it is by_span; of one event; and between the same cuts.
 */
struct profile_aggregate {
	uint64_t samples; /* how many */
	uint64_t value;	  /* sum of theirs; UINT64_MAX if it does not fit */
	uint32_t thread; /* thread id; PROFILE_NONE if the profile is not by_thread or by_process */
	uint32_t stack;	 /* stack id */
	uint32_t request; /* kind of it (by_request), 0 if it is of none */
	uint16_t marks; /* bit i: it is behind profile.cuts[i]; the next ones: profile.span_marks */
	uint16_t flags : 10;
	uint16_t event : 4; /* that of the profile, unless it is by_event, or
			       read_options.gvl_caused */
	bool slow : 1;	    /* profile_request_is_slow() */
};

/* Of some waits, each with all its length (wait_lengths.h). */
struct wait_sum {
	uint64_t n;
	uint64_t ns; /* of all of them; UINT64_MAX if it does not fit */
	uint64_t longest_ns;
};

/* There may be millions. */
_Static_assert(sizeof(struct profile_aggregate) == 32, "an aggregate has no padding");

/* Why something was lost. Stored in the file: add at the end. */
enum lost_reason {
	LOST_RING_FULL = 0, /* the BPF programs found no room in the ring buffer */
	LOST_UNDEFINED = 1, /* a sample named a stack whose definition was lost */
	LOST_MEMORY = 2,    /* rbpf ran out of memory */
	LOST_OTHER = 3, /* any other; also what a reason that only a newer rbpf knows is read as */
	LOST_REASON_COUNT,
};

const char *lost_reason_name(enum lost_reason reason);

struct profile_lost {
	uint64_t ts; /* ns, CLOCK_MONOTONIC */
	uint64_t count;
	uint32_t reason; /* enum lost_reason */
};

#define PROFILE_MAX_EVENTS 16

#define META_MODE_WALL	   "wall" /* views show all time, if no event is asked for */

/* How the recording was made: the META chunk. Strings are malloc'ed or NULL. */
struct profile_meta {
	char *rbpf_version;
	char *command; /* the command line of rbpf record */
	char *hostname;
	char *kernel;	    /* uname -r */
	char *arch;	    /* uname -m */
	char *mode;	    /* "cpu", "states" or META_MODE_WALL */
	uint32_t frequency; /* Hz */
	uint32_t cpus;	    /* online */
	uint32_t by_second; /* 1: what was alike in a second was added up: samples are means */
	uint64_t start_realtime_ns;
	uint64_t start_monotonic_ns;
	struct profile_event events[PROFILE_MAX_EVENTS];
	uint32_t n_events; /* 0: CPU time alone */
};

/* What the recorder counted: the TOTALS chunk, written at the end. */
struct profile_totals {
	uint64_t end_monotonic_ns;
	uint64_t samples;
	uint64_t lost;
	uint64_t truncated;  /* samples with a cut stack */
	uint64_t unresolved; /* samples with a frame that could not be named */
	uint64_t failed;     /* samples whose Ruby stack could not be walked */
	uint64_t no_ruby;    /* samples of threads that have no Ruby stack … */
	uint64_t
		not_recorded; /* … of them, profile_stack_not_recorded(); not stored, but counted */
	uint64_t native_samples; /* samples whose native stack was walked … */
	uint64_t native_gaps;	 /* … of them, with SAMPLE_GAP */
	uint64_t cpu_sampled_ns;
	uint64_t gc_ns;		       /* the part of it in samples with SAMPLE_GC … */
	uint64_t gc_unknown_ns;	       /* … and with SAMPLE_GC_UNKNOWN */
	uint64_t cpu_kernel_ns;	       /* the same threads by the kernel's account; 0 if unknown */
	uint64_t rbpf_cpu_ns;	       /* CPU time of rbpf's own processes … */
	uint64_t rbpf_start_cpu_ns;    /* … of it, before it began to sample; 0 if unknown */
	uint64_t kernel_ns_per_sample; /* BPF run time by the kernel's statistics; 0 if off */
	uint64_t other_ticks;	       /* clock ticks in what is not followed; 0 if unknown */
	uint64_t other_ticks_ns;       /* BPF run time of these */
	/* Those of all threads of the machine, where waits are recorded; 0 if unknown. */
	uint64_t switches, switches_ns; /* from one thread to another, and BPF run time of these */
	uint64_t wakeups, wakeups_ns;	/* the same of wake-ups */
	uint64_t bpf_ns;		/* run time of all BPF programs; 0 if unknown */
	uint64_t machine_busy_ns;	/* what ran on all CPUs meanwhile; 0 if unknown */
	uint64_t machine_stolen_ns;	/* what a hypervisor took from them while they had work */
	uint64_t lowest_hz;		/* that meta.frequency was lowered to; 0: it was not */
	uint64_t lowered_ns;		/* for how long it was lower */
	uint64_t counters[COUNTER_COUNT]; /* by enum profile_counter; 0 also if not recorded */
};

/* Threads that are shown as one: view/thread_series.h. */
struct thread_series {
	uint32_t first; /* thread: the first of them */
	uint32_t n;	/* how many they are */
};

struct profile {
	struct intern strings; /* id 0 is "" */
	struct profile_process *processes;
	size_t n_processes, cap_processes;
	struct profile_thread *threads;
	size_t n_threads, cap_threads;
	struct thread_series *series; /* by thread; NULL: each is shown by itself; owned */
	struct profile_module *modules;
	size_t n_modules, cap_modules;
	struct profile_frame *frames;
	size_t n_frames, cap_frames;
	struct profile_stack *stacks; /* [0] is the empty stack */
	size_t n_stacks, cap_stacks;
	uint32_t event;		    /* of the samples here: its number in meta.events */
	uint64_t n_samples;	    /* of this event in the recording … */
	uint64_t value;		    /* … and the sum of their values */
	uint64_t first_ts, last_ts; /* of these, ns, CLOCK_MONOTONIC; 0 if there is none */
	uint64_t n_in_time; /* samples of all events, in the time that was selected (reader.h) */
	/*
	 * If the event is EVENT_WAKEUP: the sum of all waits in that time, but for a CPU, and the
	 * part of it that somebody is known to have ended; with read_options.ended of those waits.
	 */
	uint64_t waited_ns, ended_ns;
	uint64_t wakeups_unknown; /* with read_options.ended: it is not known what they ended */
	struct profile_aggregate *aggregates; /* of those that were selected (reader.h) */
	size_t n_aggregates, cap_aggregates;
	uint32_t *aggregate_spans; /* by_span: by aggregate, its span id; owned, else NULL */
	size_t cap_aggregate_spans;
	struct wait_sum *aggregate_waits; /* with_lengths: by aggregate; owned, else NULL */
	size_t cap_aggregate_waits;
	bool by_thread;	   /* aggregates tell threads apart … */
	bool by_process;   /* … or processes, one thread standing for all of its process … */
	bool by_request;   /* … and kinds of requests */
	bool by_span;	   /* … and spans: aggregate_spans */
	bool with_lengths; /* of the waits in them: aggregate_waits … */
	bool whole_waits;  /* … and profile_each_wait() (replay.h) tells each */
	bool by_event;	   /* … and there are some of each event of the recording */
	uint64_t
		cuts[PROFILE_MAX_CUTS]; /* ns, CLOCK_MONOTONIC: what is at this time is behind it */
	size_t n_cuts;
	struct span_mark span_marks[PROFILE_MAX_CUTS]; /* n_cuts and these are no more than that */
	size_t n_span_marks;
	uint16_t *marks_of_spans; /* n_span_marks: by span id; owned */
	size_t cap_marks_of_spans;
	uint64_t slow_ns;		  /* those that took longer are slow; 0: none is */
	struct profile_request *requests; /* [0] stands for none */
	size_t n_requests, cap_requests;
	struct intern request_kinds; /* struct profile_request_kind; id + 1 is the kind's */
	struct intern spans;	     /* struct profile_span; id + 1 is the span's; if asked for */
	bool has_spans;		     /* the recording has some, asked for or not */
	struct profile_sample
		*samples; /* these one by one, in the order of the file, if asked for */
	size_t n_kept, cap_kept;
	struct profile_sample *waits; /* whole_waits, if kept: as wait_lengths.h tells them */
	size_t n_waits, cap_waits;
	/*
	 * Waits of this event that are behind a later sample of their thread, in the order of the
	 * file: the kernel does not tell of each return to a CPU at once. At most PROFILE_MAX_LATE.
	 */
	struct profile_sample *late;
	size_t n_late, cap_late;
	struct profile_lost *lost;
	size_t n_lost, cap_lost;
	struct kept_sources sources; /* if asked for */
	struct profile_meta meta;
	struct profile_totals totals; /* of all samples; computed if the recording has none */
	uint64_t file_bytes;	      /* of the recording; 0 if it is from no file */
	bool complete;		      /* the recording was closed properly */
};

#define PROFILE_INIT                                                                               \
	{                                                                                          \
		0                                                                                  \
	}
#define PROFILE_NONE UINT32_MAX

/* Release all and make @p (which may be NULL) PROFILE_INIT again. */
void profile_deinit(struct profile *p);
#define _cleanup_profile_ _cleanup_(profile_deinit)

/* Add, and stop at UINT64_MAX: a recording may hold any numbers. */
static inline void profile_add(uint64_t *sum, uint64_t v)
{
	if (__builtin_add_overflow(*sum, v, sum))
		*sum = UINT64_MAX;
}

static inline void wait_sum_add(struct wait_sum *to, const struct wait_sum *w)
{
	to->n += w->n;
	profile_add(&to->ns, w->ns);
	if (w->longest_ns > to->longest_ns)
		to->longest_ns = w->longest_ns;
}

/*
 * Add @n samples like @s, whose values add up to its value, to the counts of @t; the value only if
 * its event is CPU time (@is_cpu).
 */
void profile_count_samples(struct profile_totals *t, const struct profile_sample *s, uint64_t n,
			   bool is_cpu);

static inline void profile_count_sample(struct profile_totals *t, const struct profile_sample *s,
					bool is_cpu)
{
	if (s->flags) {
		profile_count_samples(t, s, 1, is_cpu);
		return;
	}
	t->samples++;
	if (is_cpu)
		profile_add(&t->cpu_sampled_ns, s->value);
}

/* Count @s, which is of the event of @p, among its samples and in the time that they span. */
static inline void profile_note_sample(struct profile *p, const struct profile_sample *s)
{
	if (!p->n_samples++ || s->ts < p->first_ts)
		p->first_ts = s->ts;
	if (s->ts > p->last_ts)
		p->last_ts = s->ts;
	profile_add(&p->value, s->value);
}

/* The number of the event of @p with this name; PROFILE_NONE if it has none. */
uint32_t profile_event_named(const struct profile *p, const char *name);

/*
 * Whether some samples of @p stand for more of its event than others, as there were fewer at times
 * than was asked for (--max-cost): then their number tells nothing.
 */
bool profile_samples_differ(const struct profile *p);

/*
 * What each of so many @samples of @p, which have @value together, stands for of CPU time, in ns:
 * their mean if they differ and are of CPU time alone, else the longest that any of @p may; 0: @p
 * has none.
 */
uint64_t profile_period_of(const struct profile *p, uint64_t samples, uint64_t value);

/* Whether samples of @p can be of waits: its recording was made with --mode states. */
bool profile_has_waits(const struct profile *p);

/* Which of the span marks of @p a span has: bits of struct profile_aggregate, .marks. */
uint16_t profile_span_marks(const struct profile *p, const struct profile_span *span);

/*
 * Note that the span with this id has these @marks, 0 being that of no span; ids come in order, or
 * come again. Returns 0 or -ENOMEM.
 */
int profile_mark_span(struct profile *p, uint32_t span, uint16_t marks);

/* Add a request of thread @thread. Returns 0, -ENOMEM, or -E2BIG past RBPF_FILE_MAX_IDS. */
int profile_add_request(struct profile *p, uint32_t thread, const struct profile_request_kind *kind,
			uint32_t *ret);

/*
 * Note when @s, with the event that it was recorded with, saw its thread in its request, or in
 * none. @counted: it is of the event of @p, and is added up, too. Of samples out of the times that
 * are read (not @in_time) only the bounds of other requests are taken.
 */
void profile_note_request(struct profile *p, const struct profile_sample *s, bool counted,
			  bool in_time);

/*
 * How long @r was there at least: from its first sample to its last one. In ns; 0 if it has none,
 * or a single tick, which is of a moment.
 */
uint64_t profile_request_least_ns(const struct profile_request *r);

/*
 * How long @r was there at most: from the sample of its thread before it to the one after it, or
 * from where the recording begins, to where it ends. Where waits are not recorded this may be much
 * more than it was, since a thread that uses no CPU time has no samples. 0 if @r has no sample.
 */
uint64_t profile_request_most_ns(const struct profile *p, const struct profile_request *r);

/*
 * The period of the clock that ticked by CPU time while @r was there, in ns; 0 if it is not known.
 */
uint64_t profile_request_period(const struct profile *p, const struct profile_request *r);

/*
 * An estimate of how long @r was there, in ns, between the bounds above; 0 if it has no sample.
 * Before a first tick and after a last one it was there for half a period of the clock on average,
 * and that is added.
 */
uint64_t profile_request_ns(const struct profile *p, const struct profile_request *r);

/* Whether the request with this id (0: none) took longer than @p->slow_ns, if that is given. */
static inline bool profile_request_is_slow(const struct profile *p, uint32_t request)
{
	return p->slow_ns && request && request < p->n_requests &&
	       profile_request_ns(p, &p->requests[request]) > p->slow_ns;
}

/* The kind of the request of @s, 0 if it is of none. */
static inline uint32_t profile_sample_kind(const struct profile *p, const struct profile_sample *s)
{
	return s->request < p->n_requests ? p->requests[s->request].kind : 0;
}

/* The kind with this id (not 0). */
static inline const struct profile_request_kind *profile_request_kind(const struct profile *p,
								      uint32_t kind)
{
	return intern_get(&p->request_kinds, kind - 1, NULL);
}

/*
 * Which of the cuts of @p the sample @s is behind, and which of its marks it has: struct
 * profile_aggregate, .marks.
 */
static inline uint16_t profile_marks(const struct profile *p, const struct profile_sample *s)
{
	uint16_t marks = p->n_span_marks ? p->marks_of_spans[s->span] : 0;

	for (size_t i = 0; i < p->n_cuts; i++)
		marks |= (uint16_t)((s->ts >= p->cuts[i]) << i);
	return marks;
}

/* The span with this id (not 0). */
static inline const struct profile_span *profile_span(const struct profile *p, uint32_t span)
{
	return intern_get(&p->spans, span - 1, NULL);
}

/* The aggregate that @s belongs to, with nothing added up yet, if they tell all apart. */
static inline struct profile_aggregate profile_aggregate_of(const struct profile *p,
							    const struct profile_sample *s)
{
	return (struct profile_aggregate) {
		.thread = s->thread,
		.stack = s->stack,
		.request = profile_sample_kind(p, s),
		.flags = s->flags & SAMPLE_FLAGS,
		.event = s->event,
		.marks = profile_marks(p, s),
		.slow = profile_request_is_slow(p, s->request),
	};
}

/* Add @s to the samples that are kept one by one. Returns 0 or -ENOMEM. */
int profile_keep_sample(struct profile *p, const struct profile_sample *s);

/* The same of a wait, as wait_lengths.h tells it. */
int profile_keep_wait(struct profile *p, const struct profile_sample *wait);

/* So many waits out of order are put into it (replay.h); a recording of an hour has some hundreds.
 */
#define PROFILE_MAX_LATE 16384

/*
 * Note @s, of the event of @p, if it is such a wait; @last_ts is the latest time of the samples of
 * its thread before it. Returns 0 or -ENOMEM.
 */
int profile_note_late(struct profile *p, const struct profile_sample *s, uint64_t last_ts);

/*
 * Whether @stack is that of a wait, whose value is its exact length, where those of others are a
 * sample of what happened.
 */
static inline bool profile_stack_waits(const struct profile *p, uint32_t stack)
{
	return stack && p->frames[p->stacks[stack].frame].kind == FRAME_WAIT;
}

/*
 * Whether @s is that wait, and not what others waited meanwhile, which has the same stack: the
 * thread was in it for all of the value, up to the time of the sample.
 */
bool profile_is_wait(const struct profile *p, const struct profile_sample *s);

/* Whether @stack is that of a wait in which the thread held the GVL. */
bool profile_stack_held_gvl(const struct profile *p, uint32_t stack);

/*
 * Whether samples with @stack are of what is not recorded, such as an interrupt that ended a wait.
 * Their thread is the one that waited, for want of another.
 */
static inline bool profile_stack_not_recorded(const struct profile *p, uint32_t stack)
{
	return stack && p->frames[p->stacks[stack].frame].kind == FRAME_NOT_RECORDED;
}

/* The event of the samples of @p. */
const struct profile_event *profile_event(const struct profile *p);

static inline const char *profile_str(const struct profile *p, uint32_t id)
{
	return intern_get(&p->strings, id, NULL);
}

/*
 * What a picture or an export of a recording may take, in bytes: in proportion to the recording,
 * for a small one can be made to expand without end (one long stack in each of many threads).
 */
#define PROFILE_FREE_OUTPUT (1ull << 30)
#define PROFILE_MAX_RATIO   1024u
size_t profile_output_max(const struct profile *p);

/*
 * The versions of Ruby of its processes: strings, each once, in the order of the processes. *@ret:
 * free(). Returns 0 or -ENOMEM.
 */
int profile_rubies(const struct profile *p, uint32_t **ret, size_t *ret_n);

/* First and last time of the recording in ns, CLOCK_MONOTONIC; both 0 if nothing is known. */
void profile_time_range(const struct profile *p, uint64_t *first, uint64_t *last);

/* The number of frames of @stack, at most RBPF_FILE_MAX_DEPTH if @p was read from a file. */
size_t profile_stack_depth(const struct profile *p, uint32_t stack);

#endif
