/* SPDX-License-Identifier: GPL-2.0-only */
/* The instructions of native functions in a recording, from the files on this machine. */
#ifndef RBPF_CMD_ANNOTATE_CODE_H
#define RBPF_CMD_ANNOTATE_CODE_H

struct instructions;
struct file_worker;
struct profile;

/*
 * Add to @code a block for each function that instructions_find() found, with the instructions and
 * source lines that @worker reads in the module of that path, below @root, and build id. @root ""
 * stands for this machine's. A block without
 * instructions says why. Returns 0 or -ENOMEM.
 */
int annotate_read_code(const struct profile *p, struct file_worker *worker, const char *root,
		       struct instructions *code);

#endif
