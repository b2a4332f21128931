/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The files that were given up: those that the worker crashed on, hung on, or needed too much time
 * or memory for. Up to FILE_LOSSES_MAX_BAD of them are not looked into again. Not thread-safe.
 */
#ifndef RBPF_WORKER_FILE_LOSSES_H
#define RBPF_WORKER_FILE_LOSSES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/intern.h"
#include "worker/worker.h"

#define FILE_LOSSES_NAMES     4 /* of files that were given up, that are kept */
#define FILE_LOSSES_NAME_SIZE 256
#define FILE_LOSSES_MAX_BAD   16384 /* files that are known to be given up */
/* After so many files of one file system without a device hung, no file of it is read any more. */
#define FILE_LOSSES_HANGS     2

/* A file: open, or in memory, as a process has a vDSO. */
struct worker_file {
	int fd; /* -1: in memory; stays the caller's */
	const void *image;
	size_t size;
	const char
		*path; /* as process pid sees it; other files that belong to it are looked for … */
	pid_t pid;     /* … in the root of this process, and then in rbpf's own; 0: not at all */
};

/* The files that were given up. */
struct file_losses {
	uint64_t files; /* given up */
	char names[FILE_LOSSES_NAMES]
		  [FILE_LOSSES_NAME_SIZE]; /* the first of them, and why: "PATH (why)" */
	size_t n_names;
	struct intern bad; /* keys of them */
};

/* Whether @file was given up, or the file system that it is on. */
bool file_losses_has(const struct file_losses *l, const struct worker_file *file);

/* Give up @file, NULL if there is none, because of @why; WORKER_STOPPED is no file's fault. */
void file_losses_add(struct file_losses *l, const struct worker_file *file,
		     enum worker_failure why);

void file_losses_deinit(struct file_losses *l);

#endif
