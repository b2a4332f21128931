/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The instructions of a function of an ELF file, as AT&T's syntax writes them (x86_64), or Arm's
 * (arm64).
 *
 * The disassembler is libcapstone, which is not linked with rbpf: it takes memory and time at the
 * start of each process, and one view wants it. elf_code_load() loads it into the process; a
 * process that may open no file has it from the one that forked it.
 *
 * The file may belong to a hostile target: it is read, not mapped, and no more of it than
 * CODE_MAX_BYTES. Thread-safe for different files.
 */
#ifndef RBPF_ELF_CODE_H
#define RBPF_ELF_CODE_H

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

#define CODE_MAX_BYTES (512u << 10) /* of a function; the largest of Ruby has a tenth */

struct elf_instruction {
	uint64_t address; /* the file's own */
	uint32_t size;	  /* bytes, not 0 */
	uint32_t text;	  /* where it begins in the text of all */
};

struct elf_code {
	struct elf_instruction *v; /* by address, none within another; owned */
	size_t n, cap;
	struct buf text; /* of each instruction, followed by a NUL: "mov %rsp, %rbp" */
};

#define ELF_CODE_INIT                                                                              \
	{                                                                                          \
		.text = BUF_INIT                                                                   \
	}

/* The name of the library's file. */
const char *elf_code_library(void);

/* Load the disassembler, if it is not yet. Returns 0, or -ENOPKG: there is none on this machine. */
int elf_code_load(void);

/*
 * Disassemble what @fd has in the @size bytes at @start, of which only the first CODE_MAX_BYTES are
 * looked at. Bytes that are no instruction are shown as such (".byte").
 *
 * Returns 0, -ENOPKG (no disassembler was loaded), -ENOEXEC (no 64-bit ELF file of a machine that
 * is known), -ENOENT (there is no code at @start) or -ENOMEM. @ret: elf_code_deinit().
 */
int elf_code_read(int fd, uint64_t start, uint64_t size, struct elf_code *ret);

/* Accepts ELF_CODE_INIT, and makes it that. */
void elf_code_deinit(struct elf_code *code);
#define _cleanup_elf_code_ _cleanup_(elf_code_deinit)

#endif
