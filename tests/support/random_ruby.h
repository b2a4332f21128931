/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A Ruby that nobody has seen: an image (ruby_image.h) whose structs have their members in other
 * places than any release has, by a seed, and in it a program whose labels and lines are known.
 *
 * Each struct that rbpf reads is left as it is, or its members are moved apart, or put in another
 * order. Words that are left hold decoys: pointers to other objects of the types that are looked
 * for, small numbers, text. In some, members are swapped where rbpf has a constant (line_no) or can
 * have no evidence (code_location): those it has to refuse, or do without.
 */
#ifndef RBPF_TESTS_RANDOM_RUBY_H
#define RBPF_TESTS_RANDOM_RUBY_H

#include "support/gc_code.h"
#include "support/ruby_image.h"

#define RANDOM_METHODS 14
#define RANDOM_FRAMES  (3 * RANDOM_METHODS + 1)
#define RANDOM_CLASSES 14
#define RANDOM_TEXT    0x550000000000ull /* the VM's code: never read */

struct random_ruby {
	struct ruby_image *img;
	struct image_facts facts;
	struct image_thread t;
	struct gc_code code;
	uint64_t state;
	bool swapped_lines, no_location;
	bool waits; /* a thread, for the GVL */
	struct random_frame {
		char label[64];
		uint32_t line;	 /* 0: of a C function */
	} frames[RANDOM_FRAMES]; /* outermost first */
	size_t n_frames;
	uint64_t iseqs[3 * RANDOM_METHODS], mes[RANDOM_FRAMES], classes[RANDOM_CLASSES];
	size_t n_iseqs, n_mes;
};

static inline uint64_t random_below(struct random_ruby *r, uint64_t n)
{
	r->state = r->state * 6364136223846793005ull + 1442695040888963407ull;
	return (r->state >> 33) % n;
}

static inline bool random_one_in(struct random_ruby *r, uint64_t n)
{
	return !random_below(r, n);
}

/* ---- where members are ---- */

struct random_member {
	uint16_t *at;
	uint16_t words; /* that it takes */
};

/*
 * Place those of @members that there are, from @base on, with up to @gap words before each; half of
 * the time leave them as they are.
 */
static inline void random_place(struct random_ruby *r, struct random_member *members, size_t n,
				uint16_t base, uint16_t gap)
{
	size_t present = 0;

	if (random_one_in(r, 2))
		return;
	for (size_t i = 0; i < n; i++)
		if (*members[i].at)
			members[present++] = members[i];
	for (size_t i = present; i > 1 && random_one_in(r, 2); i--) {
		size_t k = random_below(r, i);
		struct random_member m = members[i - 1];

		members[i - 1] = members[k];
		members[k] = m;
	}
	for (size_t i = 0; i < present; i++) {
		base = (uint16_t)(base + 8 * random_below(r, gap + 1u));
		*members[i].at = (uint16_t)(base + *members[i].at % 8);
		base = (uint16_t)(base + 8 * members[i].words);
	}
}

#define RANDOM_PLACE(r, base, gap, ...)                                                            \
	do {                                                                                       \
		struct random_member members_[] = { __VA_ARGS__ };                                 \
                                                                                                   \
		random_place(r, members_, sizeof(members_) / sizeof(members_[0]), base, gap);      \
	} while (0)

/* Where location ends. */
static inline uint16_t random_after_location(const struct image_facts *f)
{
	return (uint16_t)(f->iseq_location + (f->lineno_size == 8 ? 56 : 48));
}

/* Parameters take more words than in any release, or fewer; what is behind them goes along. */
static inline void random_move_location(struct random_ruby *r, struct image_facts *f)
{
	uint16_t *members[] = { &f->iseq_location, &f->insns_body,    &f->parent_iseq,
				&f->local_iseq,	   &f->builtin_attrs, &f->jit_entry };
	int by = 8 * ((int)random_below(r, 8) - 4);

	for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++)
		if (*members[i])
			*members[i] = (uint16_t)(*members[i] + by);
}

static inline void random_facts(struct random_ruby *r, struct image_facts *f)
{
	uint16_t shift = (uint16_t)(8 * random_below(r, 12));

	f->th_size = 768;
	f->fiber_size = 2048;
	f->body_size = 512;
	RANDOM_PLACE(r, 32, 2, { &f->ec_fiber_ptr, 1 }, { &f->ec_thread_ptr, 1 });
	RANDOM_PLACE(r, 96, 12, { &f->ec_stack_start, 3 });
	RANDOM_PLACE(r, 24, 2, { &f->th_vm, 1 }, { &f->th_ractor, 1 }, { &f->th_ec, 1 },
		     { &f->th_thread_id, 1 }, { &f->th_ready, 2 });
	RANDOM_PLACE(r, 272, 20, { &f->gvl_queue, 2 }, { &f->gvl_owner, 1 }, { &f->running_ec, 2 });
	RANDOM_PLACE(r, IMAGE_ARCH(72, 80), 6, { &f->vm_lock_owner, 1 });
	RANDOM_PLACE(r, 1048, 60, { &f->vm_objspace, 1 });
	RANDOM_PLACE(r, 8, 8, { &f->objspace_flags, 1 });
	RANDOM_PLACE(r, 32, 12, { &f->fiber_ec, 100 }, { &f->fiber_prev, 2 });
	if (f->fiber_prev < f->fiber_ec + 512) /* a fiber begins with its context */
		f->fiber_prev = (uint16_t)(f->fiber_ec + 512 + shift);
	if (random_one_in(r, 8))
		f->lineno_size = 12 - f->lineno_size;
	if (random_one_in(r, 3))
		random_move_location(r, f);
	RANDOM_PLACE(r, random_after_location(f), 2, { &f->insns_body, 4 }, { &f->parent_iseq, 1 },
		     { &f->local_iseq, 1 }, { &f->builtin_attrs, 1 }, { &f->jit_entry, 1 });
	/* Of a release, with location one word longer. */
	if (f->insns_body < random_after_location(f))
		f->lineno_size = 4;
	f->insns_size = f->insns_body + 16;
	f->insns_index = f->insns_body + 24;
	RANDOM_PLACE(r, 16, 6, { &f->original_id, 2 });
	if (f->class_form == IMAGE_CLASS_CLASSEXT)
		RANDOM_PLACE(r, 40, 5, { &f->class_path, 1 }, { &f->class_attached, 1 },
			     { &f->class_permanent, 1 });
	if (random_one_in(r, 4))
		f->singleton_bit = (uint16_t)(12 + random_below(r, 4));
	if (random_one_in(r, 2)) {
		f->objspace_count = (uint16_t)(f->objspace_count + shift);
		f->objspace_major = f->objspace_major ? f->objspace_major + shift : 0;
	}
}

/* ---- what is in memory ---- */

/* A T_DATA that wraps the struct at @data, at its word @word. */
static inline void random_wrap(struct random_ruby *r, uint64_t data, size_t word)
{
	uint64_t object = image_alloc(r->img, 40);

	image_put64(r->img, object, IMAGE_T_DATA);
	image_put64(r->img, object + 32, data);
	image_put64(r->img, data + word * 8, object);
}

/* Members of a struct that decoys are not to stand in: offset, words. */
struct random_taken {
	uint16_t at, words;
};

static inline void random_decoys(struct random_ruby *r, uint64_t addr, uint16_t from, uint16_t to,
				 const uint64_t *decoys, size_t n, const struct random_taken *taken,
				 size_t n_taken)
{
	for (uint16_t off = from; off < to; off += 8) {
		bool free = !image_get64(r->img, addr + off);

		for (size_t i = 0; i < n_taken; i++)
			free &= !taken[i].at || off < taken[i].at / 8 * 8 ||
				off >= taken[i].at / 8 * 8 + 8 * taken[i].words;
		if (free && random_one_in(r, 3))
			image_put64(r->img, addr + off, decoys[random_below(r, n)]);
	}
}

#define RANDOM_DECOYS(r, addr, from, to, taken, ...)                                               \
	do {                                                                                       \
		const uint64_t decoys_[] = { __VA_ARGS__ };                                        \
                                                                                                   \
		random_decoys(r, addr, from, to, decoys_, sizeof(decoys_) / sizeof(decoys_[0]),    \
			      taken, sizeof(taken) / sizeof(taken[0]));                            \
	} while (0)

static inline void random_make_classes(struct random_ruby *r)
{
	static const char *const names[] = { "String", "Kernel",  "Array", "Hash",     "Card",
					     "Shop",   "Integer", "Set",   "Net::HTTP" };
	const struct image_facts *f = &r->facts;
	const struct random_taken taken[] = { { f->class_path, 1 },
					      { f->class_attached, 1 },
					      { f->class_permanent, 1 } };
	bool ext = f->class_form == IMAGE_CLASS_CLASSEXT;
	struct ruby_image *img = r->img;

	r->classes[0] = img->object;
	for (size_t i = 1; i < RANDOM_CLASSES; i++) {
		r->classes[i] = image_class(img, i < 10 ? names[i - 1] : NULL);
		image_singleton(img, r->classes[i]);
	}
	img->vm.binary.symbol[RUBY_SYM_rb_cString] = image_variable(img, r->classes[1]);
	img->vm.binary.symbol[RUBY_SYM_rb_mKernel] = image_variable(img, r->classes[2]);
	for (size_t i = 0; i < RANDOM_CLASSES; i++) {
		uint64_t klass = r->classes[i], meta = image_get64(img, klass + 8);

		image_put64(img, meta + 8, image_get64(img, img->object + 8));
		if (!ext)
			continue;
		RANDOM_DECOYS(r, klass, 24, 184, taken, klass, meta, 8, 4, RANDOM_TEXT + 64,
			      image_string(img, "Decoy"), r->classes[random_below(r, i + 1)]);
		RANDOM_DECOYS(r, meta, 24, 184, taken, meta, 8, 4, RANDOM_TEXT + 64,
			      image_string(img, "Decoy"), r->classes[0]);
	}
}

static inline uint64_t random_iseq(struct random_ruby *r, struct image_iseq *def, const char *label,
				   uint32_t first, uint32_t second)
{
	const struct image_line lines[] = { { 0, first }, { 3, second }, { 8, first + 1 } };
	uint64_t iseq;

	def->label = label;
	def->first_line = first;
	def->lines = lines;
	def->n_lines = 3;
	iseq = image_iseq(r->img, def);
	image_put64(r->img, image_get64(r->img, image_body(r->img, iseq) + 8),
		    r->code.text + 0x800);
	r->iseqs[r->n_iseqs++] = iseq;
	return iseq;
}

static inline void random_push(struct random_ruby *r, uint32_t line, const char *decoration,
			       const char *class, const char *name)
{
	struct random_frame *f = &r->frames[r->n_frames++];

	snprintf(f->label, sizeof(f->label), "%s%s#%s", decoration, class, name);
	f->line = line;
}

/* A method of @class, in which a block runs, and in that another one. */
static inline void random_method(struct random_ruby *r, uint32_t i, const char *class,
				 uint64_t klass)
{
	uint32_t first = 10 + 61 * i, at = 4;
	uint64_t method, outer, inner, ep, me;
	char name[24], label[64];

	snprintf(name, sizeof(name), "method_%u", i);
	method = random_iseq(r, &(struct image_iseq) { .type = RUBY_ISEQ_METHOD }, name, first,
			     first + 50);
	snprintf(label, sizeof(label), "block in %s", name);
	outer = random_iseq(
		r, &(struct image_iseq) { .type = RUBY_ISEQ_BLOCK, .base = name, .local = method },
		label, first + 2, first + 40);
	snprintf(label, sizeof(label), "block (2 levels) in %s", name);
	inner = random_iseq(
		r,
		&(struct image_iseq) {
			.type = RUBY_ISEQ_BLOCK, .base = name, .local = method, .parent = outer },
		label, first + 3, first + 30);
	me = image_method(r->img, klass, name, method);
	r->mes[r->n_mes++] = me;
	ep = image_push_method(&r->t, method, image_pc(r->img, method, at), me);
	ep = image_push_block(&r->t, outer, image_pc(r->img, outer, at), ep);
	image_push_block(&r->t, inner, image_pc(r->img, inner, at), ep);
	random_push(r, first + 50, "", class, name);
	random_push(r, first + 40, "block in ", class, name);
	random_push(r, first + 30, "block (2 levels) in ", class, name);
}

static inline void random_program(struct random_ruby *r)
{
	uint64_t me = image_ment(r->img, r->classes[3], "each", IMAGE_CFUNC);

	for (uint32_t i = 0; i < RANDOM_METHODS; i++)
		random_method(r, i, i % 2 ? "Card" : "Shop", r->classes[i % 2 ? 5 : 6]);
	r->mes[r->n_mes++] = me;
	image_push_cfunc(&r->t, me);
	random_push(r, 0, "", "Array", "each");
}

static inline void random_iseq_decoys(struct random_ruby *r)
{
	const struct image_facts *f = &r->facts;
	const struct random_taken taken[] = { { f->insns_body, 4 },
					      { f->parent_iseq, 1 },
					      { f->local_iseq, 1 },
					      { f->builtin_attrs, 1 },
					      { f->jit_entry, 1 } };
	uint16_t from = random_after_location(f);

	for (size_t i = 0; i < r->n_iseqs; i++) {
		uint64_t other = r->iseqs[random_below(r, r->n_iseqs)];
		uint64_t table = image_get64(r->img, image_body(r->img, other) + f->insns_index);

		RANDOM_DECOYS(r, image_body(r->img, r->iseqs[i]), from, 320, taken, other, table, 3,
			      image_body(r->img, other), r->iseqs[i]);
	}
}

/* Other IDs: of no method, and of another one. */
static inline void random_def_decoys(struct random_ruby *r)
{
	const struct random_taken taken[] = { { r->facts.original_id, 2 } };
	char name[32];

	for (size_t i = 0; i < r->n_mes; i++) {
		uint64_t other = image_get64(r->img, r->mes[random_below(r, r->n_mes)] + 24);

		snprintf(name, sizeof(name), "decoy_%zu", i);
		RANDOM_DECOYS(r, image_get64(r->img, r->mes[i] + 16), 16, 128, taken,
			      image_id(r->img, name), other, 33);
	}
}

static inline void random_thread_decoys(struct random_ruby *r)
{
	const struct image_facts *f = &r->facts;
	const struct random_taken thread[] = { { f->th_vm, 1 },
					       { f->th_ractor, 1 },
					       { f->th_ec, 1 },
					       { f->th_thread_id, 1 },
					       { f->th_ready, 2 } };
	const struct random_taken ec[] = { { f->ec_fiber_ptr, 1 },
					   { f->ec_thread_ptr, 1 },
					   { f->ec_stack_start, 3 } };
	/*
	 * An EC before a thread is taken for the running one, so none is to be before the GVL's
	 * owner.
	 */
	const struct random_taken ractor[] = { { f->running_ec, 2 },
					       { f->gvl_queue, 2 },
					       { (uint16_t)(f->gvl_owner - 8), 2 } };
	struct ruby_image *img = r->img;

	RANDOM_DECOYS(r, r->t.th, 24, 240, thread, r->t.fiber, img->object, 7, r->t.lo);
	RANDOM_DECOYS(r, r->t.ec, 32, 240, ec, img->object, 7, r->t.lo, r->t.hi, img->ractor);
	RANDOM_DECOYS(r, img->ractor, 128, 760, ractor, r->t.fiber, img->object, 7, r->t.ec);
}

/* What threads, the VM and its ractor know of each other. */
static inline void random_relations(struct random_ruby *r)
{
	struct ruby_image *img = r->img;
	uint64_t start = image_get64(img, r->t.ec + r->facts.ec_stack_start);

	random_wrap(r, img->vm.vm, 0);
	random_wrap(r, r->t.th, 2);
	random_wrap(r, r->t.fiber, 2);
	if (r->facts.th_ractor)
		random_wrap(r, img->ractor, 0);
	else
		image_put64(img, img->vm.vm + 24, r->t.th);
	image_put64(img, r->t.ec + 24, start - 1024); /* a tag */
	if (!r->facts.th_ractor)
		img->vm.binary.symbol[RUBY_SYM_ruby_current_execution_context_ptr] =
			image_variable(img, r->t.ec);
}

/* A thread that waits for the GVL. */
static inline void random_waiter(struct random_ruby *r)
{
	const struct image_facts *f = &r->facts;
	uint64_t head = f->vm_gvl_queue ? r->img->vm.vm + f->vm_gvl_queue
					: r->img->ractor + f->gvl_queue;
	uint64_t node = image_thread(r->img, 64).th + f->th_ready;

	for (int i = 0; i < 2; i++) {
		image_put64(r->img, head + 8 * i, node);
		image_put64(r->img, node + 8 * i, head);
	}
	r->waits = true;
}

/* What is swapped where rbpf has a constant. */
static inline void random_swaps(struct random_ruby *r)
{
	struct ruby_image *img = r->img;
	for (size_t i = 0; i < r->n_iseqs; i++) {
		uint64_t body = image_body(img, r->iseqs[i]);
		uint64_t entries = image_get64(img, body + r->facts.insns_body);
		uint64_t code_location = body + r->facts.iseq_location + 28 + r->facts.lineno_size;

		for (uint64_t k = 0; k < 3 && r->swapped_lines; k++) {
			uint64_t at = entries + k * 12, word = image_get64(img, at);

			image_put64(img, at, word << 32 | word >> 32);
		}
		for (uint64_t k = 0; k < 4 && r->no_location; k++)
			image_put32(img, code_location + k * 4, 0);
	}
}

/*
 * Most have a collector that tells its state; some have another one, or code that is not
 * understood.
 */
static inline void random_collector(struct random_ruby *r)
{
	struct ruby_binary *bin = &r->img->vm.binary;
	struct gc_code *c = &r->code;

	*c = gc_code_new(r->img, bin, GC_CODE_ARM64);
	if (random_one_in(r, 6)) {
		gc_code_call(c, c->module + GC_CODE_COLLECTOR);
		gc_code_load(c, bin, "other");
	}
	if (random_one_in(r, 6))
		gc_code_never(c, c->module + GC_CODE_COLLECTOR);
	else if (random_one_in(r, 3)) /* with a flag and a count, but other ones */
		gc_code_collector(c, c->module + GC_CODE_COLLECTOR, 200, 216);
	image_put64(r->img, r->img->objspace + 216, 41);
	if (random_one_in(r, 8))
		bin->symbol[RUBY_SYM_rb_during_gc] = 0;
	if (random_one_in(r, 8))
		bin->symbol[RUBY_SYM_rb_gc_count] = 0;
}

/* Free with random_free(). */
static inline void random_make(struct random_ruby *r, uint64_t seed)
{
	size_t v;

	*r = (struct random_ruby) { .state = seed * 0x9e3779b97f4a7c15ull + 1 };
	random_below(r, 2);
	v = random_below(r, IMAGE_VERSIONS);
	r->facts = image_facts_of(v);
	random_facts(r, &r->facts);
	r->swapped_lines = random_one_in(r, 12) && r->facts.insn_entry == 12;
	r->no_location = random_one_in(r, 12) && !r->swapped_lines;
	r->img = image_new_with(v, &r->facts);
	random_collector(r);
	r->t = image_thread(r->img, 4096);
	random_make_classes(r);
	random_program(r);
	image_run(&r->t);
	random_relations(r);
	image_gc_counts(r->img, 30 + random_below(r, 100), 2 + random_below(r, 20));
	random_iseq_decoys(r);
	random_def_decoys(r);
	random_thread_decoys(r);
	if (random_one_in(r, 2))
		random_waiter(r);
	random_swaps(r);
}

static inline void random_free(struct random_ruby *r)
{
	image_free(r->img);
}

#endif
