/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The pattern is matched once for each name, where code comes from is found once for each frame,
 * and a stack inherits the answer of its callers: there may be a million waits, on deep stacks.
 */
#include "profile/idle_pattern.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "profile/gem_path.h"

/* What a frame says of the waits upon it. */
enum answer {
	NOT_ASKED,  /* of a name alone */
	AS_CALLERS, /* what its callers say */
	IDLE,
	BUSY,
};

/*
 * Methods of gems that run a job, which may be code of gems alone: to deliver mail is to wait for
 * the network, but not for something to do, though there is no method of the program's own between
 * that and its loop.
 */
static const char *const runs_job[] = {
	"ActionController::Metal#dispatch",  "ActiveJob::Execution#perform_now",
	"Delayed::Backend::Base#invoke_job", "Resque::Job#perform",
	"Sidekiq::Processor#execute_job",
};

static bool is_job(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(runs_job); i++)
		if (!strcmp(name, runs_job[i]))
			return true;
	return false;
}

/* Also in a gem that is no installed one, but a folder of the program: that has no version. */
static bool is_programs_own(const char *file)
{
	struct gem gem;

	gem_of_path(file, &gem);
	return gem.origin == GEM_APP || (gem.origin == GEM_GEM && gem.dir.len && !gem.version.len);
}

static enum answer answer_of_name(const char *name, const regex_t *pattern)
{
	if (is_job(name))
		return BUSY;
	return regexec(pattern, name, 0, NULL, 0) ? AS_CALLERS : IDLE;
}

/* @names: by id, what was found so far. */
static enum answer answer_of_frame(const struct profile *p, const struct profile_frame *f,
				   const regex_t *pattern, uint8_t *names)
{
	uint8_t *known = &names[f->name];

	if (f->kind == FRAME_UNKNOWN)
		return BUSY; /* it may be a method of the program's own */
	if (f->kind != FRAME_RUBY && f->kind != FRAME_CFUNC)
		return AS_CALLERS;
	if (*known == NOT_ASKED)
		*known = (uint8_t)answer_of_name(profile_str(p, f->name), pattern);
	if (*known == AS_CALLERS && f->kind == FRAME_RUBY &&
	    is_programs_own(profile_str(p, f->file)))
		return BUSY;
	return *known;
}

int idle_pattern_stacks(const struct profile *p, const regex_t *pattern, bool **ret)
{
	_cleanup_free_ uint8_t *names = calloc(p->strings.count + 1, sizeof(*names));
	_cleanup_free_ uint8_t *frames = calloc(p->n_frames + 1, sizeof(*frames));
	_cleanup_free_ bool *stacks = calloc(p->n_stacks + 1, sizeof(*stacks));

	if (!names || !frames || !stacks)
		return -ENOMEM;
	for (size_t i = 0; i < p->n_frames; i++)
		frames[i] = (uint8_t)answer_of_frame(p, &p->frames[i], pattern, names);
	/* The id of a stack is above that of its callers'. */
	for (size_t i = 1; i < p->n_stacks; i++) {
		const uint8_t answer = frames[p->stacks[i].frame];

		stacks[i] = answer == IDLE || (answer == AS_CALLERS && stacks[p->stacks[i].parent]);
	}
	*ret = take_ptr(stacks);
	return 0;
}
