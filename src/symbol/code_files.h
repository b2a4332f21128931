/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The files that processes have mapped as code, each once however many processes map it: what
 * names it, where in it the code is, and its unwind table when that is asked for. Which process
 * has mapped a file, and where, is in code_map.h.
 *
 * A file is the same as long as device, inode, size and time of change of its contents are. So a
 * library that was replaced on disk is another file than the one that processes still map, and a
 * link with another name is not. A vDSO, which is no file, is one here, known by its contents.
 *
 * A file may be gone by the time it is read: deleted, or its file system unmounted. So a descriptor
 * of it is kept until all of its parts have been read, at most CODE_FILES_OPEN of them; what was
 * closed before is opened anew through the process that was last seen to map it. But a descriptor
 * keeps the file's blocks and its file system busy, so it is closed when the last process that maps
 * the file is gone, and what was queued by then (code_readahead.h) has been read: only addresses of
 * a process that maps a file lead to its parts.
 *
 * Files are hostile targets'; all that is kept of one is bounded. Not thread-safe.
 */
#ifndef RBPF_SYMBOL_CODE_FILES_H
#define RBPF_SYMBOL_CODE_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "elf/cfi.h"
#include "elf/elf_headers.h"

struct code_symbols;
struct file_worker;
struct map;
struct worker_file;

#define CODE_FILES_MAX	16384
#define CODE_FILES_OPEN 256	    /* descriptors, at most: fds_share() */
#define CODE_FILES_IDLE 256	    /* files kept that nothing refers to any more */
#define CODE_VDSO_MAX	(64u << 10) /* bytes; they have 8 or 16 KiB */
#define CODE_VDSO_PATH	"[vdso]"

struct code_key {
	uint64_t device, inode, size; /* of a vDSO: 0, a hash of it, its size */
	int64_t mtime_ns;	      /* since 1970 */
};

enum code_table_state {
	CODE_TABLE_NOT_TRIED,
	CODE_TABLE_READY,
	CODE_TABLE_NONE, /* there is none; table_error says why */
};

/* Parts of a file that are read on demand. */
enum code_part {
	CODE_PART_TABLE = 1 << 0,
	CODE_PART_SYMBOLS = 1 << 1,
	CODE_PART_ALL = CODE_PART_TABLE | CODE_PART_SYMBOLS,
};

/* A process that maps a file, and where. The file is opened through it. */
struct code_mapping {
	pid_t pid;
	uint64_t start, end;
};

struct code_file {
	uint64_t id; /* unique; never used again */
	struct code_key key;
	char *path; /* as the first process that was seen to map it sees it; owned */
	struct elf_headers headers;
	void *image; /* of a vDSO, key.size bytes; NULL of others; owned */
	size_t references;
	size_t mapped; /* code maps with it that processes have: code_file_mapped() */
	enum code_table_state table_state;
	int table_error;	      /* CODE_TABLE_NONE: as cfi_table_read() has it */
	struct cfi_table table;	      /* CODE_TABLE_READY */
	struct code_symbols *symbols; /* made and used by code_symbols.h; freed with the file */

	/* For code_files.c alone. */
	struct code_mapping mapping;
	int fd;		     /* -1: not open; owned */
	unsigned int unread; /* parts: enum code_part */
	unsigned int queued; /* of them, those that code_readahead.h is to read */
	uint64_t used;	     /* higher than that of files used before */
};

/* A part of a file that is to be read ahead. */
struct code_job {
	struct code_file *file; /* referred to */
	enum code_part part;
};

struct code_files {
	struct file_worker *worker; /* reads them; not owned */
	struct code_job *jobs;	    /* parts to be read ahead, in this order (code_readahead.h) */
	size_t n_jobs, cap_jobs;
	bool job_begun;	      /* the worker is reading the first one */
	struct code_file **v; /* by key; owned */
	size_t n, cap;
	struct cfi_rules rules; /* of all tables */
	uint64_t next_id;
	uint64_t uses;
	size_t n_open; /* descriptors */
	size_t n_idle; /* files that nothing refers to */
	void (*free_symbols)(struct code_symbols *symbols);
};

/*
 * Make @files an empty one; @worker, which must outlive it, reads the files. @free_symbols, which
 * may be NULL, is called with the symbols that a file has when it is dropped. Returns 0 or -ENOMEM.
 */
int code_files_init(struct code_files *files, struct file_worker *worker,
		    void (*free_symbols)(struct code_symbols *symbols));

/* Drop all files, also those that are referred to. */
void code_files_deinit(struct code_files *files);

/*
 * The file that process @pid has mapped at @map, which has an inode, or of its vDSO at @map; it is
 * referred to once more and stays where it is until code_file_unref().
 *
 * Returns 0, -ENOEXEC (no ELF file of this machine), -EIO (the worker gave it up, or cannot read it
 * now), -ENOSPC (CODE_FILES_MAX of them are in use),
 * -ENOMEM, -EFAULT (the vDSO cannot be read), -EEXIST (another vDSO has the same hash), or what
 * maps_open_file() returns.
 */
int code_files_of_map(struct code_files *files, pid_t pid, const struct map *map,
		      struct code_file **ret);
int code_files_of_vdso(struct code_files *files, pid_t pid, const struct map *map,
		       struct code_file **ret);

/* Refer to @file once more, and once less: NULL is accepted, too. */
struct code_file *code_file_ref(struct code_files *files, struct code_file *file);
void code_file_unref(struct code_files *files, struct code_file *file);

/*
 * Note that one code map more with @file is that of a process, or one less: with none its
 * descriptor is closed.
 */
void code_file_mapped(struct code_file *file);
void code_file_unmapped(struct code_files *files, struct code_file *file);

/* Close its descriptor if no process maps @file, and nothing of it is to be read ahead. */
void code_file_close_unmapped(struct code_files *files, struct code_file *file);

/* Note that @pid maps @file from @start to @end, by which it can be opened. */
void code_file_set_mapping(struct code_file *file, pid_t pid, uint64_t start, uint64_t end);

/*
 * A descriptor of @file for reading a part of it, opened anew if need be; it stays the file's, and
 * valid until any other function here is called.
 *
 * Returns it, -ESTALE if the file cannot be got at any more, or -ENOENT of a vDSO, which is
 * file->image, of file->key.size bytes.
 */
int code_file_open(struct code_files *files, struct code_file *file);

/*
 * The same for the worker: @ret is valid as long as the descriptor in it. Returns 0, or -ESTALE as
 * code_file_open().
 */
int code_file_for_worker(struct code_files *files, struct code_file *file, struct worker_file *ret);

/* @part of @file is done, read or given up. When no part is left, the descriptor is closed. */
void code_file_done(struct code_files *files, struct code_file *file, enum code_part part);

/*
 * The unwind table of @file. It is read when it is first asked for, from the file or from its debug
 * file (debug_file.h), which is also looked for in the root of the process that was last seen to
 * map @file. The table must not be being read ahead.
 *
 * *@ret is valid until the table is forgotten, or the file dropped. Returns 0, -ENOENT (there is
 * none, and will be none: file->table_error), -ESTALE (the file cannot be opened now) or -ENOMEM.
 */
int code_file_table(struct code_files *files, struct code_file *file, const struct cfi_table **ret);

/*
 * Note that the table of @file was read into file->table, or why it was not: @r as of
 * file_worker_table().
 */
void code_file_set_table(struct code_files *files, struct code_file *file, int r);

/* Free a table that was copied elsewhere. It is made again if it is asked for again. */
void code_file_forget_table(struct code_file *file);

#endif
