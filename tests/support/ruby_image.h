/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The memory of a Ruby that never ran: a sparse address space in which a test lays out a VM,
 * threads and fibers with their VM stacks, iseqs, method entries, classes, strings and the symbol
 * table, as some version of Ruby does, and which it presents as a struct memory. Pages can be made
 * unreadable, and a hook sees each read before it happens, so that memory can change between two of
 * them.
 *
 *	struct ruby_image *img = image_new("3.3");
 *	uint64_t foo = image_class(img, "Foo");
 *	uint64_t iseq = image_iseq(img, &(struct image_iseq) { .label = "bar", .path = "/a.rb" });
 *	struct image_thread t = image_thread(img, 4096);
 *
 *	image_push_method(&t, iseq, 3, image_ment(img, foo, "bar", IMAGE_ISEQ));
 *	... ruby_walk(&img->vm.mem, &img->vm.walk, t.ec, ...)
 *	image_free(img);
 *
 * All of it is written from Ruby's own sources and debug information (struct image_facts), not from
 * the code under test, whose table of layouts only readers use (img->vm.layout). In particular the
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
#define IMAGE_MAX_REGIONS 2048
#define IMAGE_FIRST	  0x7f0000000000ull
#define IMAGE_HEAP_SIZE	  (1u << 20)
#define IMAGE_GAP	  0x100000ull /* never mapped, between two regions */

/* Types and flags, by Ruby's own names (include/ruby/internal/value_type.h, internal/imemo.h). */
#define IMAGE_T_OBJECT	  0x01ull
#define IMAGE_T_CLASS	  0x02ull
#define IMAGE_T_MODULE	  0x03ull
#define IMAGE_T_STRING	  0x05ull
#define IMAGE_T_ARRAY	  0x07ull
#define IMAGE_T_DATA	  0x0cull
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
#define IMAGE_ID_UNITS	    4

/* ---- where Ruby keeps what ---- */

/* glibc's mutexes and jump buffers, which stand before some members, differ in size. */
#if defined(__aarch64__)
#define IMAGE_ARCH(x86, arm) (arm)
#else
#define IMAGE_ARCH(x86, arm) (x86)
#endif

enum {			       /* class_form */
       IMAGE_CLASS_IV_TBL = 1, /* RClass.ptr leads to rb_classext_t, whose second word is iv_tbl */
       IMAGE_CLASS_IV_PTR = 2, /* rb_classext_t is at RClass + 32, its first word is iv_ptr */
       IMAGE_CLASS_CLASSEXT = 3, /* names are members of it */
};

/*
 * Offsets and sizes, from the headers and the debug information of 2.7.8, 3.0.7, 3.1.7, 3.2.11,
 * 3.3.11, 3.4.9, 4.0.5 and 4.1-dev. 0: it has no such member. class_path, permanent and attached
 * are from the class; old_flags is FL_PROMOTED (with two bits, an object can become old at once).
 */
/* clang-format off */
#define IMAGE_FACTS(X)                                                                             \
	/*                   2.7   3.0   3.1   3.2   3.3   3.4   4.0   4.1 */                      \
	X(cf_size,           56,   56,   64,   64,   56,   56,   56,   56)                         \
	X(cf_jit_return,     0,    0,    56,   56,   48,   48,   48,   48)                         \
	X(cf_bp,             48,   48,   48,   48,   0,    0,    0,    0)                          \
	X(ec_fiber_ptr,      48,   48,   40,   40,   40,   40,   40,   40)                         \
	X(ec_thread_ptr,     56,   56,   48,   48,   48,   48,   48,   48)                         \
	X(ec_stack_start,    152,  152,  144,  152,  152,  144,  176,  176)                        \
	X(th_size,           376,  416,  384,  328,  464,  480,  480,  488)                        \
	X(th_ractor,         0,    24,   24,   24,   24,   24,   24,   24)                         \
	X(th_vm,             24,   32,   32,   32,   32,   32,   32,   32)                         \
	X(th_ec,             32,   40,   40,   48,   48,   48,   48,   48)                         \
	X(th_thread_id,      72,   80,   80,   0,    0,    0,    0,    0)                          \
	X(th_ready,          88,   96,   104,  56,   72,   72,   72,   72)                         \
	X(th_running_time,   84,   92,   96,   116,  244,  244,  252,  252)                        \
	X(vm_size,           1320, 9448, 9472, 9456, 9624, 9624, 9576, 9856)                       \
	X(vm_gvl_owner,      8,    0,    0,    0,    0,    0,    0,    0)                          \
	X(vm_gvl_queue,      A(56, 64), 0, 0, 0, 0, 0, 0, 0)                                       \
	X(vm_lock_owner,     0,    A(88, 96), A(88, 96), A(88, 96), A(88, 96), A(88, 96),          \
			     A(88, 96), A(88, 96))                                                 \
	X(vm_living_threads, A(312, 328), 0, 0, 0, 0, 0, 0, 0)                                     \
	X(vm_shape_list,     0,    0,    0,    A(376, 392), 0, 0, 0, 0)                            \
	X(vm_objspace,       A(1152, 1176), A(1088, 1112), A(1112, 1136), A(1144, 1168),           \
			     A(1304, 1328), A(1296, 1320), A(1248, 1272), A(1368, 1400))           \
	X(running_ec,        0, A(520, 536), A(520, 536), A(520, 536), A(384, 400), A(384, 400),   \
			     A(312, 328), A(376, 392))                                             \
	X(gvl_queue,         0, A(384, 400), A(384, 400), A(384, 400), A(344, 360), A(344, 360),   \
			     A(272, 288), A(336, 352))                                             \
	X(gvl_owner,         0, A(336, 344), A(336, 344), A(336, 344), A(328, 344), A(328, 344),   \
			     A(256, 272), A(312, 328))                                             \
	X(objspace_flags,    16,   16,   16,   16,   16,   20,   28,   76)                         \
	X(objspace_count,    424,  424,  440,  1280, 1392, 1008, 1048, 2168)                       \
	X(objspace_major,    384,  376,  392,  1232, 1344, 960,  1000, 2024)                       \
	X(fiber_size,        704,  712,  712,  720,  720,  976,  1008, 1016)                       \
	X(fiber_ec,          80,   80,   80,   80,   80,   80,   80,   88)                         \
	X(fiber_prev,        A(520, 632), A(520, 632), A(512, 624), A(520, 632), A(520, 632),      \
			     A(504, 888), A(536, 920), A(544, 928))                                \
	X(body_size,         288,  288,  312,  320,  344,  352,  360,  360)                        \
	X(lineno_size,       8,    8,    8,    4,    4,    4,    4,    4)                          \
	X(iseq_location,     64,   64,   64,   64,   64,   64,   64,   64)                         \
	X(insns_body,        120,  120,  120,  112,  112,  112,  112,  112)                        \
	X(insns_size,        136,  136,  136,  128,  128,  128,  128,  128)                        \
	X(insns_index,       144,  144,  144,  136,  136,  136,  136,  136)                        \
	X(insn_entry,        8,    8,    12,   12,   12,   12,   12,   12)                         \
	X(parent_iseq,       168,  168,  168,  160,  160,  160,  168,  168)                        \
	X(local_iseq,        176,  176,  176,  168,  168,  168,  176,  176)                        \
	X(builtin_attrs,     0,    0,    0,    0,    260,  260,  268,  268)                        \
	X(jit_entry,         256,  264,  280,  288,  288,  296,  304,  304)                        \
	X(original_id,       32,   32,   32,   32,   32,   32,   32,   32)                         \
	X(string_embed,      16,   16,   16,   24,   24,   24,   24,   24)                         \
	X(class_form,        1,    1,    1,    2,    3,    3,    3,    3)                          \
	X(class_path,        0,    0,    0,    0,    32 + 120, 32 + 120, 24 + 128, 24 + 24)        \
	X(class_permanent,   0,    0,    0,    0,    32 + 117, 32 + 117, 24 + 125, 24 + 116)       \
	X(class_attached,    0,    0,    0,    0,    32 + 96,  32 + 96,  24 + 112, 24 + 104)       \
	X(singleton_bit,     12,   12,   12,   12,   12,   13,   13,   13)                         \
	X(qnil,              8,    8,    8,    4,    4,    4,    4,    4)                          \
	X(last_op_id,        168,  168,  169,  169,  169,  170,  171,  171)                        \
	X(old_flags,         0x60, 0x60, 0x60, 0x60, 0x20, 0x20, 0x20, 0x20)                       \
	/* as a boolean: vm_push_frame() sets ec->cfp before it writes the frame … */              \
	X(cfp_first,         1,    0,    0,    0,    0,    0,    0,    0)                          \
	/* … a thread that begins is its ractor's running one before it has the GVL … */           \
	X(runs_early,        0,    0,    0,    0,    1,    1,    1,    1)                          \
	/* … ruby_global_symbols has units of T_DATA … */                                          \
	X(symbols_in_data,   0,    0,    0,    0,    0,    0,    0,    1)                          \
	/* … ZJIT tells nothing of itself in its frames … */                                       \
	X(zjit_bare,         0,    0,    0,    0,    0,    0,    1,    0)                          \
	/* … or lets cfp->jit_return lead to frames of its own */                                  \
	X(zjit_frames,       0,    0,    0,    0,    0,    0,    0,    1)
/* clang-format on */

struct image_facts {
#define X(member, ...) uint16_t member;
	IMAGE_FACTS(X)
#undef X
};

#define IMAGE_VERSIONS 8

static const struct {
	const char *minor, *release;
} image_versions[IMAGE_VERSIONS] = {
	{ "2.7", "2.7.8" },  { "3.0", "3.0.7" }, { "3.1", "3.1.7" }, { "3.2", "3.2.11" },
	{ "3.3", "3.3.11" }, { "3.4", "3.4.9" }, { "4.0", "4.0.5" }, { "4.1", "4.1.0" },
};

static inline struct image_facts image_facts_of(size_t version)
{
#define A(x86, arm)    IMAGE_ARCH(x86, arm)
#define X(member, ...) { __VA_ARGS__ },
	static const uint16_t table[][IMAGE_VERSIONS] = { IMAGE_FACTS(X) };
#undef X
#undef A
	struct image_facts f;
	uint16_t *at = (uint16_t *)&f;

	_Static_assert(sizeof(f) == sizeof(table) / IMAGE_VERSIONS, "a row for each member");
	for (size_t i = 0; i < sizeof(f) / sizeof(*at); i++)
		at[i] = table[i][version];
	return f;
}

/* For each version a new image @img, freed at the end of the block. */
#define FOR_EACH_IMAGE(img)                                                                        \
	for (size_t v_ = 0; v_ < IMAGE_VERSIONS; v_++)                                             \
		for (struct ruby_image *img = image_new(image_versions[v_].minor); img;            \
		     image_free(img), img = NULL)

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
	const char *version; /* "3.1" */
	struct image_facts facts;
	struct ruby_vm vm; /* ready for walk.h, iseq.h, method.h, object.h, code_cache.h */

	uint64_t object; /* rb_cObject */
	uint64_t id_units[IMAGE_ID_UNITS];
	uint64_t next_serial;
	uint64_t shapes; /* 3.2: rb_vm_t.shape_list */
	uint32_t n_shapes;
	uint64_t objspace, ractor;
	uint64_t current_vm; /* ruby_current_vm_ptr */

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

	if (img->facts.string_embed == 16) {
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
	uint64_t unit = serial / IMAGE_ID_UNIT, at;

	if (unit >= IMAGE_ID_UNITS)
		abort();
	/* An Array of str, sym, or an array of struct { sym, str }. */
	at = img->id_units[unit] + serial % IMAGE_ID_UNIT * 16;
	image_put64(img, at + (img->facts.symbols_in_data ? 8 : 0), image_string(img, name));
	return serial;
}

/* A new ID for @name, of local scope. */
static inline uint64_t image_id(struct ruby_image *img, const char *name)
{
	return image_serial_put(img, img->next_serial++, name) << 4 | 1;
}

/* An Array of str, sym for each serial. */
static inline uint64_t image_symbol_array(struct ruby_image *img, uint64_t *elements)
{
	uint64_t v[1] = { 0 }, unit = image_array(img, v, 1);

	*elements = image_alloc(img, IMAGE_ID_UNIT * 16);
	image_put64(img, unit + 16, (uint64_t)IMAGE_ID_UNIT * 2);
	image_put64(img, unit + 32, *elements);
	return unit;
}

/* 4.1: a T_DATA whose data is an rb_darray (darray.h): size, capacity, elements. */
static inline uint64_t image_symbol_data(struct ruby_image *img, uint64_t *elements)
{
	uint64_t unit = image_alloc(img, 40), data = image_alloc(img, 16 + IMAGE_ID_UNIT * 16);

	image_put64(img, unit, IMAGE_T_DATA);
	image_put64(img, unit + 32, data);
	image_put64(img, data, IMAGE_ID_UNIT);
	image_put64(img, data + 8, IMAGE_ID_UNIT);
	*elements = data + 16;
	return unit;
}

static inline void image_symbols(struct ruby_image *img)
{
	uint64_t units[IMAGE_ID_UNITS], symbols = image_region(img, IMAGE_PAGE);

	for (size_t i = 0; i < IMAGE_ID_UNITS; i++)
		units[i] = img->facts.symbols_in_data ? image_symbol_data(img, &img->id_units[i])
						      : image_symbol_array(img, &img->id_units[i]);
	image_put32(img, symbols, 1000); /* last_id */
	image_put64(img, symbols + 8, image_alloc(img, 40));
	image_put64(img, symbols + 16, image_array(img, units, IMAGE_ID_UNITS));
	img->next_serial = IMAGE_SERIAL_FIRST;
	image_serial_put(img, IMAGE_SERIAL_BANG, "!");
	img->vm.symbols = symbols;
	img->vm.binary.data_lo = symbols;
	img->vm.binary.data_hi = symbols + IMAGE_PAGE;
}

/* Let its units be in a directory (struct id_entry_dir), not in an Array. */
static inline void image_symbols_in_directory(struct ruby_image *img)
{
	uint64_t ids = image_get64(img, img->vm.symbols + 16), dir = image_alloc(img, 16);

	image_put64(img, dir, IMAGE_ID_UNITS);
	image_put64(img, dir + 8, image_get64(img, ids + 32));
	ids = image_alloc(img, 40);
	image_put64(img, ids, IMAGE_T_DATA);
	image_put64(img, ids + 32, dir);
	image_put64(img, img->vm.symbols + 16, ids);
}

/* ---- classes ---- */

#define IMAGE_MAX_IVS	 8 /* of one class */
#define IMAGE_MAX_SHAPES 1024
#define IMAGE_SHAPE_SIZE 32 /* sizeof(rb_shape_t); shape.h, 3.2 */

/* Up to 3.1: an instance variable of @klass, in its st_table. */
static inline void image_iv_tbl_put(struct ruby_image *img, uint64_t klass, uint64_t key,
				    uint64_t value)
{
	uint64_t ext = image_get64(img, klass + 24), tbl = image_get64(img, ext + 8), entries, n;

	if (!tbl) {
		tbl = image_alloc(img, 56);
		image_put64(img, ext + 8, tbl);
		image_put64(img, tbl + 48, image_alloc(img, IMAGE_MAX_IVS * 24));
	}
	n = image_get64(img, tbl + 40);
	entries = image_get64(img, tbl + 48);
	if (n == IMAGE_MAX_IVS)
		abort();
	image_put64(img, entries + n * 24, key * 31);
	image_put64(img, entries + n * 24 + 8, key);
	image_put64(img, entries + n * 24 + 16, value);
	image_put64(img, tbl + 40, n + 1);
	image_put64(img, tbl + 16, n + 1);
}

/* 3.2: the address of rb_shape_t @id … */
static inline uint64_t image_shape_at(const struct ruby_image *img, uint32_t id)
{
	return img->shapes + (uint64_t)id * IMAGE_SHAPE_SIZE;
}

/* … and a new one, of @type (0 root, 1 instance variable, 2 frozen), below @parent. */
static inline uint32_t image_shape_new(struct ruby_image *img, uint32_t parent, uint8_t type,
				       uint64_t key)
{
	uint32_t id = img->n_shapes++, index = 0;
	uint64_t at = image_shape_at(img, id);

	if (id == IMAGE_MAX_SHAPES)
		abort();
	if (id)
		memcpy(&index, image_at(img, image_shape_at(img, parent) + 16, 4), 4);
	image_put64(img, at + 8, key);
	image_put32(img, at + 16, index + (type == 1)); /* next_iv_index */
	image_put32(img, at + 20, IMAGE_MAX_IVS);	/* capacity */
	*(uint8_t *)image_at(img, at + 24, 1) = type;
	image_put32(img, at + 28, parent);
	return id;
}

/* 3.2: the same by shape. */
static inline void image_iv_ptr_put(struct ruby_image *img, uint64_t klass, uint64_t key,
				    uint64_t value)
{
	uint64_t flags = image_get64(img, klass), slots = image_get64(img, klass + 32);
	uint32_t shape = image_shape_new(img, (uint32_t)(flags >> 32), 1, key), index;

	memcpy(&index, image_at(img, image_shape_at(img, shape) + 16, 4), 4);
	if (!slots) {
		slots = image_alloc(img, IMAGE_MAX_IVS * 8);
		memset(image_at(img, slots, IMAGE_MAX_IVS * 8), 0xa5, IMAGE_MAX_IVS * 8);
		image_put64(img, klass + 32, slots);
	}
	image_put64(img, slots + (index - 1) * 8ull, value);
	image_put32(img, klass + 4, shape);
}

/* Up to 3.2: set an instance variable of a class, which has it not. */
static inline void image_iv_put(struct ruby_image *img, uint64_t klass, uint64_t key,
				uint64_t value)
{
	if (img->facts.class_form == IMAGE_CLASS_IV_TBL)
		image_iv_tbl_put(img, klass, key, value);
	else
		image_iv_ptr_put(img, klass, key, value);
}

static inline void image_class_name(struct ruby_image *img, uint64_t klass, const char *name)
{
	uint64_t path = image_string(img, name);

	if (img->facts.class_form != IMAGE_CLASS_CLASSEXT) {
		image_iv_put(img, klass, img->vm.class_keys.classpath, path);
		return;
	}
	image_put64(img, klass + img->facts.class_path, path);
	*(uint8_t *)image_at(img, klass + img->facts.class_permanent, 1) |= 1;
}

static inline uint64_t image_class_of(struct ruby_image *img, uint64_t flags, const char *name)
{
	uint64_t klass = image_alloc(img, 256);

	image_put64(img, klass, flags);
	if (img->facts.class_form == IMAGE_CLASS_IV_TBL)
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
	uint64_t klass = image_class_of(img, IMAGE_T_CLASS | 1ull << img->facts.singleton_bit,
					NULL);

	if (img->facts.class_form != IMAGE_CLASS_CLASSEXT)
		image_iv_put(img, klass, img->vm.class_keys.attached, object);
	else
		image_put64(img, klass + img->facts.class_attached, object);
	image_put64(img, object + 8, klass);
	return klass;
}

/* Make @object old, or young, by its flags. */
static inline void image_age(struct ruby_image *img, uint64_t object, bool old)
{
	uint64_t flags = image_get64(img, object) & ~(uint64_t)img->facts.old_flags;

	image_put64(img, object, flags | (old ? img->facts.old_flags : 0));
}

/* ---- method entries ---- */

/* A method entry of @owner; @name is its original name, or NULL for an ID that leads nowhere. */
static inline uint64_t image_ment(struct ruby_image *img, uint64_t owner, const char *name,
				  int type)
{
	uint64_t me = image_alloc(img, 40), def = image_alloc(img, 128);
	uint64_t id = name ? image_id(img, name) : 0;

	image_put64(img, def, (uint64_t)type);
	image_put64(img, def + img->facts.original_id, id);
	image_put64(img, def + img->facts.original_id + 8, 33); /* method_serial */
	image_put64(img, me, IMAGE_IMEMO(IMAGE_MENT));
	image_put64(img, me + 8, owner);
	image_put64(img, me + 16, def);
	image_put64(img, me + 24, id);
	image_put64(img, me + 32, owner);
	return me;
}

/* The entry of a method whose code is @iseq. */
static inline uint64_t image_method(struct ruby_image *img, uint64_t owner, const char *name,
				    uint64_t iseq)
{
	uint64_t me = image_ment(img, owner, name, IMAGE_ISEQ);

	image_put64(img, image_get64(img, me + 16) + 8, iseq);
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
	uint32_t last_line;		/* 0: the last of lines, or the first */
	uint32_t attrs;			/* builtin_attrs */
	bool compiled;			/* there is machine code for it */
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
	const struct image_facts *l = &img->facts;
	uint64_t entries = image_alloc_last(img, (size_t)n * l->insn_entry), table;
	uint64_t *index;
	size_t words;

	for (uint32_t i = 0; i < n; i++) {
		uint64_t entry = entries + (uint64_t)i * l->insn_entry;

		image_put32(img, entry, lines[i].line);
		if (l->insn_entry == 12)
			image_put32(img, entry + 4, lines[i].line * 7 + i); /* node_id */
		image_put32(img, entry + l->insn_entry - 4, i ? 1 : 9);	    /* events: line, call */
	}
	image_put64(img, body + l->insns_body, entries);
	image_put32(img, body + l->insns_size, n);
	index = image_index_encode(lines, n, size, &words);
	table = image_alloc_last(img, words * 8);
	memcpy(image_at(img, table, words * 8), index, words * 8);
	image_put64(img, body + l->insns_index, table);
	free(index);
}

/* location.node_id and code_location: { line, column } of its begin and end. */
static inline void image_location(struct ruby_image *img, uint64_t body, uint32_t first,
				  const struct image_iseq *def)
{
	uint64_t at = body + img->facts.iseq_location + 24 + img->facts.lineno_size;
	uint32_t last = def->last_line ? def->last_line : first;

	for (uint32_t i = 0; i < def->n_lines; i++)
		if (!def->last_line && (int32_t)def->lines[i].line > (int32_t)last)
			last = def->lines[i].line;
	image_put32(img, at, first * 7);
	image_put32(img, at + 4, first);
	image_put32(img, at + 8, 2);
	image_put32(img, at + 12, last);
	image_put32(img, at + 16, 5);
}

static inline uint64_t image_iseq(struct ruby_image *img, const struct image_iseq *def)
{
	uint64_t iseq = image_alloc(img, 40), body = image_alloc(img, img->facts.body_size);
	uint64_t encoded, path, location = body + img->facts.iseq_location;
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
	image_put64(img, location, path);
	image_put64(img, location + 8, image_string(img, def->base ? def->base : def->label));
	image_put64(img, location + 16, image_string(img, def->label));
	if (img->facts.lineno_size == 8)
		image_put64(img, location + 24, (uint64_t)first.line << 1 | 1);
	else
		image_put32(img, location + 24, first.line);
	image_location(img, body, first.line, def);
	image_put64(img, body + img->facts.local_iseq, def->local ? def->local : iseq);
	image_put64(img, body + img->facts.parent_iseq, def->parent ? def->parent : def->local);
	if (img->facts.builtin_attrs)
		image_put32(img, body + img->facts.builtin_attrs, def->attrs);
	image_put64(img, body + img->facts.jit_entry, def->compiled ? 0x7e0000000000 : 0);
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

/* Put @text in the place of the label of @iseq: the same String, with other bytes. */
static inline void image_label_text(struct ruby_image *img, uint64_t iseq, const char *text)
{
	uint64_t label = image_get64(img, image_body(img, iseq) + img->facts.iseq_location + 16),
		 at = label;

	if (image_get64(img, label) & IMAGE_NOEMBED)
		at = image_get64(img, label + 24);
	else
		at += img->facts.string_embed;
	memcpy(image_at(img, at, strlen(text)), text, strlen(text));
}

/* ---- garbage collection ---- */

#define IMAGE_GC_MARKING    1u
#define IMAGE_GC_SWEEPING   2u
#define IMAGE_GC_DURING	    0x20u
#define IMAGE_GC_COMPACTING 0x40u

/* rb_objspace_t.profile.count */
static inline void image_gc_count(struct ruby_image *img, uint64_t count)
{
	image_put64(img, img->objspace + img->facts.objspace_count, count);
}

/* … as minor and major collections, which are counted right before one another. */
static inline void image_gc_counts(struct ruby_image *img, uint64_t minor, uint64_t major)
{
	uint64_t at = img->objspace + img->facts.objspace_major;

	image_gc_count(img, minor + major);
	image_put64(img, at - 8, minor);
	image_put64(img, at, major);
}

/* One more that has not begun to mark. */
static inline void image_gc_begins(struct ruby_image *img)
{
	uint64_t at = img->objspace + img->facts.objspace_count;

	image_put64(img, at, image_get64(img, at) + 1);
}

/* rb_objspace_t.flags */
static inline void image_gc_flags(struct ruby_image *img, uint32_t flags)
{
	image_put32(img, img->objspace + img->facts.objspace_flags, flags);
}

/* ---- threads and fibers ---- */

/* A fiber, and the thread it is of. */
struct image_thread {
	struct ruby_image *img;
	uint64_t ec, th, fiber;
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
	uint64_t jit_return;
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
	t->cfp -= img->facts.cf_size;
	if (t->sp > t->cfp)
		abort(); /* the stack is too small for the test */
	image_put64(img, t->cfp, f->pc);
	image_put64(img, t->cfp + 8, t->sp);
	image_put64(img, t->cfp + 16, f->iseq);
	image_put64(img, t->cfp + 24, 8);
	image_put64(img, t->cfp + 32, t->ep);
	if (img->facts.cf_bp)
		image_put64(img, t->cfp + img->facts.cf_bp, t->sp);
	if (img->facts.cf_jit_return)
		image_put64(img, t->cfp + img->facts.cf_jit_return, f->jit_return);
	else if (f->jit_return)
		abort();
	image_put64(img, t->ec + 16, t->cfp);
	return t->ep;
}

/*
 * 2.7: the same, but only the first @stage stores of vm_push_frame() (vm_insnhelper.c), the first
 * of which is ec->cfp; *@t does not change. Returns false when there are no more of them.
 */
static inline bool image_push_until(struct image_thread *t, const struct image_frame *f,
				    unsigned int stage)
{
	struct ruby_image *img = t->img;
	uint64_t cfp = t->cfp - img->facts.cf_size, sp = t->sp, end = sp + 8ull * f->locals + 16;
	const struct {
		uint64_t at, value;
	} tail[] = {
		{ end - 16, f->me_cref }, { end - 8, f->specval }, { end, f->flags },
		{ cfp + 32, end },	  { cfp + 8, end + 8 },	   { cfp + 48, end + 8 },
	}, head[] = {
		{ t->ec + 16, cfp }, { cfp, f->pc }, { cfp + 16, f->iseq }, { cfp + 24, 8 },
		{ cfp + 40, 0 },
	};
	unsigned int n = 0;

	for (size_t i = 0; i < sizeof(head) / sizeof(head[0]) && n < stage; i++, n++)
		image_put64(img, head[i].at, head[i].value);
	for (; sp < end - 16 && n < stage; sp += 8, n++)
		image_put64(img, sp, img->facts.qnil);
	for (size_t i = 0; i < sizeof(tail) / sizeof(tail[0]) && n < stage; i++, n++)
		image_put64(img, tail[i].at, tail[i].value);
	return n == stage;
}

/* Return to where the thread was when *@before was taken of it: the values stay behind. */
static inline void image_return(struct image_thread *t, const struct image_thread *before)
{
	*t = *before;
	image_put64(t->img, t->ec + 16, t->cfp);
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

/*
 * 4.1's ZJIT: a JITFrame of the code at @pc in @iseq, and the word of the native stack that leads
 * to it. Returns what jit_return holds.
 */
static inline uint64_t image_zjit_frame(struct ruby_image *img, uint64_t iseq, uint64_t pc)
{
	uint64_t frame = image_alloc(img, 32), word = image_alloc(img, 16);

	image_put64(img, frame, pc);
	image_put64(img, frame + 8, iseq);
	image_put64(img, word, frame);
	return word + 8;
}

/* rb_zjit_entry: whether ZJIT is on. */
static inline void image_zjit_on(struct ruby_image *img, bool on)
{
	image_put64(img, img->vm.binary.symbol[RUBY_SYM_rb_zjit_entry], on ? 0x7e0000001000 : 0);
}

/*
 * A fiber with a VM stack of @words, which holds only the last slot that is no frame, resumed by
 * @prev, or the first one of a thread. It is now the current one of its thread.
 */
static inline struct image_thread image_fiber_of(struct ruby_image *img, uint64_t th, uint64_t prev,
						 size_t words)
{
	const struct image_facts *f = &img->facts;
	struct image_thread t = { .img = img, .th = th };
	uint64_t native = image_region(img, IMAGE_PAGE);

	t.fiber = image_alloc(img, f->fiber_size);
	t.ec = t.fiber + f->fiber_ec;
	t.lo = image_region(img, words * 8);
	t.hi = t.lo + words * 8;
	t.sp = t.lo;
	t.cfp = t.hi;
	image_put64(img, t.ec, t.lo);
	image_put64(img, t.ec + 8, words);
	image_put64(img, t.ec + f->ec_fiber_ptr, t.fiber);
	image_put64(img, t.ec + f->ec_thread_ptr, t.th);
	image_put64(img, t.ec + f->ec_stack_start, native + IMAGE_PAGE);
	image_put64(img, t.ec + f->ec_stack_start + 16, IMAGE_PAGE);
	image_put64(img, t.fiber + f->fiber_prev, prev);
	image_put64(img, t.th + f->th_ec, t.ec);
	image_push(&t, &(struct image_frame) { .flags = IMAGE_DUMMY | IMAGE_FINISH | IMAGE_CFRAME |
							IMAGE_LOCAL });
	return t;
}

/* A fiber that @by resumes. */
static inline struct image_thread image_fiber(const struct image_thread *by, size_t words)
{
	return image_fiber_of(by->img, by->th, by->fiber, words);
}

/*
 * Let the thread of @t be the one that runs Ruby code: it holds the lock of the VM or its ractor.
 */
static inline void image_run(const struct image_thread *t)
{
	struct ruby_image *img = t->img;

	if (img->facts.vm_gvl_owner) {
		image_put64(img, img->vm.vm + img->facts.vm_gvl_owner, t->th);
	} else {
		image_put64(img, img->ractor + img->facts.running_ec, t->ec);
		image_put64(img, img->ractor + img->facts.gvl_owner, t->th);
	}
}

/*
 * The address of rb_vm_t.ractor.main_ractor; main_thread and a mutex are between it and lock_owner.
 */
static inline uint64_t image_main_ractor(const struct ruby_image *img)
{
	return img->vm.vm + img->facts.vm_lock_owner - IMAGE_ARCH(40, 48) - 16;
}

static inline struct image_thread image_thread(struct ruby_image *img, size_t words)
{
	const struct image_facts *f = &img->facts;
	uint64_t th = image_alloc(img, f->th_size), list = img->vm.vm + f->vm_living_threads;

	image_put64(img, th + f->th_vm, img->vm.vm);
	if (f->th_ractor) {
		image_put64(img, th + f->th_ractor, img->ractor);
		if (!image_get64(img, img->ractor + f->running_ec + 8)) /* threads.main */
			image_put64(img, img->ractor + f->running_ec + 8, th);
		if (!image_get64(img, image_main_ractor(img) + 8)) /* main_thread */
			image_put64(img, image_main_ractor(img) + 8, th);
	}
	if (f->th_thread_id)
		image_put64(img, th + f->th_thread_id, th ^ 0x5a5a5a5a0000); /* a pthread_t */
	if (f->vm_living_threads) { /* a list_head; the node stands first in the thread */
		image_put64(img, th, image_get64(img, list));
		image_put64(img, list, th);
	}
	return image_fiber_of(img, th, 0, words);
}

/* ---- all of it ---- */

/* What ruby_validate() completes is complete. */
static inline void image_walk_row(struct ruby_image *img)
{
	const struct image_facts *f = &img->facts;
	const uint16_t back = (f->objspace_count - f->objspace_major) / 8;
	uint64_t vm = img->vm.vm;

	img->vm.walk = (struct rbpf_layout) {
		.gc_flags = img->objspace + f->objspace_flags,
		.gc_count = img->objspace + f->objspace_count,
		.gc_owner = vm + (f->vm_gvl_owner ? f->vm_gvl_owner : f->vm_lock_owner),
		.threads = f->vm_living_threads ? vm + f->vm_living_threads : 0,
		.zjit_entry = img->vm.binary.symbol[RUBY_SYM_rb_zjit_entry],
		.flags = (f->cfp_first ? RBPF_LAYOUT_CFP_FIRST : 0) |
			 (f->string_embed == 24 ? RBPF_LAYOUT_LONG_EMBED : 0) |
			 (f->old_flags == 0x60 ? RBPF_LAYOUT_NO_AGE : 0) |
			 (f->zjit_bare ? RBPF_LAYOUT_ZJIT_BARE : 0) |
			 (f->runs_early ? RBPF_LAYOUT_RUNS_EARLY : 0),
		.ec_thread_ptr = f->ec_thread_ptr,
		.ec_fiber_ptr = f->ec_fiber_ptr,
		.ec_stack_start = f->ec_stack_start,
		.th_ec = f->th_ec,
		.th_ractor = f->th_ractor,
		.th_thread_id = f->vm_living_threads ? f->th_thread_id : 0,
		.ractor_running_ec = f->running_ec,
		.th_ready = f->th_ready,
		.th_status = f->th_running_time ? f->th_running_time - 4 : 0,
		.ractor_gvl_queue = f->gvl_queue,
		.ractor_gvl_owner = f->gvl_owner,
		.gvl_queue = f->vm_gvl_queue ? img->vm.vm + f->vm_gvl_queue : 0,
		.gvl_owner = f->vm_gvl_owner ? img->vm.vm + f->vm_gvl_owner : 0,
		.fiber_ec = f->fiber_ec,
		.fiber_prev = f->fiber_prev,
		.cf_size = f->cf_size,
		.cf_jit_return = f->cf_jit_return,
		.gc_major_word = back < RBPF_GC_WORDS ? RBPF_GC_WORDS - 1 - back : 1,
		.gc_majors = back < RBPF_GC_WORDS ? 0 : img->objspace + f->objspace_major - 8,
	};
}

/* What the BPF programs need to copy names. */
static inline void image_naming(struct ruby_image *img)
{
	const struct image_facts *f = &img->facts;
	uint16_t size = f->class_form == IMAGE_CLASS_IV_TBL   ? 32
			: f->class_form == IMAGE_CLASS_IV_PTR ? 40
							      : 160;

	img->vm.walk.naming = (struct rbpf_naming) {
		.symbols = img->vm.symbols,
		.shapes = img->shapes,
		.key_classpath = img->vm.class_keys.classpath,
		.key_attached = img->vm.class_keys.attached,
		.iseq_location = f->iseq_location,
		.original_id = f->original_id,
		.parent_iseq = f->parent_iseq,
		.local_iseq = f->local_iseq,
		.insns_body = f->insns_body,
		.insns_size = f->insns_size,
		.insns_index = f->insns_index,
		.insn_entry = f->insn_entry,
		.class_path = f->class_path,
		.class_attached = f->class_attached,
		.class_size = size,
		.class_form = (uint8_t)f->class_form,
		.symbol_form = f->symbols_in_data ? RUBY_SYMBOLS_DATA : RUBY_SYMBOLS_ARRAY,
		.singleton_bit = (uint8_t)f->singleton_bit,
		.labels_from_parents = img->vm.rules.labels_from_parents,
	};
}

static inline uint64_t image_variable(struct ruby_image *img, uint64_t value)
{
	uint64_t at = image_region(img, 8);

	image_put64(img, at, value);
	return at;
}

/* The rb_vm_t with what hangs from it, and the variables of libruby that lead there. */
static inline void image_vm(struct ruby_image *img)
{
	const struct image_facts *f = &img->facts;
	uint64_t vm = image_region(img, f->vm_size), gvl;

	img->vm.vm = vm;
	img->current_vm = image_variable(img, vm);
	img->objspace = image_alloc(img, 4096);
	img->ractor = image_alloc(img, 768);
	if (f->th_ractor)
		image_put64(img, image_main_ractor(img), img->ractor);
	gvl = f->vm_gvl_queue ? vm + f->vm_gvl_queue : img->ractor + f->gvl_queue;
	image_put64(img, gvl, gvl); /* nobody waits */
	image_put64(img, gvl + 8, gvl);
	image_put64(img, vm + f->vm_objspace, img->objspace);
	if (f->vm_living_threads)
		image_put64(img, vm + f->vm_living_threads, vm + f->vm_living_threads);
	if (f->vm_shape_list) {
		img->shapes = image_region(img, IMAGE_MAX_SHAPES * IMAGE_SHAPE_SIZE);
		image_put64(img, vm + f->vm_shape_list, img->shapes);
		image_shape_new(img, 0, 0, 0);
		img->vm.class_keys.shapes = img->shapes;
	}
	if (f->zjit_bare || f->zjit_frames)
		img->vm.binary.symbol[RUBY_SYM_rb_zjit_entry] = image_variable(img, 0);
	image_walk_row(img);
}

/*
 * An image with a VM, rb_cObject, its singleton class and a symbol table, for a version like "3.3":
 * the newest release of it that there is. Nothing was collected so far. image_new_with() makes one
 * of image_versions[@v] whose members are where @facts say.
 */
static inline struct ruby_image *image_new_with(size_t v, const struct image_facts *facts)
{
	struct ruby_image *img = calloc(1, sizeof(*img));

	if (!img || v >= IMAGE_VERSIONS)
		abort();
	img->version = image_versions[v].minor;
	img->facts = *facts;
	img->next_region = IMAGE_FIRST;
	img->vm.mem = (struct memory) { .read_spans = image_read_spans, .image = img };
	snprintf(img->vm.binary.version, sizeof(img->vm.binary.version), "%s",
		 image_versions[v].release);
	img->vm.rules = ruby_rules_for(img->vm.binary.version);
	if (ruby_layout_table(img->vm.binary.version, &img->vm.layout))
		abort();
	img->vm.layout.fiber_prev = img->facts.fiber_prev; /* the table cannot know it */
	image_vm(img);
	image_symbols(img);
	img->vm.class_keys.classpath = image_id(img, "__classpath__");
	img->vm.class_keys.attached = image_id(img, "__attached__");
	img->object = image_class(img, "Object");
	image_singleton(img, img->object);
	img->vm.binary.symbol[RUBY_SYM_rb_cObject] = image_variable(img, img->object);
	image_naming(img);
	return img;
}

static inline struct ruby_image *image_new(const char *version)
{
	struct image_facts facts;
	size_t v = 0;

	while (v < IMAGE_VERSIONS && strcmp(version, image_versions[v].minor))
		v++;
	if (v == IMAGE_VERSIONS)
		abort();
	facts = image_facts_of(v);
	return image_new_with(v, &facts);
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
