/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Reading parts of code files, symbols and unwind tables, while rbpf does other things: by a worker
 * of its own, one after the other. A file of a hostile process may take seconds to read, and so may
 * a large one. Records that need that part are held (sample/held.h); the loop that drains the ring
 * goes on.
 *
 * Not thread-safe.
 */
#ifndef RBPF_SYMBOL_CODE_READAHEAD_H
#define RBPF_SYMBOL_CODE_READAHEAD_H

#include <stdbool.h>

#include "symbol/code_files.h"

/*
 * Queue @part of @file, which was not read yet, to be read ahead; tables go before symbols. For
 * symbols, file->symbols must be there. file->queued has the part until it has been read. Returns 0
 * or -ENOMEM.
 */
int code_readahead_queue(struct code_files *files, struct code_file *file, enum code_part part);

/* Take what was read since, and go on; if @wait, until all is read. Returns 0 or -ENOMEM. */
int code_readahead_poll(struct code_files *files, bool wait);

/*
 * @part of @file is needed at once: wait if it is being read, else take it off the queue. Returns 1
 * if it has been read or cannot be, 0 if the caller has to read it, or -ENOMEM.
 */
int code_readahead_wait(struct code_files *files, struct code_file *file, enum code_part part);

#endif
