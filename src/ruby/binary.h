/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Which mapped file of a process holds the Ruby VM, and what that file exports.
 *
 * A Ruby is recognised by the symbols it defines, never by a file name: servers rename themselves,
 * programs embed libruby, builds are static or shared.
 */
#ifndef RBPF_RUBY_BINARY_H
#define RBPF_RUBY_BINARY_H

#include <stdint.h>
#include <sys/types.h>

struct err;
struct maps;
struct memory;

/* All addresses are of the live process. */
struct ruby_binary {
	char *path;	   /* as the target sees it; owned */
	char version[32];  /* "3.1.2" */
	char build_id[64]; /* hex, "" if none */
	uint64_t inode;
	uint64_t base;		   /* load bias */
	uint64_t text_lo, text_hi; /* executable segment */
	uint64_t data_lo, data_hi; /* writable segment, .data and .bss */
	uint64_t cObject;	   /* address of the variable rb_cObject */
	uint64_t symbols;	   /* address of ruby_global_symbols, 0 if the file does not tell */
};

/*
 * Find it among @maps. Returns 0, -ENOENT if no mapped file is a Ruby VM (@err is then not set: the
 * caller knows the words), or another error.
 */
int ruby_binary_find(pid_t pid, const struct maps *maps, const struct memory *mem,
		     struct ruby_binary *ret, struct err *err);
void ruby_binary_deinit(struct ruby_binary *bin);

#endif
