/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The arguments and answers of requests as bytes: serve.c writes answers, answers.c checks them and
 * makes of them what the rest of rbpf knows. Offsets and counts are of what follows in the same
 * answer.
 */
#ifndef RBPF_WORKER_WIRE_H
#define RBPF_WORKER_WIRE_H

#include <limits.h>
#include <stdint.h>

#include "elf/cfi.h"
#include "elf/elf_headers.h"
#include "rbpf_cfi.h"

struct wire_segment {
	uint64_t vaddr, memsz, offset, filesz;
	uint32_t write, exec; /* 0 or 1 */
};

/* Then the segments. */
struct wire_headers {
	uint64_t base;
	uint32_t n;
	char build_id[132]; /* with its NUL */
};

#define WIRE_MAX_NAMES	  32 /* that WORKER_EXPORTS looks for */
#define WIRE_MAX_SEGMENTS 16

struct wire_exports {
	uint64_t values[WIRE_MAX_NAMES]; /* 0: not defined */
	uint32_t needs;			 /* 1: it is linked with what was asked for */
	uint32_t n_segments;
	struct wire_segment segments[WIRE_MAX_SEGMENTS];
	char build_id[64];
};

/* Then the rules, then the words, which number these rules. */
struct wire_table {
	uint64_t base;
	uint32_t machine, pages, rows, n_words, n_rules, pad;
	struct cfi_stats stats;
};

/* Then the functions, the rests and the names. */
struct wire_symbols {
	uint64_t n, n_rests, names_size;
};

struct wire_function {
	uint64_t start, end;
	uint32_t name, pad; /* offset in the names; 0 is "" */
};

struct wire_rest {
	uint64_t start, end, function;
};

/* Arguments of WORKER_FACTS: these, then the strings, that offsets are in. */
struct wire_question {
	uint32_t type, member; /* member: UINT32_MAX if there is none */
};

struct wire_fact {
	uint64_t value, size;
	uint32_t answer, bit; /* enum dwarf_answer */
};

/* Then the facts, in the order of the questions. */
struct wire_facts {
	char where[PATH_MAX]; /* what they were found in, "" for the file itself */
};

#define WIRE_MAX_LINES	   32
#define WIRE_MAX_LINE_TEXT 4096 /* bytes of each string, longer ones are cut */

/* Then the strings. */
struct wire_lines {
	uint32_t n, pad;
	struct {
		uint32_t function, file, line;
	} v[WIRE_MAX_LINES];
};

/* Then the instructions, then their text. */
struct wire_code {
	uint64_t n, text_size;
};

struct wire_instruction {
	uint64_t address;
	uint32_t size, text; /* text: offset in the text */
};

#define WIRE_MAX_TLS_PLACES 8

struct wire_tls {
	uint64_t offset, vaddr, size, align;
	uint32_t defined; /* 0 or 1 */
	uint32_t n_places;
	struct {
		uint64_t place;
		uint32_t kind, pad; /* enum elf_tls_kind */
	} places[WIRE_MAX_TLS_PLACES];
};

#endif
