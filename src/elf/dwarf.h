/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Where the members of structs are and how large structs are, from debug information (DWARF 2 to
 * 5, read through libdw). It looks at what is declared at the top of units written in C, and at
 * nothing else: no functions, no lines, no other languages. It does not look for files (see
 * debug_file.h) and never opens one.
 *
 * The file may belong to a hostile target: what is read is limited in size and in time, and a
 * caller must not trust an answer more than it trusts that file. Thread-safe for different files.
 */
#ifndef RBPF_ELF_DWARF_H
#define RBPF_ELF_DWARF_H

#include <stddef.h>
#include <stdint.h>

#define DWARF_MAX_BYTES (1ull << 30)  /* of the file, and of what is needed of it uncompressed */
#define DWARF_MAX_NS	2000000000ull /* of searching, once the sections are in memory */

enum dwarf_answer {
	DWARF_NO_TYPE = 0, /* no complete type of that name was seen */
	DWARF_NO_MEMBER,   /* there is the type, but it has no such member */
	DWARF_FOUND,
};

/* A question, and the room for its answer. */
struct dwarf_fact {
	/* A struct, union or enum, or a typedef of one. */
	const char *type;
	/*
	 * A dotted path through structs and unions within it ("machine.stack_start"); what has no
	 * name is seen through. "a|b" is a or else b. An enumerator, if the type is an enum. NULL
	 * asks for the size of the type.
	 */
	const char *member;

	enum dwarf_answer answer;
	uint64_t value;	  /* offset in bytes of the member; the enumerator's value; the size */
	uint64_t size;	  /* of the member's type in bytes; 0 if unknown, as of an array */
	unsigned int bit; /* of a bitfield: the number of its lowest bit in the byte at value */
};

/*
 * Answer the @n questions at @facts from the debug information of @fd. @alt_fd is the file that
 * this one shares debug information with (dwz's "multifile"), or -1. Both stay the caller's.
 *
 * The first complete type of a name counts. Returns 0 (also when nothing was found), -ENOENT if
 * there is no debug information, -E2BIG, -ETIME (past the limits) or -EBADMSG; what was answered
 * before an error stands.
 */
int dwarf_facts_read(int fd, int alt_fd, struct dwarf_fact *facts, size_t n);

#endif
