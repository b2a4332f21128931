/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A native stack that goes on from a checkpoint is the one that it would be if all its words had
 * been sent: random stacks of this process are defined in both ways.
 */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "profile/profile.h"
#include "sample/native_definitions.h"
#include "support/test_worker.h"
#include "symbol/native_names.h"
#include "target/process.h"

#define KINDS	  9
#define MAX_DEPTH 120
#define MAX_KNOWN 4096

struct fixture {
	struct process_context context;
	struct native_naming naming;
	struct native_generation now, before;
	struct native_definitions_buffers buffers;
	uint64_t kinds[KINDS];
	uint8_t *page; /* of code, or not just now */
	uint64_t next; /* fingerprint */
	unsigned int seed;

	/* what the BPF programs would have sent */
	struct {
		uint64_t words[MAX_DEPTH];
		size_t n;
		uint32_t end;
		uint64_t fingerprint;
		unsigned int generation; /* that last had it */
	} known[MAX_KNOWN];
	size_t n_known;
	unsigned int generation;
};

/* Let the page be code, or none; and read the map again. */
static void set_page(struct fixture *f, bool is_code)
{
	cr_assert_eq(mprotect(f->page, 4096, is_code ? PROT_READ | PROT_EXEC : PROT_READ), 0);
	cr_assert_eq(native_process_read_map(f->naming.process, NULL), 0);
}

static struct fixture *setup(unsigned int seed)
{
	struct fixture *f = calloc(1, sizeof(*f));

	cr_assert_not_null(f);
	f->seed = seed;
	f->next = 1000;
	f->page = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	cr_assert_neq(f->page, MAP_FAILED);
	cr_assert_eq(native_new(NULL, test_worker(), false, NULL, NULL, &f->naming.native), 0);
	cr_assert_eq(
		native_process_new(f->naming.native, getpid(), &f->context, &f->naming.process), 0);
	set_page(f, false);
	f->kinds[0] = (uint64_t)setup + 1;
	f->kinds[1] = (uint64_t)setup | RBPF_NATIVE_EXACT;
	f->kinds[2] = (uint64_t)set_page + 9;
	f->kinds[3] = (uint64_t)malloc + 1;
	f->kinds[4] = (uint64_t)memcpy + 1;
	f->kinds[5] = RBPF_NATIVE_FAULT;
	f->kinds[6] = 0xffffffff81000000; /* the kernel's */
	f->kinds[7] = (uint64_t)f->page + 64;
	f->kinds[8] = 0x3000; /* of nothing */
	return f;
}

static void teardown(struct fixture *f)
{
	native_generation_deinit(&f->now);
	native_generation_deinit(&f->before);
	native_definitions_buffers_deinit(&f->buffers);
	native_process_free(f->naming.process);
	native_free(f->naming.native);
	munmap(f->page, 4096);
	free(f);
}

/*
 * The fingerprint of the outermost @n of the words that end at @last, of a stack that ends so; 0:
 * none was sent, or before the last two generations, to which nothing refers.
 */
static uint64_t sent(struct fixture *f, const uint64_t *last, size_t n, uint32_t end)
{
	for (size_t i = f->n_known; i--;)
		if (f->known[i].n == n && f->known[i].end == end &&
		    f->generation - f->known[i].generation < 2 &&
		    !memcmp(f->known[i].words, last - n, n * sizeof(*last))) {
			f->known[i].generation = f->generation;
			return f->known[i].fingerprint;
		}
	return 0;
}

/* Define @n words, with or without checkpoints. */
static const struct native_definition *define(struct fixture *f, const uint64_t *words, size_t n,
					      uint32_t end, bool share)
{
	union {
		struct rbpf_ring_native rec;
		uint8_t bytes[sizeof(struct rbpf_ring_native) + MAX_DEPTH * 10];
	} u = { 0 };
	uint64_t *own = (uint64_t *)(&u.rec + 1);
	const uint64_t *last = words + n;
	size_t size, k;

	u.rec.stack = ++f->next;
	u.rec.end = end;
	for (k = n ? (n - 1) / RBPF_CHECKPOINT : 0; share && k && !u.rec.outer; k--) {
		u.rec.outer = sent(f, last, k * RBPF_CHECKPOINT, end);
		u.rec.n_outer = u.rec.outer ? (uint32_t)k * RBPF_CHECKPOINT : 0;
	}
	u.rec.n_frames = (uint32_t)n - u.rec.n_outer;
	memcpy(own, words, u.rec.n_frames * sizeof(*own));
	for (k = u.rec.n_outer + RBPF_CHECKPOINT; share && k < n; k += RBPF_CHECKPOINT) {
		cr_assert_lt(f->n_known, MAX_KNOWN);
		f->known[f->n_known].n = k;
		f->known[f->n_known].end = end;
		f->known[f->n_known].generation = f->generation;
		memcpy(f->known[f->n_known].words, last - k, k * sizeof(*last));
		f->known[f->n_known].fingerprint = own[u.rec.n_frames + u.rec.n_checkpoints++] =
			++f->next;
		f->n_known++;
	}
	size = sizeof(u.rec) + ((size_t)u.rec.n_frames + u.rec.n_checkpoints) * sizeof(*own);
	cr_assert_eq(native_define(&f->now, &f->before, &f->buffers, &f->naming, &u.rec, size), 0);
	return native_definition_find(&f->now, u.rec.stack);
}

/* Both ways must lead to the same frames with the same properties. */
static void expect_the_same(struct fixture *f, const uint64_t *words, size_t n, uint32_t end)
{
	static struct native_frame one[MAX_DEPTH + 1], other[MAX_DEPTH + 1];
	const struct native_definition *def = define(f, words, n, end, true);
	struct native_definition shared, whole;

	cr_assert_not_null(def);
	shared = *def;
	def = define(f, words, n, end, false);
	cr_assert_not_null(def);
	whole = *def;
	cr_assert_eq(whole.n, n + (end != RBPF_NATIVE_OUTERMOST));
	cr_assert_eq(shared.n, whole.n);
	cr_assert_eq(shared.flags, whole.flags);
	native_definition_frames(&f->now, &shared, one);
	native_definition_frames(&f->now, &whole, other);
	for (uint32_t i = 0; i < whole.n; i++) {
		cr_assert_eq(one[i].name, other[i].name, "frame %u of %u: %s is not %s", i, whole.n,
			     native_frame_name(f->naming.native, one[i].name)->name,
			     native_frame_name(f->naming.native, other[i].name)->name);
		cr_assert_eq(one[i].what.function, other[i].what.function, "frame %u", i);
		cr_assert_eq(one[i].what.is, other[i].what.is, "frame %u", i);
	}
}

static void next_generation(struct fixture *f)
{
	struct native_generation dropped = f->before;

	native_generation_recycle(&dropped);
	f->before = f->now;
	f->now = dropped;
	f->generation++;
}

Test(native_definitions, any_stack)
{
	uint64_t words[MAX_DEPTH];
	size_t n = 0, keep, i, bottom;

	for (unsigned int seed = 1; seed <= 6; seed++) {
		struct fixture *f = setup(seed);

		for (i = 0; i < 150; i++) {
			/* The outer words of the one before, and others inside of them. */
			keep = n ? (size_t)rand_r(&f->seed) % n : 0;
			bottom = keep + 1 + (size_t)rand_r(&f->seed) % (MAX_DEPTH - keep);
			memmove(words + bottom - keep, words + n - keep, keep * sizeof(*words));
			for (n = bottom, bottom -= keep; bottom--;)
				words[bottom] = f->kinds[(unsigned int)rand_r(&f->seed) % KINDS];
			expect_the_same(f, words, n,
					rand_r(&f->seed) % 4 ? RBPF_NATIVE_OUTERMOST
							     : RBPF_NATIVE_NO_RULE);
			if (rand_r(&f->seed) % 30 == 0)
				next_generation(f);
			else if (rand_r(&f->seed) % 20 == 0)
				set_page(f, rand_r(&f->seed) % 2);
		}
		teardown(f);
	}
}

/* Whose name is another one by now: code has come, and gone. */
Test(native_definitions, code_that_comes)
{
	struct fixture *f = setup(1);
	uint64_t words[2 * RBPF_CHECKPOINT];
	struct native_frame none[2 * RBPF_CHECKPOINT], some[2 * RBPF_CHECKPOINT];
	size_t i;

	for (i = 0; i < 2 * RBPF_CHECKPOINT; i++)
		words[i] = f->kinds[7];
	set_page(f, true);
	native_definition_frames(
		&f->now, define(f, words, 2 * RBPF_CHECKPOINT, RBPF_NATIVE_OUTERMOST, true), some);
	cr_assert_eq(munmap(f->page, 4096), 0);
	cr_assert_eq(native_process_read_map(f->naming.process, NULL), 0);
	words[0] = f->kinds[0];
	native_definition_frames(
		&f->now, define(f, words, 2 * RBPF_CHECKPOINT, RBPF_NATIVE_OUTERMOST, true), none);
	cr_expect_eq(f->now.definitions[1].outer, 0, "it was named again");
	words[0] = f->kinds[1];
	define(f, words, 2 * RBPF_CHECKPOINT, RBPF_NATIVE_OUTERMOST, true);
	cr_expect_neq(f->now.definitions[2].outer, 0, "nothing has changed");
	cr_expect_eq(f->now.definitions[2].n_frames, RBPF_CHECKPOINT, "its own alone are named");
	teardown(f);
}

/* What runs outside of the map may be compiled, also before the map is read again. */
Test(native_definitions, code_that_is_not_in_the_map)
{
	struct fixture *f = setup(1);
	struct native_process *process = f->naming.process;

	cr_expect_not(native_process_may_have_jit(process));
	cr_assert_eq(mprotect(f->page, 4096, PROT_READ | PROT_EXEC), 0);
	cr_assert_eq(native_process_miss(process, f->kinds[7], RBPF_NATIVE_NO_RANGE, NULL), 0);
	cr_expect(native_process_may_have_jit(process));
	teardown(f);
}

static int define_raw(struct fixture *f, struct rbpf_ring_native *rec, size_t n_words)
{
	return native_define(&f->now, &f->before, &f->buffers, &f->naming, rec,
			     sizeof(*rec) + n_words * sizeof(uint64_t));
}

/* The definition of a checkpoint was lost: so is the stack. */
Test(native_definitions, checkpoint_that_is_not_known)
{
	struct fixture *f = setup(1);
	struct {
		struct rbpf_ring_native rec;
		uint64_t word;
	} u = { .rec = { .stack = 1, .outer = 99, .n_outer = RBPF_CHECKPOINT, .n_frames = 1 },
		.word = f->kinds[0] };
	uint64_t words[RBPF_CHECKPOINT + 1];

	cr_expect_eq(define_raw(f, &u.rec, 1), 0);
	cr_expect_null(native_definition_find(&f->now, 1));
	/* One with another number of frames is another one. */
	for (size_t i = 0; i <= RBPF_CHECKPOINT; i++)
		words[i] = f->kinds[0];
	cr_expect_not_null(define(f, words, RBPF_CHECKPOINT + 1, RBPF_NATIVE_OUTERMOST, true));
	u.rec.outer = f->known[0].fingerprint;
	u.rec.n_outer = 2 * RBPF_CHECKPOINT;
	cr_expect_eq(define_raw(f, &u.rec, 1), 0);
	cr_expect_null(native_definition_find(&f->now, 1));
	u.rec.n_outer = RBPF_CHECKPOINT;
	cr_expect_eq(define_raw(f, &u.rec, 1), 0);
	cr_assert_not_null(native_definition_find(&f->now, 1));
	cr_expect_eq(native_definition_find(&f->now, 1)->n, RBPF_CHECKPOINT + 1);
	teardown(f);
}

/* As many checkpoints as there are words for, and no more. */
Test(native_definitions, malformed)
{
	struct fixture *f = setup(1);
	struct {
		struct rbpf_ring_native rec;
		uint64_t words[RBPF_CHECKPOINT + 2];
	} u = { .rec = { .stack = 1, .n_frames = RBPF_CHECKPOINT + 1, .n_checkpoints = 1 } };

	cr_expect_eq(define_raw(f, &u.rec, RBPF_CHECKPOINT + 2), 0);
	cr_expect_eq(define_raw(f, &u.rec, RBPF_CHECKPOINT + 1), -EPROTO);
	u.rec.n_frames--;
	cr_expect_eq(define_raw(f, &u.rec, RBPF_CHECKPOINT + 2), -EPROTO);
	teardown(f);
}
