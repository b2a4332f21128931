/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Finds the mapped file of a process that holds the Ruby VM, and what that file exports.
 *
 * A Ruby is recognised by the symbols it defines, never by a file name: servers rename themselves,
 * programs embed libruby, builds are static or shared.
 */
#ifndef RBPF_RUBY_BINARY_H
#define RBPF_RUBY_BINARY_H

#include <stdint.h>
#include <sys/types.h>

struct err;
struct file_worker;
struct maps;
struct memory;
struct ruby_constants;

/* The symbols that are looked up in the file: X(symbol). */
#define RUBY_BINARY_SYMBOLS(X)                                                                     \
	/* exported by every build, stripped or not */                                             \
	X(ruby_version)                                                                            \
	X(rb_cObject)                                                                              \
	X(rb_cString)                                                                              \
	X(rb_mKernel)                                                                              \
	X(rb_during_gc)                                                                            \
	X(rb_gc_count)                                                                             \
	X(rb_thread_main)                                                                          \
	X(rb_thread_current)                                                                       \
	X(rb_fiber_current)                                                                        \
	X(rb_fiber_yield)                                                                          \
	X(rb_id2str)                                                                               \
	/* 2.7: the one EC pointer of all threads */                                               \
	X(ruby_current_execution_context_ptr)                                                      \
	/* builds with ZJIT: not 0 when it is on */                                                \
	X(rb_zjit_entry)                                                                           \
	/* hidden: only in builds that keep .symtab, or up to 3.2 exported */                      \
	X(ruby_current_vm_ptr)                                                                     \
	X(ruby_global_symbols)

enum ruby_binary_symbol {
#define X(symbol) RUBY_SYM_##symbol,
	RUBY_BINARY_SYMBOLS(X)
#undef X
		RUBY_SYMS
};

/* All addresses are of the live process. */
struct ruby_binary {
	char *path;	   /* as the target sees it; owned */
	char version[32];  /* "3.1.2" */
	char build_id[64]; /* hex, "" if none */
	uint64_t device;   /* with inode, size and mtime_ns: the identity of the file */
	uint64_t inode;
	uint64_t size;
	int64_t mtime_ns;
	uint64_t map_start, map_end;   /* the mapping it was found by */
	uint64_t base;		       /* load bias */
	uint64_t text_lo, text_hi;     /* executable segment */
	uint64_t data_lo, data_hi;     /* writable segment, .data and .bss */
	char gc_name[32];	       /* of the collector loaded as a module, "" if none is … */
	uint64_t gc_lo, gc_hi;	       /* … and its executable mapping */
	uint64_t linker_lo, linker_hi; /* the dynamic linker's data; 0: there is none */
	uint64_t symbol[RUBY_SYMS];    /* 0: the file does not define it */
	struct ruby_constants *constants; /* NULL: not available; a reference */
};

/*
 * Find it among @maps, whose files @worker reads. Returns 0, -ENOENT if no mapped file is a Ruby VM
 * (@err is then not set: the caller knows the words), or another error.
 */
int ruby_binary_find(struct file_worker *worker, pid_t pid, const struct maps *maps,
		     const struct memory *mem, struct ruby_binary *ret, struct err *err);

/* Open the file that is mapped as @bin in process @pid. Returns a descriptor or -errno. */
int ruby_binary_open(pid_t pid, const struct ruby_binary *bin);
void ruby_binary_deinit(struct ruby_binary *bin);

#endif
