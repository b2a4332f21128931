/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Names addresses of native code: the file, the function, and whether that is one of the
 * interpreter's. The symbols of a file are read once, when they are first needed, and the name of
 * an address is made once for its file, whichever process it was sampled in. Not thread-safe.
 */
#ifndef RBPF_SYMBOL_NATIVE_NAMES_H
#define RBPF_SYMBOL_NATIVE_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "profile/reason.h"

struct code_file;
struct code_files;
struct code_map;
struct native_names;
struct perf_map;

/* Properties of a native frame. */
#define NATIVE_IS_EXEC	   (1u << 0) /* rb_vm_exec() */
#define NATIVE_IS_CORE	   (1u << 1) /* vm_exec_core() */
#define NATIVE_IS_COMPILED (1u << 2) /* Ruby code that a JIT has compiled */
#define NATIVE_IS_VM	   (1u << 3) /* in the file of the VM */
#define NATIVE_IS_NAMELESS (1u << 4) /* its function has no symbol: named by file and address */

struct native_name {
	enum frame_kind kind; /* FRAME_NATIVE, FRAME_KERNEL or FRAME_GAP */
	const char *name;     /* valid UTF-8 */
	const char
		*module; /* path of the file, as the process sees it, or "[kernel]"; "" if none */
	const char *build_id; /* hex; "" if none */
	uint64_t address;     /* in the file, of the instruction that is looked up */
	uint64_t function;    /* where its function begins in the file; 0 if unknown, or inlined */
	uint32_t is;	      /* NATIVE_IS_* */
	enum frame_reason reason; /* why it is no function */
	const char *source;	  /* the file it was compiled from; "" if unknown */
	uint32_t line;		  /* in it; 0 if unknown */
	uint32_t outer; /* the function that it was inlined into; NATIVE_NONE: it was not */
};

#define NATIVE_NONE UINT32_MAX

/*
 * @files must outlive what is made. With @inlines, functions that were inlined and source lines are
 * looked for in debug information, where there is some. Returns 0 or -ENOMEM.
 */
int native_names_new(struct code_files *files, bool inlines, struct native_names **ret);
void native_names_free(struct native_names *n);

/*
 * Make all names anew as they are asked for, with other ids: of most that there are, the code may
 * be gone. What has an id stays valid until this is called once more.
 */
void native_names_renew(struct native_names *n);

/* The lowest id that is valid. */
uint32_t native_names_first(const struct native_names *n);

/* Bytes of memory of the names that were made since native_names_renew(). */
size_t native_names_bytes(const struct native_names *n);

/*
 * Look for the interpreter in the file that @addr of a process with @map is in, which is that of
 * its VM. @label, 0 if unknown, is the address at which one of the interpreter's instructions is
 * implemented; NATIVE_MAX_LABELS of them are tried for a file. Returns 1 if the interpreter is
 * known, 0 if not, or -ENOMEM.
 */
#define NATIVE_MAX_LABELS 16
int native_names_vm(struct native_names *n, const struct code_map *map, uint64_t addr,
		    uint64_t label);

/* The code of one process. */
struct native_code {
	const struct code_map *map; /* NULL if it is not known */
	struct perf_map *perf_map;  /* what its JIT compilers say; NULL: nothing */
	bool no_wait; /* symbols that are being read are not waited for: name by address */
};

/*
 * Whether the symbols of all files that @words of a process with @map lie in, and of the file that
 * @vm is in (0: none), have been read. Those that have not are queued. Returns 1, 0 (not yet) or
 * -ENOMEM.
 */
int native_names_ready(struct native_names *n, const struct code_map *map, uint64_t vm,
		       const uint64_t *words, size_t n_words);

/*
 * Name @word, a frame as RBPF_RING_NATIVE has it, of a process with @code. *@id is the id of the
 * innermost function at that address, the same for each process that maps the file; ids are dense,
 * from native_names_first(). *@bias is added to an address of the file to get that of the process.
 * Returns 0 or -ENOMEM.
 */
int native_names_find(struct native_names *n, const struct native_code *code, uint64_t word,
		      uint32_t *id, uint64_t *bias);

/* Moves when an address may get another name than before, as more is known of interpreters. */
uint64_t native_names_version(const struct native_names *n);

/* Name @id. */
const struct native_name *native_names_get(const struct native_names *n, uint32_t id);

#endif
