/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Selects the samples that a view shows: the options that report, flame and export share.
 */
#ifndef RBPF_VIEW_FILTER_H
#define RBPF_VIEW_FILTER_H

#include <regex.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/cleanup.h"
#include "profile/wall_time.h"
#include "view/stack_mode.h"
#include "view/sum.h"

struct err;
struct profile;
struct profile_aggregate;
struct view_expr;

struct view_filter {
	const char *event; /* NULL: the first; applied when the recording is read, not owned */
	pid_t *pids;	   /* any of these; none means all; owned */
	size_t n_pids;
	pid_t *tids; /* owned */
	size_t n_tids;
	bool has_thread; /* POSIX extended regular expressions: */
	regex_t thread;	 /* thread name */
	bool has_comm;
	regex_t comm; /* process command line */
	bool has_container;
	regex_t container; /* id or name of the container, or path of the control group */
	bool has_request;
	regex_t request; /* name of the request, "[no request]" or "[unknown request]" */
	uint64_t
		slower_than_ns; /* samples of requests that took longer; 0: of all, and of none … */
	bool not_slower;	/* … of all other requests instead */
	bool has_include;
	regex_t include; /* keep samples with a frame whose name matches */
	bool has_exclude;
	regex_t exclude; /* drop samples with a frame whose name matches */
	bool has_idle;
	regex_t idle; /* which waits are idle, too: applied when the recording is read (reader.h) */
	struct view_expr *expr; /* NULL: none; owned */
	uint64_t from_ns; /* since the start of the recording: applied when it is read (reader.h) */
	uint64_t to_ns;	  /* since the start; 0 means the end */
	struct wall_time from, to; /* in place of these, if given, which are set when it is read */
	const char *from_name, *to_name; /* what messages call the two, where one is given */
	enum stack_mode stack;		 /* which frames are shown; patterns see all … */
	uint64_t states;		 /* samples of threads in these, a set (state.h); 0: all */
	uint64_t ended; /* wakeups that ended a wait in these, applied when it is read; 0: all */
	uint32_t hide;	/* … without those of these origins: bits 1 << enum code_origin */
	bool no_gc;	/* drop samples of garbage collection, see gc_phase.h */
	/* What profile_reshape() has applied, and left out of this: for what says so. */
	struct {
		bool include, exclude, expr;
		bool root, collapse_recursion;
		bool in_part; /* something that selects some of the samples of a thread */
	} applied;
};

#define VIEW_FILTER_INIT                                                                           \
	{                                                                                          \
		0                                                                                  \
	}

void view_filter_deinit(struct view_filter *f);

/*
 * Compile @pattern into @re, in place of an earlier one if *@has. @what names the option. Returns
 * 0, -EINVAL (ERR_USAGE, with regerror's words; an empty pattern is refused) or -ENOMEM, and then
 * leaves *@re and *@has alone.
 */
int view_filter_regex(regex_t *re, bool *has, const char *pattern, const char *what,
		      struct err *err);

/*
 * Whether what @f selects depends on which threads have which stacks: then the recording must be
 * read by thread (reader.h).
 */
bool view_filter_by_thread(const struct view_filter *f);

/* Whether it leaves out samples, but for those of other events and times, which are not read. */
bool view_filter_of_samples(const struct view_filter *f);

/* Whether it depends on the requests of samples: then it must be read by request. */
bool view_filter_by_request(const struct view_filter *f);

/* Whether it asks for the state of the thread (state.h). */
bool view_filter_by_state(const struct view_filter *f);

/*
 * A filter applied to one profile, with what was learned about each stack and thread (so that a
 * pattern is matched once a name, not once a sample). Valid while both live.
 */
struct view_selection;

/*
 * @f NULL selects everything. Returns 0, -ENOMEM, or -EINVAL if @p is not by_thread or by_request
 * as @f needs it, or was read for another slower_than_ns.
 */
int view_selection_new(const struct profile *p, const struct view_filter *f,
		       struct view_selection **ret);
void view_selection_free(struct view_selection *sel);

/*
 * The part of it that is garbage collection, of which only methods and what stands for them are
 * shown: what is innermost in a stack then is the method that caused the collection.
 */
int view_selection_new_gc(const struct profile *p, const struct view_filter *f,
			  struct view_selection **ret);

static inline void view_selection_freep(struct view_selection **sel)
{
	view_selection_free(*sel);
}
#define _cleanup_view_selection_ _cleanup_(view_selection_freep)

bool view_selected(const struct view_selection *sel, const struct profile_aggregate *a);

/* Whether samples of requests of this kind can be among them. */
bool view_request_selected(const struct view_selection *sel, uint32_t kind);

/* The same of the request with this id (not 0), which may be too fast or too slow for them. */
bool view_one_request_selected(const struct view_selection *sel, uint32_t request);

/*
 * Which threads have selected samples, by id, and of how many samples and what value all selected
 * ones are. Of a profile that is not by_thread, as if the filter left out none. @threads has room
 * for all.
 */
struct view_sum view_selected_threads(const struct view_selection *sel, bool *threads);

/* Of all selected samples. */
struct view_sum view_selected_sum(const struct view_selection *sel);

/* Show the frames of @mode instead of the filter's: for STACK_BOTH, one of its two. */
void view_selection_show(struct view_selection *sel, enum stack_mode mode);

/* Whether frame @frame is shown. A hidden frame's time goes to its caller. */
bool view_frame_shown(const struct view_selection *sel, uint32_t frame);

/*
 * The stack that is shown instead of one of which no frame is: stack_mode_prepare(). 0 if there is
 * none, and where the filter hides frames, since what it says is then not why.
 */
uint32_t view_stack_instead(const struct view_selection *sel);

#endif
