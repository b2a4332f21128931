/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Machine code of rb_during_gc() and rb_gc_count() in a process image: as a Ruby for modular
 * collectors has them, which calls those of the collector through variables. The collector is
 * built in, until gc_code_call() leads elsewhere.
 */
#ifndef RBPF_TESTS_GC_CODE_H
#define RBPF_TESTS_GC_CODE_H

#include "support/ruby_image.h"

#ifdef __aarch64__
#define GC_CODE_ARM64 true
#else
#define GC_CODE_ARM64 false
#endif

#define GC_CODE_COLLECTOR 0x200 /* of the collector's functions, from the start of its code … */
#define GC_CODE_COUNT	  0x80	/* … and of the second of two functions from the first */

struct gc_code {
	struct ruby_image *img;
	bool arm64;
	uint64_t text;	 /* the VM's */
	uint64_t module; /* that of a collector in another file */
	uint64_t slots;	 /* the variables */
	uint64_t var;	 /* ruby_current_vm_ptr */
};

static inline void gc_code_bytes(struct ruby_image *img, uint64_t *at, const void *bytes, size_t n)
{
	memcpy(image_at(img, *at, n), bytes, n);
	*at += n;
}

static inline void gc_code_word(struct ruby_image *img, uint64_t *at, uint64_t word)
{
	image_put32(img, *at, (uint32_t)word);
	*at += 4;
}

/* adrp Xd, the page of @target; ldr Xd, [Xd, #its offset] */
static inline void gc_code_arm64_load(struct ruby_image *img, uint64_t *at, uint64_t target,
				      unsigned int d)
{
	uint64_t pages = (target >> 12) - (*at >> 12);

	gc_code_word(img, at, 0x90000000u | (pages & 3) << 29 | (pages >> 2 & 0x7ffff) << 5 | d);
	gc_code_word(img, at, 0xf9400000u | target % 4096 / 8 << 10 | d << 5 | d);
}

/*
 * Load what @var holds, and the member at each of @members of what was loaded before, the last one
 * into x0 or rdi.
 */
static inline void gc_code_chain(const struct gc_code *c, uint64_t *at, uint64_t var,
				 const uint32_t *members, size_t n)
{
	struct ruby_image *img = c->img;

	if (c->arm64) {
		gc_code_arm64_load(img, at, var, 0);
		for (size_t i = 0; i < n; i++) /* ldr x0, [x0, #member] */
			gc_code_word(img, at, 0xf9400000u | members[i] / 8u << 10);
		return;
	}
	gc_code_bytes(img, at, "\x48\x8b\x05", 3); /* mov var(%rip),%rax */
	gc_code_word(img, at, var - (*at + 4));
	for (size_t i = 0; i < n; i++) { /* mov member(%rax),%rax, or %rdi */
		gc_code_bytes(img, at, i + 1 < n ? "\x48\x8b\x80" : "\x48\x8b\xb8", 3);
		gc_code_word(img, at, members[i]);
	}
}

/*
 * Pass the objspace, which @members lead to from what @var holds, on to the function that @slot
 * points to.
 */
static inline void gc_code_dispatch(const struct gc_code *c, uint64_t at, uint64_t slot,
				    uint64_t var, const uint32_t *members, size_t n)
{
	struct ruby_image *img = c->img;

	gc_code_chain(c, &at, var, members, n);
	if (c->arm64) {
		gc_code_arm64_load(img, &at, slot, 17);
		gc_code_word(img, &at, 0xd61f0220u); /* br x17 */
		return;
	}
	gc_code_bytes(img, &at, "\xff\x25", 2); /* jmp *slot(%rip) */
	gc_code_word(img, &at, slot - (at + 4));
}

/*
 * Functions of a collector, given the objspace: @bit_of_flags of the word at @flags; the word at
 * @count.
 */
static inline void gc_code_collector_with(const struct gc_code *c, uint64_t at, uint32_t flags,
					  uint32_t count, uint8_t bit_of_flags)
{
	struct ruby_image *img = c->img;
	uint64_t counts = at + GC_CODE_COUNT;
	uint32_t bit = flags % 8 * 8 + bit_of_flags;

	if (c->arm64) {
		gc_code_word(img, &at, 0xf9400000u | flags / 8 << 10);	     /* ldr x0, [x0] */
		gc_code_word(img, &at, 0xd3400000u | bit << 16 | bit << 10); /* ubfx */
		gc_code_word(img, &at, 0xd65f03c0u);			     /* ret */
		gc_code_word(img, &counts, 0xf9400000u | count / 8 << 10);
		gc_code_word(img, &counts, 0xd65f03c0u);
		return;
	}
	gc_code_bytes(img, &at, "\x0f\xb6\x87", 3); /* movzbl flags(%rdi),%eax */
	gc_code_word(img, &at, flags);
	gc_code_bytes(img, &at, "\xc0\xe8", 2); /* shr $bit,%al */
	gc_code_bytes(img, &at, &bit_of_flags, 1);
	gc_code_bytes(img, &at, "\x83\xe0\x01\xc3", 4); /* and; ret */
	gc_code_bytes(img, &counts, "\x48\x8b\x87", 3); /* mov count(%rdi),%rax */
	gc_code_word(img, &counts, count);
	gc_code_bytes(img, &counts, "\xc3", 1);
}

static inline void gc_code_collector(const struct gc_code *c, uint64_t at, uint32_t flags,
				     uint32_t count)
{
	gc_code_collector_with(c, at, flags, count, 5);
}

/* rb_during_gc() of a collector, which tells nothing of its state: it says no. */
static inline void gc_code_never(const struct gc_code *c, uint64_t at)
{
	if (c->arm64)
		gc_code_bytes(c->img, &at, "\x00\x00\x80\x52\xc0\x03\x5f\xd6", 8); /* mov; ret */
	else
		gc_code_bytes(c->img, &at, "\x31\xc0\xc3", 3); /* xor %eax,%eax; ret */
}

/* Let the collector be called whose functions are at @functions. */
static inline void gc_code_call(const struct gc_code *c, uint64_t functions)
{
	image_put64(c->img, c->slots, functions);
	image_put64(c->img, c->slots + 8, functions + GC_CODE_COUNT);
}

/* Let the functions of @bin be those of this image. */
static inline struct gc_code gc_code_new(struct ruby_image *img, struct ruby_binary *bin,
					 bool arm64)
{
	struct gc_code c = { .img = img, .arm64 = arm64 };
	const uint32_t objspace = img->facts.vm_objspace;

	c.text = image_region(img, IMAGE_PAGE);
	c.module = image_region(img, IMAGE_PAGE);
	c.slots = image_region(img, IMAGE_PAGE);
	c.var = img->vm.symbols + IMAGE_PAGE / 2; /* among the VM's data */
	image_put64(img, c.var, img->vm.vm);
	bin->text_lo = c.text;
	bin->text_hi = c.text + IMAGE_PAGE;
	bin->symbol[RUBY_SYM_rb_during_gc] = c.text;
	bin->symbol[RUBY_SYM_rb_gc_count] = c.text + GC_CODE_COUNT;
	gc_code_dispatch(&c, c.text, c.slots, c.var, &objspace, 1);
	gc_code_dispatch(&c, c.text + GC_CODE_COUNT, c.slots + 8, c.var, &objspace, 1);
	gc_code_collector(&c, c.text + GC_CODE_COLLECTOR, img->facts.objspace_flags,
			  img->facts.objspace_count);
	gc_code_collector(&c, c.module + GC_CODE_COLLECTOR, img->facts.objspace_flags,
			  img->facts.objspace_count);
	gc_code_call(&c, c.text + GC_CODE_COLLECTOR);
	return c;
}

/* The Thread of the thread that @members lead to from what @var holds. */
static inline void gc_code_self(const struct gc_code *c, uint64_t at, uint64_t var,
				const uint32_t *members, size_t n)
{
	gc_code_chain(c, &at, var, members, n);
	if (c->arm64) {
		gc_code_word(c->img, &at, 0xf9400000u | 16 / 8u << 10); /* ldr x0, [x0, #16] */
		gc_code_word(c->img, &at, 0xd65f03c0u);			/* ret */
	} else {
		gc_code_bytes(c->img, &at, "\x48\x8b\x47\x10\xc3",
			      5); /* mov 0x10(%rdi),%rax; ret */
	}
}

#define GC_CODE_RACTOR_OBJSPACE 560   /* in a ractor that has one … */
#define GC_CODE_THREAD_MAIN	0x180 /* … of rb_thread_main(), from where the VM's begins … */
#define GC_CODE_THREAD_CURRENT	0x1c0 /* … and rb_thread_current() */

/*
 * As where each ractor has an objspace of its own: @members lead to the ractor from what @var
 * holds, and during_gc is bit 6.
 */
static inline void gc_code_of_ractor(const struct gc_code *c, struct ruby_binary *bin, uint64_t var,
				     const uint32_t *members, size_t n)
{
	struct ruby_image *img = c->img;
	uint32_t chain[4];

	memcpy(chain, members, n * sizeof(*members));
	chain[n] = GC_CODE_RACTOR_OBJSPACE;
	image_put64(img, img->ractor + GC_CODE_RACTOR_OBJSPACE, img->objspace);
	image_put64(img, img->vm.vm + img->facts.vm_objspace, 0);
	gc_code_dispatch(c, c->text, c->slots, var, chain, n + 1);
	gc_code_dispatch(c, c->text + GC_CODE_COUNT, c->slots + 8, var, chain, n + 1);
	gc_code_collector_with(c, c->text + GC_CODE_COLLECTOR, img->facts.objspace_flags,
			       img->facts.objspace_count, 6);
	chain[n] = img->facts.running_ec + 8u;
	bin->symbol[RUBY_SYM_rb_thread_main] = c->text + GC_CODE_THREAD_MAIN;
	gc_code_self(c, c->text + GC_CODE_THREAD_MAIN, var, chain, n + 1);
}

/* They find the only one by ruby_single_main_ractor, whose address is returned. */
static inline uint64_t gc_code_of_only_ractor(const struct gc_code *c, struct ruby_binary *bin)
{
	const uint64_t single = c->var + 8;

	image_put64(c->img, single, c->img->ractor);
	gc_code_of_ractor(c, bin, single, NULL, 0);
	return single;
}

/* They find that of @t, which is the running thread. */
static inline void gc_code_of_running_ractor(const struct gc_code *c, struct ruby_binary *bin,
					     const struct image_thread *t)
{
	const uint32_t members[] = { c->img->facts.ec_thread_ptr, c->img->facts.th_ractor };
	const uint64_t slot = c->var + 16, thread = image_alloc(c->img, 40);

	image_put64(c->img, slot, t->ec);
	image_put64(c->img, t->th + 16, thread);
	image_put64(c->img, thread, IMAGE_T_DATA);
	bin->symbol[RUBY_SYM_rb_thread_current] = c->text + GC_CODE_THREAD_CURRENT;
	gc_code_self(c, c->text + GC_CODE_THREAD_CURRENT, slot, members, 1);
	gc_code_of_ractor(c, bin, slot, members, 2);
}

/* As a module that is mapped. */
static inline void gc_code_load(const struct gc_code *c, struct ruby_binary *bin, const char *name)
{
	bin->gc_lo = c->module;
	bin->gc_hi = c->module + IMAGE_PAGE;
	snprintf(bin->gc_name, sizeof(bin->gc_name), "%s", name);
}

#endif
