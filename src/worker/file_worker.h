/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Asks a worker process without privileges (sandbox.h) about the files of processes: those may be
 * hostile users', and parsers have bugs. rbpf itself opens a file, never parses it, and checks all
 * that the worker says. It reads plain bytes itself only of files on block devices
 * (file_worker_read()).
 *
 * A file that the worker crashes on, hangs on, or needs too much time or memory for is given up: it
 * is not looked into again, and counted with its name, for the summary. Other files do not suffer,
 * but those of a file system without a device of which two hung.
 * Nothing is waited for when stop_overdue() (base/stop.h).
 *
 * The worker is forked when the first file is to be read, or by file_worker_prepare(). Not
 * thread-safe.
 */
#ifndef RBPF_WORKER_FILE_WORKER_H
#define RBPF_WORKER_FILE_WORKER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "elf/code.h"
#include "elf/elf_headers.h"
#include "elf/lines.h"
#include "worker/file_losses.h"
#include "worker/fork_server.h"
#include "worker/worker.h"

struct buf;
struct cfi_rules;
struct cfi_table;
struct dwarf_fact;
struct elf_symbols;

#define FILE_WORKER_DEMANGLE_NS	  50000000ull /* of CPU time, for a name */
#define FILE_WORKER_MAX_BAD_NAMES 32	      /* failures, until none is demangled */
#define FILE_EXPORTS_NAMES	  32
#define FILE_EXPORTS_SEGMENTS	  16
#define FILE_MAX_LINES		  32

struct file_worker_options {
	worker_spawn_fn *spawn; /* for tests; NULL: real ones */
	void *spawn_arg;
	uint64_t max_cpu_ns, stall_ns; /* as in struct worker_options */
	uint64_t max_memory; /* bytes of a worker; 0: SANDBOX_MAX_MEMORY, which is the most */
};

/* The parts of a file that are read in the background. */
enum file_part { FILE_SYMBOLS, FILE_TABLE };

struct file_reading {
	enum file_part part;
	uint64_t base;		 /* FILE_TABLE: as for file_worker_table() */
	struct worker_file file; /* its fd and path are owned; fd -1 and path NULL: none */
	bool again;		 /* the worker crashed once */
};

struct file_worker {
	struct file_worker_options opts;
	struct fork_server fork_server;
	struct worker worker;
	struct worker background; /* for file_worker_begin(), and nothing else */
	struct file_reading reading;
	uint64_t next_lines; /* ids of file_worker_lines() */
	unsigned bad_names;  /* that could not be demangled within the limits */
	struct file_losses losses;
};

/* Make @w ready for use. @opts may be NULL. It cannot fail: no process is made yet. */
void file_worker_init(struct file_worker *w, const struct file_worker_options *opts);
void file_worker_deinit(struct file_worker *w);

/*
 * Make the processes now. To be called before rbpf has what they are not to have. Returns 0 or
 * -errno.
 */
int file_worker_prepare(struct file_worker *w);

/* CPU time in ns that workers have used so far. */
uint64_t file_worker_cpu_ns(const struct file_worker *w);

/*
 * All of these return 0, -EIO (the file was given up, or cannot be read now) or -ENOMEM, and what
 * is said of the functions of src/elf/ that the worker calls.
 */

/*
 * pread() of @fd, which stays the caller's. The worker does it, unless the file is on a block
 * device: any other file system may be served by a user's program, which need not answer. Returns
 * how many bytes, 0 at the end of the file, or
 * -errno, -EIO as above. @w may be NULL: then it is read here.
 */
ssize_t file_worker_read(struct file_worker *w, int fd, void *to, size_t size, uint64_t offset);

/* elf_headers_read(). */
int file_worker_headers(struct file_worker *w, const struct worker_file *file,
			struct elf_headers *ret);

/* The symbols and segments of a file: elf_file.h. */
struct file_exports {
	uint64_t values[FILE_EXPORTS_NAMES]; /* of the names that were asked for; 0: not defined */
	bool needs;			     /* it is linked with a library of that name */
	size_t n_segments;
	struct elf_segment segments[FILE_EXPORTS_SEGMENTS];
	char build_id[64];
};

/*
 * elf_file_symbols() for @n names, or elf_file_dynamic_symbols() if @dynamic; elf_file_needs() for
 * @library; and the rest of elf_file.h.
 */
int file_worker_exports(struct file_worker *w, const struct worker_file *file, bool dynamic,
			const char *library, const char *const *names, size_t n,
			struct file_exports *ret);

/*
 * elf_file_tls(); the places are in it, and the offset within its block, as far as the file says.
 */
int file_worker_tls(struct file_worker *w, const struct worker_file *file, const char *name,
		    struct elf_tls *ret);

/* cfi_table_read(), of the file or of its debug file; @base is headers.base of the file. */
int file_worker_table(struct file_worker *w, const struct worker_file *file, uint64_t base,
		      struct cfi_rules *rules, struct cfi_table *ret);

/* elf_symbols_read(). */
int file_worker_symbols(struct file_worker *w, const struct worker_file *file,
			struct elf_symbols *ret);

/*
 * The symbols or the table of @file, while rbpf does other things: by a worker of its own, one file
 * at a time. @base is for the table; an image must stay valid until the end. Returns 0, -EBUSY if
 * it reads another file, -EIO or -ENOMEM.
 */
int file_worker_begin(struct file_worker *w, enum file_part part, const struct worker_file *file,
		      uint64_t base);

/*
 * What became of it, waited for if @wait. As file_worker_symbols() and file_worker_table(), or
 * -EAGAIN: it is not read yet.
 */
int file_worker_symbols_end(struct file_worker *w, bool wait, struct elf_symbols *ret);
int file_worker_table_end(struct file_worker *w, bool wait, struct cfi_rules *rules,
			  struct cfi_table *ret);

/* It is not to be read any more. */
void file_worker_abandon(struct file_worker *w);

/*
 * The descriptor by which one knows that there may be more to see of it; -1: nothing is being read.
 */
int file_worker_fd(const struct file_worker *w);

/*
 * dwarf_facts_read(), of the file or, if it answers none of the first @n_clear questions, of its
 * debug file, the path of which is written to @where, of PATH_MAX bytes: "" for the file itself.
 * -ENOENT if none of them was answered.
 */
int file_worker_facts(struct file_worker *w, const struct worker_file *file,
		      struct dwarf_fact *facts, size_t n, size_t n_clear, char *where);

struct file_lines {
	size_t n;
	struct elf_line v[FILE_MAX_LINES]; /* the innermost function first */
	void *text;			   /* what they point to; owned */
};

/*
 * elf_lines_find() for @addr. *@id tells the file from others: it is 0 at first, and set by this.
 * The file is read only if the worker has not kept its debug information; with @file->fd -1 it
 * cannot be (-ENOKEY). @ret is to be freed with file_lines_deinit().
 */
int file_worker_lines(struct file_worker *w, const struct worker_file *file, uint64_t *id,
		      uint64_t addr, struct file_lines *ret);
void file_lines_deinit(struct file_lines *lines);

/*
 * elf_code_read(). Only if elf_code_load() has succeeded, and before the processes were made: to
 * look for a library that is not there would end the worker. The instructions are within the @size
 * bytes at @start, and their text is of any bytes.
 */
int file_worker_code(struct file_worker *w, const struct worker_file *file, uint64_t start,
		     uint64_t size, struct elf_code *ret);

/*
 * demangle(): -ENOENT if @name is not mangled. A name that takes too long costs what it may take,
 * and whoever writes a file can write many: after FILE_WORKER_MAX_BAD_NAMES of them it is always
 * -EIO.
 */
int file_worker_demangle(struct file_worker *w, const char *name, struct buf *out);

#endif
