/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The memory of a Ruby that never ran: a sparse address space in which a test lays out threads with
 * their VM stacks, iseqs, method entries, classes, strings and the symbol table, as the layout row
 *of one version says, and which it presents as a struct memory. Pages can be made unreadable, and a
 * hook sees each read before it happens, so that memory can change between two of them.
 *
 *	struct ruby_image *img = image_new("3.3");
 *	uint64_t foo = image_class(img, "Foo");
 *	uint64_t iseq = image_iseq(img, &(struct image_iseq) { .label = "bar", .path = "/a.rb" });
 *	struct image_thread t = image_thread(img, 4096);
 *
 *	image_push_method(&t, iseq, 3, image_ment(img, foo, "bar", IMAGE_ISEQ));
 *	... ruby_walk(&img->vm.mem, &img->layout.walk, t.ec, ...)
 *	image_free(img);
 *
 * All of it is written from Ruby's own sources, not from the code under test; in particular the
 * succinct line index has an encoder of its own. Running out of memory, or an address that was not
 * laid out, aborts the test.
 */
#ifndef RBPF_TESTS_RUBY_IMAGE_H
#define RBPF_TESTS_RUBY_IMAGE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ruby/layout.h"
#include "ruby/vm.h"
#include "target/memory.h"

#define IMAGE_PAGE	  4096u
#define IMAGE_MAX_REGIONS 512
#define IMAGE_FIRST	  0x7f0000000000ull
#define IMAGE_HEAP_SIZE	  (1u << 20)
#define IMAGE_GAP	  0x100000ull /* never mapped, between two regions */

/* Types and flags, by Ruby's own names (include/ruby/internal/value_type.h, internal/imemo.h). */
#define IMAGE_T_OBJECT	  0x01ull
#define IMAGE_T_CLASS	  0x02ull
#define IMAGE_T_MODULE	  0x03ull
#define IMAGE_T_STRING	  0x05ull
#define IMAGE_T_ARRAY	  0x07ull
#define IMAGE_T_IMEMO	  0x1aull
#define IMAGE_T_ICLASS	  0x1cull
#define IMAGE_T_ZOMBIE	  0x1dull
#define IMAGE_IMEMO(type) (IMAGE_T_IMEMO | (uint64_t)(type) << 12)

enum { IMAGE_CREF = 1, IMAGE_SVAR = 2, IMAGE_MENT = 6, IMAGE_ISEQ_IMEMO = 7 };

/* rb_method_type_t */
enum { IMAGE_ISEQ = 0, IMAGE_CFUNC = 1, IMAGE_BMETHOD = 4 };

/* vm_core.h: VM_FRAME_MAGIC_* and VM_FRAME_FLAG_* */
#define IMAGE_METHOD	    0x11110001ull
#define IMAGE_BLOCK	    0x22220001ull
#define IMAGE_CLASS_FRAME   0x33330001ull
#define IMAGE_TOP	    0x44440001ull
#define IMAGE_CFUNC_FRAME   0x55550001ull
#define IMAGE_IFUNC	    0x66660001ull
#define IMAGE_EVAL	    0x77770001ull
#define IMAGE_RESCUE	    0x78880001ull
#define IMAGE_DUMMY	    0x79990001ull
#define IMAGE_LOCAL	    0x0002ull
#define IMAGE_ESCAPED	    0x0004ull
#define IMAGE_FINISH	    0x0020ull
#define IMAGE_BMETHOD_FRAME 0x0040ull
#define IMAGE_CFRAME	    0x0080ull
#define IMAGE_LAMBDA	    0x0100ull

/* Where the symbol table begins to be filled; serial 33 is "!" in every Ruby. */
#define IMAGE_SERIAL_BANG   33
#define IMAGE_SERIAL_FIRST  600 /* of image_id(): in the second unit of the table */
#define IMAGE_ID_UNIT	    512

struct image_region {
	uint64_t addr;
	size_t size; /* whole pages */
	uint8_t *bytes;
	bool *hidden; /* by page */
};

struct ruby_image {
	struct image_region regions[IMAGE_MAX_REGIONS];
	size_t n_regions;
	uint64_t next_region;
	uint64_t heap, heap_left;
	struct ruby_layout layout;
	struct ruby_vm vm; /* ready for iseq.h, method.h, object.h */

	uint64_t object; /* rb_cObject */
	uint64_t id_units[4];
	uint64_t next_serial;

	size_t n_reads; /* calls of read_spans */
	size_t n_spans; /* pieces read in them */
	void (*on_read)(struct ruby_image *img, uint64_t addr, size_t len);
	void *arg; /* of on_read */
};

/* ---- the address space ---- */

static inline uint64_t image_round(uint64_t v, uint64_t to)
{
	return (v + to - 1) / to * to;
}

/* Map @size zero bytes at @addr, which must be free. */
static inline void image_map(struct ruby_image *img, uint64_t addr, size_t size)
{
	struct image_region *r = &img->regions[img->n_regions];

	if (img->n_regions == IMAGE_MAX_REGIONS || addr % IMAGE_PAGE)
		abort();
	size = image_round(size, IMAGE_PAGE);
	*r = (struct image_region) {
		.addr = addr,
		.size = size,
		.bytes = calloc(1, size),
		.hidden = calloc(size / IMAGE_PAGE, sizeof(bool)),
	};
	if (!r->bytes || !r->hidden)
		abort();
	img->n_regions++;
}

/* The same at an address of its own, with nothing mapped around it. */
static inline uint64_t image_region(struct ruby_image *img, size_t size)
{
	uint64_t addr = img->next_region;

	image_map(img, addr, size);
	img->next_region += image_round(size, IMAGE_PAGE) + IMAGE_GAP;
	return addr;
}

static inline struct image_region *image_find(const struct ruby_image *img, uint64_t addr,
					      size_t len)
{
	for (size_t i = 0; i < img->n_regions; i++) {
		const struct image_region *r = &img->regions[i];

		if (addr >= r->addr && addr - r->addr < r->size &&
		    len <= r->size - (addr - r->addr))
			return (struct image_region *)r;
	}
	return NULL;
}

/* @len bytes at @addr, to write to. */
static inline void *image_at(const struct ruby_image *img, uint64_t addr, size_t len)
{
	struct image_region *r = image_find(img, addr, len);

	if (!r)
		abort();
	return r->bytes + (addr - r->addr);
}

static inline void image_put64(struct ruby_image *img, uint64_t addr, uint64_t v)
{
	memcpy(image_at(img, addr, 8), &v, 8);
}

static inline void image_put32(struct ruby_image *img, uint64_t addr, uint32_t v)
{
	memcpy(image_at(img, addr, 4), &v, 4);
}

static inline uint64_t image_get64(const struct ruby_image *img, uint64_t addr)
{
	uint64_t v;

	memcpy(&v, image_at(img, addr, 8), 8);
	return v;
}

/* Make the pages of [addr, addr + len) unreadable, or readable again. */
static inline void image_hide(struct ruby_image *img, uint64_t addr, size_t len, bool hide)
{
	struct image_region *r = image_find(img, addr, len);

	if (!r || !len)
		abort();
	for (size_t i = (addr - r->addr) / IMAGE_PAGE; i <= (addr - r->addr + len - 1) / IMAGE_PAGE;
	     i++)
		r->hidden[i] = hide;
}

/* All of it: what is left of a process that has ended. */
static inline void image_hide_all(struct ruby_image *img, bool hide)
{
	for (size_t i = 0; i < img->n_regions; i++)
		image_hide(img, img->regions[i].addr, img->regions[i].size, hide);
}

static inline bool image_read(const struct ruby_image *img, uint64_t addr, void *dst, size_t len)
{
	const struct image_region *r;

	if (!len)
		return true;
	r = image_find(img, addr, len);
	if (!r)
		return false;
	for (size_t i = (addr - r->addr) / IMAGE_PAGE; i <= (addr - r->addr + len - 1) / IMAGE_PAGE;
	     i++)
		if (r->hidden[i])
			return false;
	memcpy(dst, r->bytes + (addr - r->addr), len);
	return true;
}

static inline void image_read_spans(const struct memory *mem, struct memory_span *spans, size_t n)
{
	struct ruby_image *img = (struct ruby_image *)mem->image;

	img->n_reads++;
	for (size_t i = 0; i < n; i++) {
		if (img->on_read)
			img->on_read(img, spans[i].addr, spans[i].len);
		img->n_spans++;
		spans[i].ok = image_read(img, spans[i].addr, spans[i].dst, spans[i].len);
	}
}

/* @size zero bytes of the heap, aligned to 8 like a VALUE. */
static inline uint64_t image_alloc(struct ruby_image *img, size_t size)
{
	uint64_t addr;

	size = image_round(size ? size : 8, 8);
	if (size > IMAGE_HEAP_SIZE / 4)
		return image_region(img, size);
	if (size > img->heap_left) {
		img->heap = image_region(img, IMAGE_HEAP_SIZE);
		img->heap_left = IMAGE_HEAP_SIZE;
	}
	addr = img->heap;
	img->heap += size;
	img->heap_left -= size;
	return addr;
}

/* @size bytes that end where the mapping ends: one byte further cannot be read. */
static inline uint64_t image_alloc_last(struct ruby_image *img, size_t size)
{
	size_t room = image_round(size ? size : 8, IMAGE_PAGE);

	return image_region(img, room) + room - image_round(size, 8);
}

/* ---- strings and arrays ---- */

#define IMAGE_NOEMBED	  (1ull << 13) /* of a String */
#define IMAGE_ARRAY_EMBED (1ull << 13)

/* A String whose bytes are elsewhere, as Ruby keeps long and shared ones. */
static inline uint64_t image_string_heap(struct ruby_image *img, const void *bytes, size_t len)
{
	uint64_t s = image_alloc(img, 40), data = image_alloc(img, len);

	memcpy(image_at(img, data, len ? len : 1), bytes, len);
	image_put64(img, s, IMAGE_T_STRING | IMAGE_NOEMBED);
	image_put64(img, s + 16, len);
	image_put64(img, s + 24, data);
	return s;
}

/* A String that holds its bytes; up to 3.1 at most 23. */
static inline uint64_t image_string_embed(struct ruby_image *img, const void *bytes, size_t len)
{
	uint64_t s;

	if (img->layout.string_len_in_flags) {
		if (len > 23)
			abort();
		s = image_alloc(img, 40);
		image_put64(img, s, IMAGE_T_STRING | (uint64_t)len << 14);
		memcpy(image_at(img, s + 16, 24), bytes, len);
		return s;
	}
	s = image_alloc(img, 24 + len + 8);
	image_put64(img, s, IMAGE_T_STRING);
	image_put64(img, s + 16, len);
	memcpy(image_at(img, s + 24, len ? len : 1), bytes, len);
	return s;
}

static inline uint64_t image_string(struct ruby_image *img, const char *s)
{
	return strlen(s) > 23 ? image_string_heap(img, s, strlen(s))
			      : image_string_embed(img, s, strlen(s));
}

static inline uint64_t image_array(struct ruby_image *img, const uint64_t *v, size_t n)
{
	uint64_t a = image_alloc(img, 40), data = image_alloc(img, n * 8);

	image_put64(img, a, IMAGE_T_ARRAY);
	image_put64(img, a + 16, n);
	image_put64(img, a + 24, n);
	image_put64(img, a + 32, data);
	for (size_t i = 0; i < n; i++)
		image_put64(img, data + i * 8, v[i]);
	return a;
}

/* At most 3 elements, in the slot itself. */
static inline uint64_t image_array_embed(struct ruby_image *img, const uint64_t *v, size_t n)
{
	uint64_t a = image_alloc(img, 40);

	if (n > 3)
		abort();
	image_put64(img, a, IMAGE_T_ARRAY | IMAGE_ARRAY_EMBED | (uint64_t)n << 15);
	for (size_t i = 0; i < n; i++)
		image_put64(img, a + 16 + i * 8, v[i]);
	return a;
}

/* ---- the symbol table ---- */

/* The serial that stands in ID @id. */
static inline uint64_t image_serial_put(struct ruby_image *img, uint64_t serial, const char *name)
{
	uint64_t unit = serial / IMAGE_ID_UNIT;

	if (unit >= sizeof(img->id_units) / sizeof(img->id_units[0]))
		abort();
	image_put64(img, img->id_units[unit] + serial % IMAGE_ID_UNIT * 16,
		    image_string(img, name));
	return serial;
}

/* A new ID for @name, of local scope. */
static inline uint64_t image_id(struct ruby_image *img, const char *name)
{
	return image_serial_put(img, img->next_serial++, name) << 4 | 1;
}

static inline void image_symbols(struct ruby_image *img)
{
	uint64_t units[4], symbols = image_region(img, IMAGE_PAGE);

	for (size_t i = 0; i < 4; i++) {
		uint64_t v[1] = { 0 }, unit = image_array(img, v, 1);

		img->id_units[i] = image_alloc(img, IMAGE_ID_UNIT * 16);
		image_put64(img, unit + 16, (uint64_t)IMAGE_ID_UNIT * 2);
		image_put64(img, unit + 32, img->id_units[i]);
		units[i] = unit;
	}
	image_put32(img, symbols, 1000); /* last_id */
	image_put64(img, symbols + 8, image_alloc(img, 40));
	image_put64(img, symbols + 16, image_array(img, units, 4));
	img->next_serial = IMAGE_SERIAL_FIRST;
	image_serial_put(img, IMAGE_SERIAL_BANG, "!");
	img->vm.symbols = symbols;
	img->vm.binary.data_lo = symbols;
	img->vm.binary.data_hi = symbols + IMAGE_PAGE;
}

/* ---- classes ---- */

/* Up to 3.1: an instance variable of @klass, in its st_table of three entries. */
static inline void image_iv_put(struct ruby_image *img, uint64_t klass, uint64_t key,
				uint64_t record)
{
	uint64_t ext = image_get64(img, klass + 24), tbl = image_get64(img, ext + 8), entries, n;

	if (!tbl) {
		tbl = image_alloc(img, 56);
		image_put64(img, ext + 8, tbl);
		image_put64(img, tbl + 48, image_alloc(img, 8 * 24));
	}
	n = image_get64(img, tbl + 40);
	entries = image_get64(img, tbl + 48);
	if (n == 8)
		abort();
	image_put64(img, entries + n * 24, key * 31);
	image_put64(img, entries + n * 24 + 8, key);
	image_put64(img, entries + n * 24 + 16, record);
	image_put64(img, tbl + 40, n + 1);
	image_put64(img, tbl + 16, n + 1);
}

static inline void image_class_name(struct ruby_image *img, uint64_t klass, const char *name)
{
	uint64_t path = image_string(img, name);

	if (img->layout.class_form == RUBY_CLASS_IV_TBL) {
		image_iv_put(img, klass, img->vm.key_classpath, path);
		return;
	}
	image_put64(img, klass + img->layout.class_path, path);
	*(uint8_t *)image_at(img, klass + img->layout.class_permanent, 1) |= 1;
}

static inline uint64_t image_class_of(struct ruby_image *img, uint64_t flags, const char *name)
{
	uint64_t klass = image_alloc(img, 192);

	image_put64(img, klass, flags);
	if (img->layout.class_form == RUBY_CLASS_IV_TBL)
		image_put64(img, klass + 24, image_alloc(img, 112));
	if (name)
		image_class_name(img, klass, name);
	return klass;
}

/* @name NULL: anonymous. */
static inline uint64_t image_class(struct ruby_image *img, const char *name)
{
	return image_class_of(img, IMAGE_T_CLASS, name);
}

static inline uint64_t image_module(struct ruby_image *img, const char *name)
{
	return image_class_of(img, IMAGE_T_MODULE, name);
}

/* The singleton class of @object. */
static inline uint64_t image_singleton(struct ruby_image *img, uint64_t object)
{
	uint64_t klass = image_class_of(img, IMAGE_T_CLASS | img->layout.singleton_flag, NULL);

	if (img->layout.class_form == RUBY_CLASS_IV_TBL)
		image_iv_put(img, klass, img->vm.key_attached, object);
	else
		image_put64(img, klass + img->layout.class_attached, object);
	image_put64(img, object + 8, klass);
	return klass;
}

/* ---- method entries ---- */

/* A method entry of @owner; @name is its original name, or NULL for an ID that leads nowhere. */
static inline uint64_t image_ment(struct ruby_image *img, uint64_t owner, const char *name,
				  int type)
{
	uint64_t me = image_alloc(img, 40), def = image_alloc(img, 48);
	uint64_t id = name ? image_id(img, name) : 0;

	image_put64(img, def, (uint64_t)type);
	image_put64(img, def + 32, id);
	image_put64(img, me, IMAGE_IMEMO(IMAGE_MENT));
	image_put64(img, me + 8, owner);
	image_put64(img, me + 16, def);
	image_put64(img, me + 24, id);
	image_put64(img, me + 32, owner);
	return me;
}

static inline uint64_t image_imemo(struct ruby_image *img, int type, uint64_t first)
{
	uint64_t v = image_alloc(img, 40);

	image_put64(img, v, IMAGE_IMEMO(type));
	image_put64(img, v + 8, first);
	return v;
}

/* ---- instruction sequences ---- */

struct image_line {
	uint32_t position; /* of the first instruction of the line */
	uint32_t line;
};

struct image_iseq {
	uint32_t type;			/* enum ruby_iseq_type */
	const char *label;		/* as stored: "block in foo" */
	const char *base;		/* NULL: label */
	const char *path;		/* NULL: "/app/x.rb" */
	const char *real;		/* the realpath, if the pathobj is to be an Array */
	uint64_t local;			/* local_iseq; 0: itself */
	uint64_t parent;		/* parent_iseq; 0: local, if that is another one */
	uint32_t size;			/* words; 0: 10 */
	uint32_t first_line;		/* 0: 1 */
	uint32_t attrs;			/* builtin_attrs */
	const struct image_line *lines; /* ascending, the first at 0; NULL: the first line */
	uint32_t n_lines;
};

/*
 * succ_index_table of Ruby's iseq.c: for each position the number of lines that have begun there or
 * before. 54 positions at 7 bits, 9 to a word; then blocks of 512, each {rank before it, 7 ranks of
 * 9 bits within it, 512 bits}. Ruby allocates no more words than the code needs.
 */
static inline uint64_t *image_index_encode(const struct image_line *lines, uint32_t n,
					   uint32_t size, size_t *words)
{
	size_t imm = size < 54 ? (size + 8) / 9 : 6;
	size_t blocks = size > 54 ? (size - 54 + 511) / 512 : 0;
	uint64_t *v = calloc(imm + blocks * 10 + 1, 8);
	uint32_t rank = 0, pos = 0;

	if (!v)
		abort();
	for (; pos < imm * 9 && pos < 54; pos++) {
		if (rank < n && lines[rank].position == pos)
			rank++;
		v[pos / 9] |= (uint64_t)rank << pos % 9 * 7;
	}
	for (size_t b = 0; b < blocks; b++) {
		uint64_t *block = v + imm + b * 10, before = rank;

		block[0] = rank;
		for (uint32_t i = 0; i < 512; i++, pos++) {
			if (i && i % 64 == 0)
				block[1] |= (rank - before) << (i / 64 - 1) * 9;
			if (rank < n && lines[rank].position == pos) {
				block[2 + i / 64] |= 1ull << i % 64;
				rank++;
			}
		}
	}
	*words = imm + blocks * 10;
	return v;
}

static inline void image_iseq_lines(struct ruby_image *img, uint64_t body,
				    const struct image_line *lines, uint32_t n, uint32_t size)
{
	const struct ruby_layout *l = &img->layout;
	uint64_t entries = image_alloc_last(img, (size_t)n * l->insn_entry), table;
	uint64_t *index;
	size_t words;

	for (uint32_t i = 0; i < n; i++)
		image_put32(img, entries + (uint64_t)i * l->insn_entry, lines[i].line);
	image_put64(img, body + l->insns_body, entries);
	image_put32(img, body + l->insns_size, n);
	index = image_index_encode(lines, n, size, &words);
	table = image_alloc_last(img, words * 8);
	memcpy(image_at(img, table, words * 8), index, words * 8);
	image_put64(img, body + l->insns_index, table);
	free(index);
}

#define IMAGE_BODY_SIZE 384

static inline uint64_t image_iseq(struct ruby_image *img, const struct image_iseq *def)
{
	uint64_t iseq = image_alloc(img, 40), body = image_alloc(img, IMAGE_BODY_SIZE), encoded,
		 path;
	const struct image_line first = { 0, def->first_line ? def->first_line : 1 };
	uint32_t size = def->size ? def->size : 10;

	encoded = image_alloc(img, size * 8ull);
	path = image_string(img, def->path ? def->path : "/app/x.rb");
	if (def->real) {
		uint64_t v[2] = { path, image_string(img, def->real) };

		path = image_array_embed(img, v, 2);
	}
	image_put64(img, iseq, IMAGE_IMEMO(IMAGE_ISEQ_IMEMO));
	image_put64(img, iseq + 16, body);
	image_put32(img, body, def->type);
	image_put32(img, body + 4, size);
	image_put64(img, body + 8, encoded);
	image_put64(img, body + 64, path);
	image_put64(img, body + 72, image_string(img, def->base ? def->base : def->label));
	image_put64(img, body + 80, image_string(img, def->label));
	if (img->layout.lineno_is_value)
		image_put64(img, body + 88, (uint64_t)first.line << 1 | 1);
	else
		image_put32(img, body + 88, first.line);
	image_put64(img, body + img->layout.local_iseq, def->local ? def->local : iseq);
	image_put64(img, body + img->layout.parent_iseq, def->parent ? def->parent : def->local);
	if (img->layout.builtin_attrs)
		image_put32(img, body + img->layout.builtin_attrs, def->attrs);
	if (def->lines)
		image_iseq_lines(img, body, def->lines, def->n_lines, size);
	else
		image_iseq_lines(img, body, &first, 1, size);
	return iseq;
}

static inline uint64_t image_body(const struct ruby_image *img, uint64_t iseq)
{
	return image_get64(img, iseq + 16);
}

/* The pc of a frame that executes the instruction of one word at @position: behind it. */
static inline uint64_t image_pc(const struct ruby_image *img, uint64_t iseq, uint32_t position)
{
	return image_get64(img, image_body(img, iseq) + 8) + 8ull * (position + 1);
}

/* ---- threads ---- */

struct image_thread {
	struct ruby_image *img;
	uint64_t ec, th;
	uint64_t lo, hi; /* the VM stack */
	uint64_t sp;	 /* next free value */
	uint64_t cfp;	 /* innermost control frame */
	uint64_t ep;	 /* its environment */
};

/* What a frame is made of; all that is 0 stands as 0 in memory. */
struct image_frame {
	uint64_t flags;
	uint64_t iseq;
	uint64_t pc;
	uint64_t me_cref; /* ep[-2] */
	uint64_t specval; /* ep[-1] */
	uint32_t locals;  /* words between the caller's values and the environment */
	uint64_t ep;	  /* if not 0: an environment that is elsewhere already */
};

/* An environment of three words; returns its ep. */
static inline uint64_t image_env_at(struct ruby_image *img, uint64_t addr, uint64_t me_cref,
				    uint64_t specval, uint64_t flags)
{
	image_put64(img, addr, me_cref);
	image_put64(img, addr + 8, specval);
	image_put64(img, addr + 16, flags);
	return addr + 16;
}

/* One that was moved to the heap, because a Proc or Binding holds it. */
static inline uint64_t image_env_heap(struct ruby_image *img, uint64_t me_cref, uint64_t specval,
				      uint64_t flags)
{
	return image_env_at(img, image_alloc(img, 24), me_cref, specval, flags | IMAGE_ESCAPED);
}

/* Push a frame inside the innermost one. Returns its ep. */
static inline uint64_t image_push(struct image_thread *t, const struct image_frame *f)
{
	struct ruby_image *img = t->img;

	if (f->ep) {
		t->ep = f->ep;
	} else {
		t->sp += 8ull * f->locals;
		t->ep = image_env_at(img, t->sp, f->me_cref, f->specval, f->flags);
		t->sp += 24;
	}
	t->cfp -= img->layout.walk.cf_size;
	if (t->sp > t->cfp)
		abort(); /* the stack is too small for the test */
	image_put64(img, t->cfp, f->pc);
	image_put64(img, t->cfp + 8, t->sp);
	image_put64(img, t->cfp + 16, f->iseq);
	image_put64(img, t->cfp + 24, 8);
	image_put64(img, t->cfp + 32, t->ep);
	image_put64(img, t->ec + 16, t->cfp);
	return t->ep;
}

static inline uint64_t image_push_method(struct image_thread *t, uint64_t iseq, uint64_t pc,
					 uint64_t me)
{
	return image_push(t, &(struct image_frame) { .flags = IMAGE_METHOD | IMAGE_LOCAL,
						     .iseq = iseq,
						     .pc = pc,
						     .me_cref = me });
}

/* A block of the environment at @parent. */
static inline uint64_t image_push_block(struct image_thread *t, uint64_t iseq, uint64_t pc,
					uint64_t parent)
{
	return image_push(
		t, &(struct image_frame) {
			   .flags = IMAGE_BLOCK, .iseq = iseq, .pc = pc, .specval = parent | 1 });
}

static inline uint64_t image_push_cfunc(struct image_thread *t, uint64_t me)
{
	return image_push(
		t, &(struct image_frame) { .flags = IMAGE_CFUNC_FRAME | IMAGE_CFRAME | IMAGE_LOCAL,
					   .me_cref = me });
}

/* A thread with a VM stack of @words, which holds only the last slot that is no frame. */
static inline struct image_thread image_thread(struct ruby_image *img, size_t words)
{
	struct image_thread t = { .img = img };
	const struct rbpf_layout *l = &img->layout.walk;

	t.ec = image_alloc(img, 400);
	t.th = image_alloc(img, 480);
	t.lo = image_region(img, words * 8);
	t.hi = t.lo + words * 8;
	t.sp = t.lo;
	t.cfp = t.hi;
	image_put64(img, t.ec, t.lo);
	image_put64(img, t.ec + 8, words);
	image_put64(img, t.ec + l->ec_thread_ptr, t.th);
	image_put64(img, t.th + l->th_ec, t.ec);
	image_push(&t, &(struct image_frame) { .flags = IMAGE_DUMMY | IMAGE_FINISH | IMAGE_CFRAME |
							IMAGE_LOCAL });
	return t;
}

/* ---- all of it ---- */

/* An image with rb_cObject, its singleton class and a symbol table, for a version like "3.3". */
static inline struct ruby_image *image_new(const char *version)
{
	struct ruby_image *img = calloc(1, sizeof(*img));
	const struct ruby_layout *row;
	uint64_t variable;
	char full[16];

	snprintf(full, sizeof(full), "%s.0", version);
	row = ruby_layout_find(full);
	if (!img || !row)
		abort();
	img->layout = *row;
	img->next_region = IMAGE_FIRST;
	img->vm.layout = &img->layout;
	img->vm.walk = img->layout.walk;
	img->vm.mem = (struct memory) { .read_spans = image_read_spans, .image = img };
	image_symbols(img);
	img->vm.key_classpath = image_id(img, "__classpath__");
	img->vm.key_attached = image_id(img, "__attached__");
	img->object = image_class(img, "Object");
	image_singleton(img, img->object);
	variable = image_region(img, 8);
	image_put64(img, variable, img->object);
	img->vm.binary.cObject = variable;
	return img;
}

static inline void image_free(struct ruby_image *img)
{
	for (size_t i = 0; i < img->n_regions; i++) {
		free(img->regions[i].bytes);
		free(img->regions[i].hidden);
	}
	free(img);
}

#endif
