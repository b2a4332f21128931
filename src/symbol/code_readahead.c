/* SPDX-License-Identifier: GPL-2.0-only */
#include "symbol/code_readahead.h"

#include <errno.h>
#include <string.h>

#include "base/array.h"
#include "symbol/code_symbols.h"
#include "worker/file_worker.h"

/* Job @i is done, or given up. */
static void drop(struct code_files *files, size_t i)
{
	const struct code_job job = files->jobs[i];

	memmove(&files->jobs[i], &files->jobs[i + 1], (--files->n_jobs - i) * sizeof(job));
	job.file->queued &= ~(unsigned int)job.part;
	code_file_close_unmapped(files, job.file);
	code_file_unref(files, job.file);
}

/* Begin the first one. Returns 0 or why it cannot be read. */
static int begin(struct code_files *files)
{
	const struct code_job *job = &files->jobs[0];
	struct worker_file from;
	int r;

	if (files->job_begun)
		return 0;
	r = code_file_for_worker(files, job->file, &from);
	if (!r)
		r = file_worker_begin(files->worker,
				      job->part == CODE_PART_TABLE ? FILE_TABLE : FILE_SYMBOLS,
				      &from, job->file->headers.base);
	files->job_begun = !r;
	return r;
}

/* Take what was read for the first one. Returns 0 or why there is nothing. */
static int end(struct code_files *files, bool wait)
{
	const struct code_job *job = &files->jobs[0];

	if (job->part == CODE_PART_TABLE)
		return file_worker_table_end(files->worker, wait, &files->rules, &job->file->table);
	return file_worker_symbols_end(files->worker, wait, &job->file->symbols->elf);
}

/* Go on with the first one. Returns 0 if it is done, -EAGAIN if not, or -ENOMEM. */
static int go_on(struct code_files *files, bool wait)
{
	const struct code_job job = files->jobs[0];
	int r = begin(files);

	if (!r)
		r = end(files, wait);
	/* The worker may be busy with other files, for a moment. */
	if (r == -EAGAIN || r == -EBUSY)
		return -EAGAIN;
	files->job_begun = false;
	if (r == -ENOMEM)
		return r;
	if (job.part == CODE_PART_SYMBOLS)
		code_symbols_set(files, job.file);
	else if (r != -ESTALE)
		code_file_set_table(files, job.file, r);
	/* No process has it any more: nobody will take the table. */
	if (job.file->references == 1)
		code_file_forget_table(job.file);
	drop(files, 0);
	return 0;
}

int code_readahead_poll(struct code_files *files, bool wait)
{
	int r = 0;

	while (files->n_jobs && !r)
		r = go_on(files, wait);
	return r == -EAGAIN ? 0 : r;
}

/*
 * Where a job for @part belongs: stacks that are walked without a table are lost, stacks without
 * names are held.
 */
static size_t place_for(const struct code_files *files, enum code_part part)
{
	size_t i = files->job_begun;

	while (i < files->n_jobs &&
	       (part == CODE_PART_SYMBOLS || files->jobs[i].part == CODE_PART_TABLE))
		i++;
	return i;
}

int code_readahead_queue(struct code_files *files, struct code_file *file, enum code_part part)
{
	size_t i = place_for(files, part);

	if (file->queued & part)
		return 0;
	if (array_reserve(files->jobs, files->cap_jobs, files->n_jobs + 1))
		return -ENOMEM;
	memmove(&files->jobs[i + 1], &files->jobs[i], (files->n_jobs++ - i) * sizeof(*files->jobs));
	files->jobs[i] = (struct code_job) { .file = code_file_ref(files, file), .part = part };
	file->queued |= part;
	return code_readahead_poll(files, false);
}

int code_readahead_wait(struct code_files *files, struct code_file *file, enum code_part part)
{
	size_t i = 0;
	int r;

	if (!(file->queued & part))
		return 0;
	while (files->jobs[i].file != file || files->jobs[i].part != part)
		i++;
	if (!i && files->job_begun) {
		r = go_on(files, true);
		return r ? r : 1;
	}
	drop(files, i);
	return 0;
}
