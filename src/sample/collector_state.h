/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the parts of the collector share: collector.c keeps the loop, samples.c takes stacks and
 * samples, waits.c time off the CPU, process_life.c and thread_life.c know how processes and their
 * threads begin, change and end, find_ruby.c whether there is a Ruby in a process, and begun.c when
 * one is looked for that uses no CPU time, clocks.c which clocks see threads, system_wide.c which
 * of the machine's processes are to be followed, max_cost.c how many samples are too many, and
 * unknown.c what is done when records were lost that tell it.
 */
#ifndef RBPF_SAMPLE_COLLECTOR_STATE_H
#define RBPF_SAMPLE_COLLECTOR_STATE_H

#include "sample/collector.h"

#include "ruby/cache.h"
#include "ruby/file_kind.h"
#include "sample/process_table.h"
#include "sample/requests.h"
#include "sample/stack_table.h"
#include "sample/thinning.h"
#include "target/cpus.h"
#include "target/users.h"

struct mmap_watch;

/* A thread that has no clock of its own, and is to get one: clocks.c. */
struct clockless {
	pid_t pid, tid;
	uint64_t born_ns; /* CLOCK_MONOTONIC, or when it was met; 0: before sampling began */
};

/* Those from @next on wait, nearly in the order of born_ns. */
struct clock_queue {
	struct clockless *v; /* owned */
	size_t next, n, cap;
};

/* What was used up to a moment, ns: as in struct thinning_cost. */
struct cost_account {
	uint64_t at_ns; /* CLOCK_MONOTONIC; 0: it was not read yet */
	uint64_t all, ticks, busy;
};

struct collector {
	struct collector_options opts;
	struct sink *sink;
	struct engine *engine;
	struct process_table table;
	struct stack_table stacks;
	struct request_table requests;
	struct ruby_cache binaries;
	struct ruby_files files;
	struct users users;
	struct intern presets;	  /* struct rbpf_preset_key of the presets that the engine has */
	struct mmap_watch *mmaps; /* system-wide; owned */
	bool mmaps_lost;	  /* some of its records: any process may map a Ruby by now */
	struct native *native;	  /* NULL: native stacks are not walked; owned */
	struct profile_totals totals;
	uint64_t reported_lost;
	uint64_t unknown; /* samples of processes not in the table: their EXEC or FORK was lost … */
	uint64_t no_room; /* … and for which the sink had no room: they are told together */
	uint64_t reported_unknown;
	uint64_t unknown_next_ns; /* CLOCK_MONOTONIC: such a process is not looked at before */
	uint64_t housekeeping_ns;
	uint64_t open_waits_ns; /* when waits that go on were told last */
	bool waits_asked_for;	/* they are told by collector_tell_waits() alone */
	uint64_t sleepers_ns;	/* that it took to walk threads that wait since before */
	uint64_t begun_ns;	/* when a process executed a program last … */
	uint64_t begun_look_ns; /* … and before which what has begun is not looked at */
	uint64_t cpus_until_ns; /* up to when CPUs need clocks; CLOCK_MONOTONIC, as … */
	uint64_t cpus_ns;	/* … when the list of those online was read last */
	bool cpus_clocked;	/* they have clocks */
	bool any_left_to_cpus;	/* some process has left_to_cpus … */
	bool any_newly_clocked; /* … or newly_clocked */
	struct clock_queue clockless;
	int64_t suspended_ns;	      /* in which the machine was suspended since boot, so far */
	uint64_t lost_lives;	      /* records that were lost, and … */
	uint64_t missed_execs;	      /* … execs that were left out, when … */
	uint64_t searched_ns;	      /* … what they told was searched for; CLOCK_MONOTONIC */
	uint64_t began_ns;	      /* CLOCK_MONOTONIC: sampling … */
	uint64_t ending_ns;	      /* … and its end; 0 before */
	uint64_t lives;		      /* records of births, execs and ends */
	uint64_t drains;	      /* how often the engine was drained */
	struct cpus_times machine;    /* when sampling began; 0 if unknown */
	struct thinning thinning;     /* max_cost.c … */
	struct cost_account cost;     /* … at the end of the last interval */
	uint64_t lowered_at_ns;	      /* CLOCK_MONOTONIC: since then fewer samples; 0: not */
	uint64_t account_ns;	      /* ns: sum of the CPU times reported for followed threads */
	struct rbpf_task *last_tasks; /* threads as sampling ended; owned */
	size_t n_last_tasks;
	size_t held;	    /* bytes of held records: samples.c */
	uint64_t unchecked; /* bytes of records since memory was last checked */
	uint64_t forgot_ns; /* CLOCK_MONOTONIC: when names and stacks were dropped to free memory */
	uint64_t forgot_stacks_ns;   /* … and when the sink forgot many stacks */
	struct names_age native_age; /* of the names of native frames … */
	struct names_age told_age;   /* … and of what the sink was told */
	bool memory_full; /* beyond memory_limit, though all that can be read again was dropped */
	struct deferred *deferred; /* processes to look for a Ruby in; NULL: none; owned */
	size_t n_followed;	   /* processes, ever */
	size_t live;		   /* of them */
	size_t rubies;
	unsigned int warnings;
	char ruby_version[64];
	char refused[512];
	bool too_short; /* a process ended before a Ruby could be found in it */
	bool full;	/* the sink has no room for another definition: no more samples are taken */
	int failed;	/* sticky: an error that ends the recording */
};

#define MAX_WARNINGS 20 /* given to opts.warn() */

/* Take the records that the engine has: as engine_drain(). */
int collector_drain(struct collector *c);

/*
 * @r is what came of taking something: -E2BIG, if the sink had no room for what it defines, is
 * noted, and @samples, which are lost by that, are counted. Returns 0 then, else @r.
 */
int collector_note_full(struct collector *c, int r, uint64_t samples);

/* CPU time of rbpf so far, with its workers, ns. */
uint64_t collector_cpu_ns(const struct collector *c);

/* Put @r, which ended the recording, into words. */
int collector_fail(struct collector *c, int r, struct err *err);

/* ---- samples.c ---- */

/* Records of the BPF programs. */
int samples_handle_memory(struct collector *c, const struct rbpf_ring_memory *rec, size_t len);
int samples_handle_stack(struct collector *c, const struct rbpf_ring_stack *rec, size_t len);
int samples_handle_request(struct collector *c, const struct rbpf_ring_request *rec, size_t len);
int samples_handle_native(struct collector *c, const struct rbpf_ring_native *rec, size_t len);
int samples_handle_code_miss(struct collector *c, const struct rbpf_ring_code_miss *rec);
int samples_handle_sample(struct collector *c, const struct rbpf_ring_sample *rec, size_t len);
int samples_handle_wait(struct collector *c, const struct rbpf_ring_wait *rec, size_t len);
int samples_handle_waker(struct collector *c, const struct rbpf_ring_waker *rec, size_t len);

/*
 * The resolver of process @p, in *@ret; NULL: no Ruby is found in it. The first use looks for a
 * Ruby, as the BPF programs may have walked the process with the layout kept for its executable.
 */
int samples_names(struct collector *c, struct tracked_process *p, struct resolver **ret);

/* Thread @tid of @p with its name, made known to the recording when it is first seen. */
int samples_thread(struct collector *c, struct tracked_process *p, pid_t tid,
		   const char comm[RBPF_COMM_LEN], struct tracked_thread **ret);

/* waits.c. @rec, of @p, in which a Ruby was known when it came (@with_ruby). */
int waits_handle(struct collector *c, struct tracked_process *p, const struct rbpf_ring_wait *rec,
		 bool with_ruby);

/* Call @fn for the ids of the wait of @t that goes on: see id_holder.h. */
void waits_ids(struct tracked_thread *t, id_fn *fn, void *arg);

/*
 * Process the held records whose symbols have been read; and at the end, wait and process the
 * others.
 */
int samples_poll(struct collector *c);
int samples_finish(struct collector *c);

/*
 * Process the held records of @p now, without waiting for symbols: @p is about to be forgotten, or
 * to execute another program.
 */
int samples_release(struct collector *c, struct tracked_process *p);

/* ---- process_life.c and thread_life.c ---- */

/*
 * Begin to follow process @pid. Returns 0, -ESRCH (it is gone), -ENOENT (it is not selected),
 * -E2BIG (there is no room for one more of its user, see no_room_for()), or another error.
 * @since_ns as in struct tracked_process; @preset: the BPF programs follow it already.
 */
int life_add(struct collector *c, pid_t pid, uint64_t since_ns, bool preset,
	     struct tracked_process **ret, struct err *err);

/* Count @p, once, if it has ended before a Ruby was found in it. */
void life_count_ended_unseen(struct collector *c, struct tracked_process *p);

/* Write what is known of @p to the recording; the first time with its parent, if that is in it. */
int life_record(struct collector *c, struct tracked_process *p);

/* Note that thread @t has had @runtime ns of CPU time in its life so far. */
int life_account(struct collector *c, struct tracked_thread *t, uint64_t runtime);

/*
 * Note the CPU time that each thread of process @pid (0: of all) has used: only later time counts.
 */
int life_begin_account(struct collector *c, pid_t pid);

/* Whether there is no thread @t any more, though its end may not have been told. */
bool life_thread_is_gone(const struct tracked_process *p, const struct tracked_thread *t);

/* Forget thread @t of @p: no record will name it any more. */
void life_forget_thread(struct collector *c, struct tracked_process *p, struct tracked_thread *t);

/* Records of the BPF programs. */
int life_handle_thread(struct collector *c, const struct rbpf_ring_life *rec);
int life_handle_fork(struct collector *c, const struct rbpf_ring_life *rec);
int life_handle_exec(struct collector *c, const struct rbpf_ring_life *rec);
int life_handle_exit(struct collector *c, const struct rbpf_ring_life *rec);
int life_handle_free(struct collector *c, const struct rbpf_ring_life *rec);

/* Count the followed processes of each user. */
void life_count_users(struct collector *c);

/* Notice exits that were not seen, and let go of what ended a while ago. */
int life_sweep(struct collector *c, uint64_t now);

/*
 * At the end, add the CPU time that threads have used that still live: read as sampling ends, as
 * they go on meanwhile, and added when all records have told which threads there are.
 */
int life_read_account(struct collector *c);
int life_finish_account(struct collector *c);

/* ---- find_ruby.c ---- */

/*
 * Look for a Ruby in @p, by the thread pointers in @tasks; NULL: read them. Returns 0 or why none
 * was found.
 */
int find_ruby(struct collector *c, struct tracked_process *p, const struct rbpf_task *tasks,
	      size_t n_tasks, struct err *err);

/* The same where it is no failure that there is none, or none that can be walked. */
int find_ruby_try(struct collector *c, struct tracked_process *p, const struct rbpf_task *tasks,
		  size_t n_tasks);

/*
 * The same when @p is seen using CPU or has just begun, with pauses that double from TRY_AGAIN_MIN
 * to TRY_AGAIN_MAX.
 */
int find_ruby_try_again(struct collector *c, struct tracked_process *p);

/* Take the Ruby of @parent, if it has one, for @p, which was forked from it. */
int find_ruby_inherit(struct collector *c, struct tracked_process *p,
		      const struct tracked_process *parent);

/* ---- clocks.c ---- */

/* Sampling begins: clocks for the CPUs, and but with --all-ruby for the threads that there are. */
int clocks_begin(struct collector *c, struct err *err);

/* Open and close the clocks that are due. Not while the ring is read. */
int clocks_poll(struct collector *c, uint64_t now, struct err *err);

/* Whether the clocks of threads see all, for nothing has begun for ten seconds. */
bool clocks_are_settled(const struct collector *c);

/*
 * Thread @t of @p has begun at @ts, or has only just been met; or @p with its main thread. Returns
 * 0 or -ENOMEM.
 */
int clocks_note_birth(struct collector *c, struct tracked_process *p, struct tracked_thread *t,
		      uint64_t ts);

/*
 * @p has executed a program at @ts. The BPF programs take none of its threads for one with a clock
 * any more; and if that program has privileges, or cannot be read, the kernel ends the clock of its
 * main thread, too, and does not say so. Returns 0 or -ENOMEM.
 */
int clocks_note_exec(struct collector *c, struct tracked_process *p, uint64_t ts);

/*
 * Births and ends were lost: search for the threads of what is followed. (A child whose fork was
 * lost is not, until unknown.c has met it.) Returns 0 or -ENOMEM.
 */
int clocks_search(struct collector *c, uint64_t now);

/* Close the clock of @t; and those of all threads of @p. */
void clocks_thread_ended(struct collector *c, struct tracked_thread *t);
void clocks_remove(struct collector *c, struct tracked_process *p);

void clocks_deinit(struct collector *c);

/* ---- max_cost.c ---- */

/* Take fewer samples, or more again, if it is time to look at what they cost. */
void max_cost_poll(struct collector *c, uint64_t now);

/* How many samples there are for a second of CPU time at present, Hz. */
uint32_t max_cost_frequency(const struct collector *c);

/* Sampling has ended: note for how long there were fewer. */
void max_cost_end(struct collector *c);

/* ---- begun.c ---- */

/* A process has executed a program at @ts. */
void begun_note(struct collector *c, uint64_t ts);

/* Whether @p had begun so short a time before @ts that its Ruby could not be found yet. */
bool begun_just_before(const struct tracked_process *p, uint64_t ts);

/* Look for a Ruby in what has begun lately, from time to time. Returns 0 or -ENOMEM. */
int begun_poll(struct collector *c, uint64_t now);

/* ---- unknown.c ---- */

/*
 * A sample of process @pid has come, which is not in the table. If that may be because a record of
 * its birth was lost, follow it from now on, or have the engine forget it; not at once if another
 * one was looked at just now. Returns 0 or an error that ends the recording.
 */
int unknown_look(struct collector *c, pid_t pid);

/*
 * If records were lost, or the kernel has left out execs, since this was called last, find out what
 * they told: which processes have executed a program, and, if they were lost, which threads there
 * are. Once in some seconds. Returns 0 or a negative errno.
 */
int unknown_search(struct collector *c, uint64_t now);

/* ---- system_wide.c ---- */

/* Whether all Rubies are followed, and not only those selected. */
bool system_wide_is_all(const struct collector *c);

/* Whether process @pid, which has just executed a program, may come to hold a Ruby VM. */
bool system_wide_may_be_ruby(struct collector *c, pid_t pid);

/* Follow process @pid if it is a Ruby that is selected, and there is room; else returns 0, too. */
int system_wide_consider(struct collector *c, pid_t pid);

/* Look for Rubies that were mapped since the last call. */
int system_wide_poll(struct collector *c);

/*
 * Examine the deferred processes, for a while: examining others had used up their user's share of
 * CPU time, or it was lost what they have mapped.
 */
int system_wide_retry(struct collector *c);

#endif
