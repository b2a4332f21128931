/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Whether files hold a Ruby VM, for finding the Rubies among all processes of a machine: each file
 * is looked into once. Not thread-safe.
 */
#ifndef RBPF_RUBY_FILE_KIND_H
#define RBPF_RUBY_FILE_KIND_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/intern.h"

struct file_worker;

enum ruby_file_kind {
	RUBY_FILE_OTHER,
	RUBY_FILE_VM,	 /* it defines what every Ruby VM exports */
	RUBY_FILE_NEEDS, /* it is linked with a libruby */
};

/*
 * The kinds of the files that were looked into, by device, inode, size and times. Emptied when
 * full.
 */
struct ruby_files {
	struct file_worker *worker; /* not owned; set before use */
	struct intern keys;
	uint8_t *kinds; /* enum ruby_file_kind, by id; owned */
	size_t cap;
};

void ruby_files_deinit(struct ruby_files *files);

/* The kind of the file that is open as @fd; one that cannot be read is no Ruby. */
enum ruby_file_kind ruby_files_kind(struct ruby_files *files, int fd);

/* The same of the file that process @pid executes. */
enum ruby_file_kind ruby_files_of_exe(struct ruby_files *files, pid_t pid);

/* Whether a Ruby VM is mapped into process @pid. */
bool ruby_files_in_process(struct ruby_files *files, pid_t pid);

#endif
