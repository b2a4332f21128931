/* SPDX-License-Identifier: GPL-2.0-only */
/* What a process is in which no Ruby VM was found. */
#ifndef RBPF_RUBY_NOT_FOUND_H
#define RBPF_RUBY_NOT_FOUND_H

struct err;
struct file_worker;
struct process;

/*
 * Sets the error (-ENOENT, ERR_TARGET), and returns it: says what @p is instead. JRuby it tells by
 * its name, and a Ruby that has no symbols by a text in its executable, which @worker reads, as
 * file_worker_read().
 */
int ruby_not_found(const struct process *p, struct file_worker *worker, struct err *err);

#endif
