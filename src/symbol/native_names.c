/* SPDX-License-Identifier: GPL-2.0-only */
#include "symbol/native_names.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/intern.h"
#include "base/utf8.h"
#include "elf/symbols.h"
#include "symbol/code_files.h"
#include "symbol/code_map.h"
#include "symbol/code_symbols.h"
#include "symbol/kernel_symbols.h"
#include "symbol/perf_map.h"
#include "worker/file_worker.h"

#define KERNEL_MODULE "[kernel]"

/* What a name is found by. */
struct name_key {
	uint64_t file;	  /* id of the code file + 1; 0: none, what is told by … */
	uint64_t address; /* … in the file, or the address of the kernel, or what it stands for */
	uint32_t kind;	  /* enum frame_kind */
	uint32_t code;	  /* enum rbpf_code_kind of code of no file, or OF_* */
	uint32_t is_vm;	  /* how much was known of its interpreter, if the file is a VM's */
	uint32_t depth;	  /* of functions that were inlined: 0 is the innermost one */
};

#define OF_PERF_MAP UINT32_MAX	     /* the address is the id of a string */
#define OF_UNREAD   (UINT32_MAX - 1) /* in a file whose symbols were not waited for */

/* Names, whose ids begin with that of the first. */
struct named {
	uint32_t first;
	struct intern keys;
	struct native_name *v; /* by id of its key; owned */
	size_t cap;
	struct intern strings;
};

struct native_names {
	struct code_files *files;
	bool inlines;
	struct file_lines lines; /* of the address that was last asked about … */
	uint64_t lines_of;	 /* … of this file: its id + 1; 0: none */
	uint64_t lines_at;
	struct kernel_symbols kernel;
	uint64_t version;
	struct named now,
		former; /* what names are found in, and those before native_names_renew() */
};

static const enum frame_reason gaps[RBPF_NATIVE_END_COUNT] = {
	[RBPF_NATIVE_OUTERMOST] = REASON_GAP,
	[RBPF_NATIVE_NO_MAP] = REASON_GAP_NO_MAP,
	[RBPF_NATIVE_NO_RANGE] = REASON_GAP_UNKNOWN_CODE,
	[RBPF_NATIVE_UNREAD] = REASON_GAP_UNREAD,
	[RBPF_NATIVE_NO_TABLE] = REASON_GAP_NO_TABLE,
	[RBPF_NATIVE_NO_ROOM] = REASON_GAP_NO_ROOM,
	[RBPF_NATIVE_NO_RULE] = REASON_GAP_NO_RULE,
	[RBPF_NATIVE_REGISTER] = REASON_GAP_REGISTER,
	[RBPF_NATIVE_FAULT] = REASON_GAP_FAULT,
	[RBPF_NATIVE_STUCK] = REASON_GAP_STUCK,
	[RBPF_NATIVE_JIT] = REASON_GAP_COMPILED,
	[RBPF_NATIVE_LIMIT] = REASON_GAP_LIMIT,
};

static void named_deinit(struct named *named)
{
	intern_deinit(&named->keys);
	intern_deinit(&named->strings);
	free(named->v);
	*named = (struct named) { 0 };
}

int native_names_new(struct code_files *files, bool inlines, struct native_names **ret)
{
	struct native_names *n = calloc(1, sizeof(*n));

	if (!n)
		return -ENOMEM;
	n->files = files;
	n->inlines = inlines;
	*ret = n;
	return 0;
}

void native_names_free(struct native_names *n)
{
	if (!n)
		return;
	file_lines_deinit(&n->lines);
	kernel_symbols_deinit(&n->kernel);
	named_deinit(&n->now);
	named_deinit(&n->former);
	free(n);
}

void native_names_renew(struct native_names *n)
{
	named_deinit(&n->former);
	n->former = n->now;
	n->now = (struct named) { .first = n->former.first + (uint32_t)n->former.keys.count };
}

uint32_t native_names_first(const struct native_names *n)
{
	return n->former.keys.count ? n->former.first : n->now.first;
}

size_t native_names_bytes(const struct native_names *n)
{
	return intern_bytes(&n->now.keys) + intern_bytes(&n->now.strings) +
	       n->now.cap * sizeof(*n->now.v);
}

/* ---- files ---- */

/* 0: it is none, for all that is known; 2: and where its vm_exec_core() is, too. */
static unsigned int known_of_vm(const struct code_symbols *s)
{
	return s && s->is_vm ? 1 + (s->interpreter.core.n > 0) : 0;
}

int native_names_vm(struct native_names *n, const struct code_map *map, uint64_t addr,
		    uint64_t label)
{
	const struct code_range *range = code_map_find(map, addr);
	struct interpreter interpreter;
	struct code_symbols *s;
	int fd, r;

	if (!range || !range->file)
		return 0;
	s = code_symbols_get(n->files, range->file, n->inlines);
	if (!s)
		return -ENOMEM;
	if (known_of_vm(s) == 2)
		return 1;
	if ((s->is_vm && !label) || s->labels > NATIVE_MAX_LABELS)
		return 0;
	s->labels++;
	fd = code_file_open(n->files, range->file);
	r = fd < 0 ? fd
		   : interpreter_find(n->files->worker, fd, &range->file->headers, &s->elf,
				      label ? label - range->bias : 0, &interpreter);
	if (r)
		return r == -ENOMEM ? r : 0;
	s->interpreter = interpreter;
	s->is_vm = true;
	n->version++;
	return known_of_vm(s) == 2;
}

/*
 * What a word of a stack is looked up by, one that is no gap and none of the kernel: the address of
 * the instruction that is executed, or of a byte of the call that a return address is behind.
 */
static uint64_t address_of(uint64_t word)
{
	return word & RBPF_NATIVE_EXACT ? word & ~RBPF_NATIVE_EXACT : word - 1;
}

/* The part of @map that such a word is in. */
static const struct code_range *range_of(const struct code_map *map, uint64_t word)
{
	return map ? code_map_find(map, address_of(word)) : NULL;
}

int native_names_ready(struct native_names *n, const struct code_map *map, uint64_t vm,
		       const uint64_t *words, size_t n_words)
{
	const struct code_range *range = map && vm ? code_map_find(map, vm) : NULL;
	int r, ready = 1;
	size_t i;

	for (i = 0; i <= n_words; i++) {
		if (i && words[i - 1] >= RBPF_NATIVE_END_COUNT &&
		    !(words[i - 1] & RBPF_NATIVE_KERNEL))
			range = range_of(map, words[i - 1]);
		if (!range || !range->file)
			continue;
		r = code_symbols_queue(n->files, range->file, n->inlines);
		if (r < 0)
			return r;
		ready &= r;
	}
	return ready;
}

/* ---- names ---- */

static int add_string(struct native_names *n, const char *text, uint32_t *ret)
{
	struct buf clean _cleanup_buf_ = BUF_INIT;

	utf8_sanitise(&clean, text, strlen(text));
	return buf_failed(&clean) ? -ENOMEM : intern_str(&n->now.strings, buf_str(&clean), ret);
}

static int set_string(struct native_names *n, const char *text, const char **ret)
{
	uint32_t id;
	int r;

	r = add_string(n, text, &id);
	if (!r)
		*ret = intern_get(&n->now.strings, id, NULL);
	return r;
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static uint32_t parts_of_vm(const struct code_symbols *s, uint64_t function)
{
	if (!s->is_vm)
		return 0;
	if (interpreter_is(&s->interpreter.exec, function))
		return NATIVE_IS_VM | NATIVE_IS_EXEC;
	if (interpreter_is(&s->interpreter.core, function))
		return NATIVE_IS_VM | NATIVE_IS_CORE;
	return NATIVE_IS_VM;
}

static int set_demangled(struct native_names *n, struct code_symbols *s, const char *name,
			 const char **ret)
{
	struct buf text _cleanup_buf_ = BUF_INIT;
	int r = -ENOENT;

	if (!s->no_demangle)
		r = file_worker_demangle(n->files->worker, name, &text);
	if (r == -ENOMEM)
		return r;
	s->no_demangle = s->no_demangle || r == -EIO;
	return set_string(n, r ? name : buf_str(&text), ret);
}

/* What is the same for all functions of the file. */
static int name_file(struct native_names *n, const struct code_file *file, struct native_name *ret)
{
	int r;

	r = set_string(n, file->path, &ret->module);
	return r ? r : set_string(n, file->headers.build_id, &ret->build_id);
}

static int name_place(struct native_names *n, const struct code_file *file, uint64_t address,
		      struct native_name *ret)
{
	char place[512];

	ret->is |= NATIVE_IS_NAMELESS;
	snprintf(place, sizeof(place), "%s+0x%" PRIx64, base_name(file->path), address);
	return set_string(n, place, &ret->name);
}

/* The function at an address of a file: its name, or where it is, for a file that does not tell. */
static int name_function(struct native_names *n, const struct code_file *file,
			 struct code_symbols *s, uint64_t address, struct native_name *ret)
{
	const struct elf_function *f = elf_symbols_find(&s->elf, address);

	ret->address = address;
	ret->function = f ? f->start : 0;
	ret->is = parts_of_vm(s, ret->function);
	if (f && f->name[0])
		return set_demangled(n, s, f->name, &ret->name);
	if (ret->is & (NATIVE_IS_EXEC | NATIVE_IS_CORE))
		return set_string(n, ret->is & NATIVE_IS_EXEC ? INTERPRETER_EXEC : INTERPRETER_CORE,
				  &ret->name);
	return name_place(n, file, f ? f->start : address, ret);
}

static int set_line(struct native_names *n, const struct elf_line *line, struct native_name *ret)
{
	ret->line = line->line;
	return set_string(n, line->file, &ret->source);
}

/* The function that was inlined at an address, @depth from the innermost one. */
static int name_inlined(struct native_names *n, struct code_symbols *s, uint64_t address,
			const struct elf_line *line, struct native_name *ret)
{
	int r;

	ret->address = address;
	ret->is = s->is_vm ? NATIVE_IS_VM : 0;
	r = set_demangled(n, s, line->function[0] ? line->function : "[inlined]", &ret->name);
	return r ? r : set_line(n, line, ret);
}

/*
 * What debug information says about @address of @file: kept, for all the functions inlined there.
 */
static int find_lines(struct native_names *n, struct code_file *file, struct code_symbols *s,
		      uint64_t address, const struct file_lines **ret)
{
	struct worker_file from = { .fd = -1, .path = file->path };
	int r = -ENOENT;

	*ret = &n->lines;
	if (n->lines_of == file->id + 1 && n->lines_at == address)
		return 0;
	file_lines_deinit(&n->lines);
	n->lines_of = file->id + 1;
	n->lines_at = address;
	if (s->no_lines)
		return 0;
	code_file_for_worker(n->files, file, &from);
	r = file_worker_lines(n->files->worker, &from, &s->lines_id, address, &n->lines);
	if (r == -ENOMEM)
		n->lines_of = 0; /* nothing is known of it yet */
	if (r && r != -ENOMEM) {
		s->no_lines = true;
		code_file_done(n->files, file, CODE_PART_SYMBOLS);
	}
	return r == -ENOMEM ? r : 0;
}

static int find_or_make(struct native_names *n, const struct name_key *key, struct code_file *file,
			uint32_t *id);

/*
 * Name the function at @key of @file, and those it was inlined into: they get names of their own.
 */
static int name_in_file(struct native_names *n, const struct name_key *key, struct code_file *file,
			struct native_name *ret)
{
	const struct file_lines *lines;
	struct name_key outer = *key;
	struct code_symbols *s;
	int r;

	r = name_file(n, file, ret);
	if (r)
		return r;
	if (key->code == OF_UNREAD) {
		ret->address = key->address;
		return name_place(n, file, key->address, ret);
	}
	s = code_symbols_get(n->files, file, n->inlines);
	r = s ? find_lines(n, file, s, key->address, &lines) : -ENOMEM;
	if (r)
		return r;
	if (key->depth + 1 >= lines->n) {
		r = name_function(n, file, s, key->address, ret);
		return r || !lines->n ? r : set_line(n, &lines->v[lines->n - 1], ret);
	}
	r = name_inlined(n, s, key->address, &lines->v[key->depth], ret);
	if (r)
		return r;
	outer.depth++;
	return find_or_make(n, &outer, file, &ret->outer);
}

static int name_in_kernel(struct native_names *n, uint64_t address, struct native_name *ret)
{
	struct kernel_symbol s = { .name = KERNEL_MODULE, .module = "" };
	int r;

	r = kernel_symbols_find(&n->kernel, address, &s);
	if (r == -ENOMEM)
		return r;
	r = set_string(n, s.name, &ret->name);
	return r ? r : set_string(n, s.module[0] ? s.module : KERNEL_MODULE, &ret->module);
}

/* No function, and so no name of its own. */
static void set_reason(enum frame_reason reason, struct native_name *ret)
{
	ret->reason = reason;
	ret->name = frame_reason_label(reason);
}

static void name_of_no_file(uint32_t code, struct native_name *ret)
{
	const bool compiled = code == RBPF_CODE_YJIT || code == RBPF_CODE_RECORD;

	ret->is = compiled ? NATIVE_IS_COMPILED : NATIVE_IS_NAMELESS;
	set_reason(compiled ? REASON_COMPILED_CODE : REASON_ANONYMOUS_CODE, ret);
}

static int make_name(struct native_names *n, const struct name_key *key, struct code_file *file,
		     struct native_name *ret)
{
	*ret = (struct native_name) { .kind = key->kind,
				      .name = "",
				      .module = "",
				      .build_id = "",
				      .source = "",
				      .outer = NATIVE_NONE };
	if (file)
		return name_in_file(n, key, file, ret);
	if (key->kind == FRAME_KERNEL)
		return name_in_kernel(n, key->address, ret);
	if (key->kind == FRAME_GAP) {
		set_reason(gaps[key->address], ret);
		return 0;
	}
	if (key->code != OF_PERF_MAP) {
		name_of_no_file(key->code, ret);
		return 0;
	}
	ret->name = intern_get(&n->now.strings, (uint32_t)key->address, NULL);
	ret->is = NATIVE_IS_COMPILED;
	return 0;
}

/*
 * Each name is made in memory of its own and copied to n->now.v at the end: the names of the
 * functions that it was inlined into are added to n->now.v meanwhile, which may move it.
 */
static int find_or_make(struct native_names *n, const struct name_key *key, struct code_file *file,
			uint32_t *id)
{
	struct native_name name;
	uint32_t own;
	bool is_new;
	int r;

	/* First, so that no key is without a name after a failure. */
	r = array_reserve(n->now.v, n->now.cap, n->now.keys.count + 1);
	if (!r)
		r = intern_add(&n->now.keys, key, sizeof(*key), &own, &is_new);
	if (!r && is_new) {
		r = make_name(n, key, file, &name);
		n->now.v[own] = name;
	}
	if (!r)
		*id = n->now.first + own;
	return r;
}

/* What @word is found by; *@file is where it is. */
static struct name_key key_of(const struct native_code *code, uint64_t word,
			      struct code_file **file, uint64_t *bias)
{
	struct name_key key = { .kind = FRAME_NATIVE };
	const struct code_range *range;

	*file = NULL;
	*bias = 0;
	if (word < RBPF_NATIVE_END_COUNT) {
		key.kind = FRAME_GAP;
		key.address = word;
		return key;
	}
	if (word & RBPF_NATIVE_KERNEL) {
		key.kind = FRAME_KERNEL;
		key.address = word;
		return key;
	}
	range = range_of(code->map, word);
	key.code = range ? range->kind : RBPF_CODE_NO_TABLE;
	if (range && range->file) {
		*file = range->file;
		*bias = range->bias;
		key.file = range->file->id + 1;
		key.address = address_of(word) - range->bias;
		key.is_vm = known_of_vm(range->file->symbols);
		key.code = code->no_wait && code_symbols_queued(range->file) ? OF_UNREAD : 0;
	}
	return key;
}

/* What a JIT compiler calls its code at @word. */
static int key_of_compiled(struct native_names *n, struct perf_map *map, uint64_t word,
			   struct name_key *key)
{
	const char *name;
	uint32_t id;
	int r;

	if (key->kind != FRAME_NATIVE || key->file || !map)
		return 0;
	name = perf_map_find(map, address_of(word), NULL);
	if (!name)
		return 0;
	r = add_string(n, name, &id);
	if (r)
		return r;
	key->code = OF_PERF_MAP;
	key->address = id;
	return 0;
}

int native_names_find(struct native_names *n, const struct native_code *code, uint64_t word,
		      uint32_t *id, uint64_t *bias)
{
	struct code_file *file;
	struct name_key key = key_of(code, word, &file, bias);
	int r;

	r = key_of_compiled(n, code->perf_map, word, &key);
	return r ? r : find_or_make(n, &key, file, id);
}

uint64_t native_names_version(const struct native_names *n)
{
	return n->version;
}

const struct native_name *native_names_get(const struct native_names *n, uint32_t id)
{
	return id < n->now.first ? &n->former.v[id - n->former.first]
				 : &n->now.v[id - n->now.first];
}
