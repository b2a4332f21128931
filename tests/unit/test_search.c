/* SPDX-License-Identifier: GPL-2.0-only */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ruby/binary.h"
#include "ruby/layout.h"
#include "ruby/search.h"
#include "target/memory.h"
#include "support/flat_memory.h"

/*
 * A small Ruby process by any layout: a main thread in a fiber that another one resumed, a second
 * thread, methods with blocks, classes, and a symbol table. An array stands for its memory.
 */
#define BASE	    0x7f0000000000ull
#define IMAGE	    (2u << 20)
#define TEXT	    0x550000000000ull /* the VM's code: not readable, and never read */
#define DATA	    BASE	      /* the VM's data */
#define DATA_LEN    4096u
#define HEAP	    (BASE + 0x10000) /* Ruby objects */
#define MALLOC	    (BASE + 0x80000) /* everything else */

#define T_CLASS	    0x02ul
#define T_STRING    0x05ul
#define T_ARRAY	    0x07ul
#define T_DATA	    0x0cul
#define T_ISEQ	    0x701aul
#define T_MENT	    0x601aul
#define NOEMBED	    (1ul << 13)
#define QNIL	    4

#define STACK_WORDS 1024
#define N_METHODS   10
#define N_CLASSES   12
#define TAG_AT	    24

struct ruby {
	struct ruby_layout l;
	struct ruby_binary bin;
	bool one_ec;
	uint64_t heap, malloc; /* what is free */
	uint64_t string_class;
	uint64_t vm, ractor;
	uint64_t ecs[3]; /* the main thread's, the second one's, that of the main root fiber */
	uint64_t th[2];
	uint64_t methods[N_METHODS], blocks[N_METHODS], entries[N_METHODS];
	uint64_t classes[N_CLASSES];
};

static uint8_t *bytes;

static void clear_image(void)
{
	bytes = realloc(bytes, IMAGE);
	cr_assert_not_null(bytes);
	memset(bytes, 0, IMAGE);
}

static void read_image(const struct memory *mem, struct memory_span *spans, size_t n)
{
	(void)mem;
	flat_memory_read(bytes, BASE, IMAGE, spans, n);
}

static const struct memory mem = { .read_spans = read_image };

static void *at(uint64_t addr)
{
	cr_assert(addr >= BASE && addr - BASE <= IMAGE - 8, "%llx", (unsigned long long)addr);
	return bytes + (addr - BASE);
}

static void put(uint64_t addr, uint64_t word)
{
	memcpy(at(addr), &word, 8);
}

static void put32(uint64_t addr, uint32_t word)
{
	memcpy(at(addr), &word, 4);
}

static uint64_t get(uint64_t addr)
{
	uint64_t word;

	memcpy(&word, at(addr), 8);
	return word;
}

static uint64_t take(uint64_t *from, size_t size)
{
	uint64_t addr = *from;

	*from += (size + 15) & ~15ull;
	return addr;
}

/* ---- objects ---- */

static uint64_t new_string(struct ruby *r, const char *text)
{
	uint64_t str = take(&r->heap, 80), len = strlen(text);

	put(str + 8, r->string_class);
	if (r->l.string_embed == 16 && len > 23) {
		put(str, T_STRING | NOEMBED);
		put(str + 16, len);
		put(str + 24, take(&r->malloc, len + 1));
		memcpy(at(get(str + 24)), text, len + 1);
		return str;
	}
	put(str, r->l.string_embed == 16 ? T_STRING | len << 14 : T_STRING);
	if (r->l.string_embed == 24)
		put(str + 16, len);
	memcpy(at(str + r->l.string_embed), text, len + 1);
	return str;
}

/* The object that wraps a struct. */
static uint64_t new_data(struct ruby *r, uint64_t data)
{
	uint64_t obj = take(&r->heap, 40);

	put(obj, T_DATA);
	put(obj + 32, data);
	return obj;
}

/* An instance variable of a class: the only one. */
static void put_iv(struct ruby *r, uint64_t klass, uint64_t key, uint64_t value)
{
	uint64_t tbl, entries;

	if (r->l.class_form == RUBY_CLASS_IV_SLOTS) {
		put(klass + 32, take(&r->malloc, 32));
		put(get(klass + 32), value);
		return;
	}
	entries = take(&r->malloc, 2 * 24);
	put(entries, ~0ull); /* deleted */
	put(entries + 24, 4711);
	put(entries + 32, key);
	put(entries + 40, value);
	tbl = take(&r->malloc, 64);
	put(tbl + 40, 2);
	put(tbl + 48, entries);
	put(klass + 24, take(&r->malloc, 96));
	put(get(klass + 24) + 8, tbl);
}

static uint64_t new_class(struct ruby *r, const char *name)
{
	uint64_t klass = take(&r->heap, 256), singleton = take(&r->heap, 256);
	uint64_t name_string = name ? new_string(r, name) : QNIL;

	put(klass, T_CLASS);
	put(klass + 8, singleton);
	put(singleton, T_CLASS | 1ul << r->l.singleton_bit);
	put(singleton + 8, r->classes[0] ? get(r->classes[0] + 8) : singleton);
	if (r->l.class_form == RUBY_CLASS_EXT) {
		put(klass + r->l.class_path, name_string);
		*(uint8_t *)at(klass + r->l.class_permanent) = name ? 0x05 : 0x04;
		put(klass + r->l.class_attached, TEXT + 0x3000); /* its allocator */
		put(singleton + r->l.class_attached, klass);
		*(uint8_t *)at(singleton + r->l.class_permanent) = 0x02;
	} else {
		put_iv(r, klass, 0x111, name_string);
		put_iv(r, singleton, 0x222, klass);
	}
	return klass;
}

static void build_classes(struct ruby *r)
{
	static const char *const names[N_CLASSES] = { "Object",	   "String", "Kernel", "Comparable",
						      "Net::HTTP", "A",	     "IO",     NULL,
						      NULL,	   "Foo_1",  "Set",    "Array" };
	uint64_t vars = DATA + 0x100;
	size_t i;

	for (i = 0; i < N_CLASSES; i++)
		r->classes[i] = new_class(r, names[i]);
	for (i = 0; i < 3; i++)
		put(vars + i * 8, r->classes[i]);
	r->bin.symbol[RUBY_SYM_rb_cObject] = vars;
	r->bin.symbol[RUBY_SYM_rb_cString] = vars + 8;
	r->bin.symbol[RUBY_SYM_rb_mKernel] = vars + 16;
}

/* ---- iseqs ---- */

/* Entry @i of the lines of a body: call, line, or no event. */
static void put_entry(struct ruby *r, uint64_t body, uint32_t i, uint32_t line)
{
	uint64_t entry = get(body + r->l.insns_body) + (uint64_t)i * r->l.insn_entry;
	uint32_t events = i == 0 ? 9 : i & 1;

	put32(entry, line);
	if (r->l.insn_entry == 12)
		put32(entry + 4, 40 + i);
	put32(entry + r->l.insn_entry - 4, events);
}

static void put_lines(struct ruby *r, uint64_t body, uint32_t first, uint32_t n)
{
	uint64_t table = take(&r->malloc, 64);
	uint32_t i;

	put(body + r->l.insns_body, take(&r->malloc, n * 12));
	put32(body + r->l.insns_size, n);
	put(body + r->l.insns_index, table);
	for (i = 0; i < n; i++)
		put_entry(r, body, i, i == n - 2 ? 0 : first + i / 2);
	for (i = 0; i < 2 * n; i++)
		put(table + i / 9 * 8, get(table + i / 9 * 8) | (uint64_t)(i / 2 + 1) << i % 9 * 7);
}

static uint64_t new_iseq(struct ruby *r, uint32_t type, const char *label, uint32_t line,
			 uint64_t local)
{
	uint64_t iseq = take(&r->heap, 40), body = take(&r->malloc, 400);
	uint64_t location = body + r->l.iseq_location;
	uint32_t n = 4 + line % 20;

	put(iseq, T_ISEQ);
	put(iseq + 16, body);
	put32(body, type);
	put32(body + 4, 2 * n);
	put(body + 8, take(&r->malloc, 16 * n));
	put(get(body + 8), TEXT + 0x100 + n * 16);
	put(location, new_string(r, "/srv/app/lib/a_rather_long_name.rb"));
	put(location + 8, new_string(r, label));
	put(location + 16, new_string(r, label));
	if (r->l.lineno_size == 8) {
		put(location + 24, (uint64_t)line << 1 | 1);
	} else {
		put32(location + 24, line);
		put32(location + 28, 3 * line);
	}
	put(body + r->l.local_iseq, local ? local : iseq);
	put(body + r->l.parent_iseq, local);
	put_lines(r, body, line, n);
	return iseq;
}

/* The entry of a method, called by @id, whose definition has @original_id. */
static uint64_t new_method_entry(struct ruby *r, uint64_t iseq, uint64_t id, uint64_t original_id)
{
	uint64_t me = take(&r->heap, 40), def = take(&r->malloc, 128);

	put(me, T_MENT);
	put(me + 8, r->classes[0]);
	put(me + 16, def);
	put(me + 24, id);
	put(me + 32, r->classes[0]);
	put(def + 8, iseq);
	put(def + r->l.original_id, original_id);
	put(def + r->l.original_id + 8, id >> 4);
	return me;
}

static void build_iseqs(struct ruby *r)
{
	char label[32];
	uint64_t id;
	uint32_t i;

	for (i = 0; i < N_METHODS; i++) {
		snprintf(label, sizeof(label), "method_%u", i);
		r->methods[i] = new_iseq(r, 1, label, 10 + 61 * i, 0);
		id = (uint64_t)(4000 + i) << 4;
		r->entries[i] = new_method_entry(r, r->methods[i], id, id);
		snprintf(label, sizeof(label), "block in method_%u", i);
		r->blocks[i] = new_iseq(r, 2, label, 11 + 61 * i, r->methods[i]);
	}
}

/* ---- threads ---- */

static void put_frame(struct ruby *r, uint64_t cfp, uint64_t env, uint64_t iseq, uint64_t flags)
{
	put(cfp + 16, iseq);
	put(cfp + 32, env);
	put(env, flags);
	if (!r->l.cf_jit_return)
		put(cfp + 48, env + 8); /* __bp__ */
}

/* An EC, in its fiber, whose stack has the frames of all methods and blocks. */
static uint64_t new_ec(struct ruby *r, uint64_t th, uint64_t native_stack)
{
	uint64_t fiber = take(&r->malloc, 1200), ec = fiber + r->l.fiber_ec;
	uint64_t stack = take(&r->malloc, STACK_WORDS * 8), end = stack + STACK_WORDS * 8;
	uint64_t cfp = end - r->l.cf_size, env = stack;
	size_t i;

	put(fiber + 16, new_data(r, fiber)); /* the Fiber */
	put_frame(r, cfp, env, 0, 0x799900a3);
	for (i = 0; i < N_METHODS; i++) {
		put_frame(r, cfp -= r->l.cf_size, env += 32, r->methods[i], 0x11110003);
		put_frame(r, cfp -= r->l.cf_size, env += 32, r->blocks[i], 0x22220001);
	}
	put(ec, stack);
	put(ec + 8, STACK_WORDS);
	put(ec + 16, cfp);
	put(ec + TAG_AT, native_stack - 0x300);
	put(ec + r->l.ec_fiber_ptr, fiber);
	put(ec + r->l.ec_thread_ptr, th);
	put(ec + r->l.ec_stack_start, native_stack);
	put(ec + r->l.ec_stack_start + 8, native_stack - 0x500);
	put(ec + r->l.ec_stack_start + 16, 0x100000);
	return ec;
}

static uint64_t new_thread(struct ruby *r, size_t nr)
{
	uint64_t th = take(&r->malloc, 500), tcb = take(&r->malloc, 64);

	put(th + 16, new_data(r, th));
	put(th + r->l.th_vm, r->vm);
	if (r->one_ec) {
		put(th + r->l.th_thread_id, tcb);
		put(tcb, tcb);
		put(tcb + 16, tcb);
	} else {
		put(th + r->l.th_ractor, r->ractor);
	}
	r->ecs[nr] = new_ec(r, th, 0x7ffc00100000 + nr * 0x200000);
	put(th + r->l.th_ec, r->ecs[nr]);
	return th;
}

/* The main thread's current fiber was resumed by its root fiber. */
static void build_resumer(struct ruby *r)
{
	uint64_t fiber = r->ecs[0] - r->l.fiber_ec, root;

	r->ecs[2] = new_ec(r, r->th[0], 0x7ffc00800000);
	root = r->ecs[2] - r->l.fiber_ec;
	put(fiber + r->l.fiber_prev, root);
	if (!r->one_ec)
		put(root + r->l.fiber_prev + 8, fiber);
}

static void build_threads(struct ruby *r)
{
	uint64_t list;

	r->vm = take(&r->malloc, 10000);
	put(r->vm, new_data(r, r->vm));
	if (!r->one_ec) {
		r->ractor = take(&r->malloc, 800);
		put(r->ractor, new_data(r, r->ractor));
		put(r->vm + 32, r->ractor);
	}
	r->th[0] = new_thread(r, 0);
	r->th[1] = new_thread(r, 1);
	build_resumer(r);
	put(r->vm + (r->one_ec ? 192 : 40), r->th[0]);
	if (!r->one_ec) {
		put(r->ractor + r->l.ractor_running_ec, r->ecs[1]);
		put(r->ractor + r->l.ractor_running_ec + 8, r->th[0]);
		return;
	}
	list = r->vm + r->l.vm_living_threads;
	put(r->vm + r->l.vm_gvl_owner, r->th[1]);
	put(list, r->th[0]);
	put(list + 8, r->th[1]);
	put(r->th[0], r->th[1]);
	put(r->th[0] + 8, list);
	put(r->th[1], list);
	put(r->th[1] + 8, r->th[0]);
}

/* ---- the symbol table ---- */

static uint64_t new_array(struct ruby *r, uint64_t len)
{
	uint64_t ary = take(&r->heap, 40);

	put(ary, T_ARRAY);
	put(ary + 16, len);
	put(ary + 32, take(&r->malloc, len * 8));
	return ary;
}

static void build_symbols(struct ruby *r, uint64_t addr)
{
	uint64_t ids = take(&r->heap, 40), bang = new_string(r, "!"), unit;

	if (r->l.symbol_form == RUBY_SYMBOLS_ARRAY) {
		unit = new_array(r, 1024);
		put(get(unit + 32) + '!' * 16, bang);
	} else {
		unit = new_data(r, take(&r->malloc, 16 + 512 * 16));
		put(get(unit + 32) + 16 + '!' * 16 + 8, bang);
	}
	put(ids, T_ARRAY | 1ul << 13 | 1ul << 15); /* embedded */
	put(ids + 16, unit);
	put(addr, 3000);
	put(addr + 8, take(&r->malloc, 64));
	put(addr + 16, ids);
}

#define SYMBOLS (DATA + 0x400)

static struct ruby build(const char *version)
{
	struct ruby r = {
		.bin = {
			.text_lo = TEXT,
			.text_hi = TEXT + 0x10000,
			.data_lo = DATA,
			.data_hi = DATA + DATA_LEN,
		},
		.heap = HEAP,
		.malloc = MALLOC,
		.string_class = HEAP + 0x60000,
	};

	clear_image();
	cr_assert_eq(ruby_layout_table(version, &r.l), 0, "%s", version);
	r.one_ec = r.l.vm_living_threads != RUBY_ABSENT;
	if (r.one_ec)
		r.bin.symbol[RUBY_SYM_ruby_current_execution_context_ptr] = DATA + 0x200;
	build_classes(&r);
	build_iseqs(&r);
	build_threads(&r);
	build_symbols(&r, SYMBOLS);
	cr_assert_leq(r.heap, HEAP + 0x60000);
	cr_assert_leq(r.malloc, BASE + IMAGE);
	return r;
}

static struct ruby_search search(const struct ruby *r)
{
	struct ruby_search found;

	ruby_search(&mem, &r->bin, r->ecs, 3, &found);
	return found;
}

/* What no snapshot tells. */
static bool is_never_found(const struct ruby *r, enum ruby_field field)
{
	switch (field) {
	case RUBY_FIELD_ractor_gvl_queue:
	case RUBY_FIELD_ractor_gvl_owner:
		return !r->one_ec;
	case RUBY_FIELD_fiber_prev:
	case RUBY_FIELD_vm_gvl_queue:
		return r->one_ec;
	case RUBY_FIELD_th_ready:
	case RUBY_FIELD_th_running_time:
	case RUBY_FIELD_vm_objspace:
	case RUBY_FIELD_objspace_flags:
	case RUBY_FIELD_objspace_count:
	case RUBY_FIELD_builtin_attrs:
	case RUBY_FIELD_jit_entry:
		return true;
	default:
		return false;
	}
}

/* All that is found is right, and all is found but the @n of @missing. */
static void expect_all_but(const struct ruby *r, const enum ruby_field *missing, size_t n)
{
	struct ruby_search found = search(r);
	enum ruby_field f;
	size_t i;

	for (f = 0; f < RUBY_FIELDS; f++) {
		uint16_t want = ruby_layout_get(&r->l, f);

		if (is_never_found(r, f))
			want = RUBY_UNKNOWN;
		for (i = 0; i < n; i++)
			if (missing[i] == f)
				want = RUBY_UNKNOWN;
		cr_expect_eq(ruby_layout_get(&found.layout, f), want, "%s: %u, not %u",
			     ruby_field_info[f].name, ruby_layout_get(&found.layout, f), want);
	}
}

#define expect_all(r) expect_all_but(r, NULL, 0)
#define F(member)     RUBY_FIELD_##member
#define expect_missing(r, ...)                                                                     \
	do {                                                                                       \
		const enum ruby_field missing_[] = { __VA_ARGS__ };                                \
                                                                                                   \
		expect_all_but(r, missing_, sizeof(missing_) / sizeof(missing_[0]));               \
	} while (0)

static void expect_nothing(const struct ruby_search *found)
{
	enum ruby_field f;

	for (f = 0; f < RUBY_FIELDS; f++)
		cr_expect_eq(ruby_layout_get(&found->layout, f), RUBY_UNKNOWN, "%s",
			     ruby_field_info[f].name);
	cr_expect_eq(found->symbols, 0);
}

Test(search, every_layout)
{
	static const char *const versions[] = { "2.7.0", "3.0.0", "3.1.0", "3.2.0", "3.3.0",
						"3.4.0", "4.0.0", "4.0.6", "4.1.0" };
	size_t i;

	for (i = 0; i < sizeof(versions) / sizeof(versions[0]); i++) {
		struct ruby r = build(versions[i]);

		expect_all(&r);
		cr_expect_eq(search(&r).symbols, SYMBOLS, "%s", versions[i]);
	}
}

/* No release: nothing depends on what is known of them. */
Test(search, layout_of_no_release)
{
	struct ruby r = build("4.1.0");

	r.l.ec_fiber_ptr = 64;
	r.l.ec_thread_ptr = 32;
	r.l.ec_stack_start = 216;
	r.l.th_ec = 24;
	r.l.th_vm = 56;
	r.l.th_ractor = 32;
	r.l.fiber_ec = 104;
	r.l.fiber_prev = 640;
	r.l.ractor_running_ec = 200;
	r.l.iseq_location = 32;
	r.l.original_id = 56;
	r.l.insns_body = 144;
	r.l.insns_size = 160;
	r.l.insns_index = 168;
	r.l.local_iseq = 120;
	r.l.parent_iseq = 216;
	r.l.class_path = 96;
	r.l.class_attached = 40;
	r.l.class_permanent = 77;
	r.l.singleton_bit = 21;
	clear_image();
	memset(r.classes, 0, sizeof(r.classes));
	r.heap = HEAP;
	r.malloc = MALLOC;
	build_classes(&r);
	build_iseqs(&r);
	build_threads(&r);
	build_symbols(&r, SYMBOLS);
	expect_all(&r);
}

Test(search, no_ec)
{
	struct ruby r = build("3.4.0");
	const uint64_t bad[] = { 0, r.th[0], r.ecs[0] + 8, BASE + IMAGE, ~0ull };
	struct ruby_search found;

	ruby_search(&mem, &r.bin, NULL, 0, &found);
	expect_nothing(&found);
	ruby_search(&mem, &r.bin, bad, sizeof(bad) / sizeof(bad[0]), &found);
	expect_nothing(&found);
}

Test(search, ecs_disagree)
{
	struct ruby r = build("3.4.0");
	struct ruby_search found;

	/* The second thread has its EC in another place. */
	put(r.ecs[1] + 56, r.th[1]);
	put(r.ecs[1] + r.l.ec_thread_ptr, 0);
	found = search(&r);
	expect_nothing(&found);
}

/* The ECs were read when the main thread was in its root fiber. */
Test(search, stale_ec)
{
	struct ruby r = build("3.4.0");

	r.ecs[0] = r.ecs[2];
	expect_all(&r);
}

/* cfp->iseq of a frame of compiled code: freed, of another type, unreadable, a body of garbage. */
Test(search, garbage_in_frames)
{
	struct ruby r = build("4.1.0");
	uint64_t cfp = get(r.ecs[0] + 16), iseq = new_iseq(&r, 1, "gone", 5, 0);

	put(cfp + 16, r.classes[0]);
	put(cfp + 56 + 16, BASE + IMAGE - 8);
	put(cfp + 2 * 56 + 16, ~0ull);
	put(cfp + 3 * 56 + 16, iseq);
	memset(at(get(iseq + 16)), 0x77, 400);
	expect_all(&r);
}

Test(search, jit_return)
{
	struct ruby r = build("3.4.0");
	uint64_t cfp = get(r.ecs[0] + 16);

	put(cfp + 48, TEXT + 0x4242);
	expect_all(&r);
	put(cfp + 48, get(r.ecs[0]));
	expect_missing(&r, F(cf_jit_return));
}

/* ---- ambiguous, or too little ---- */

Test(search, thread_unknown_to_the_vm)
{
	struct ruby r = build("3.4.0");

	put(r.vm + 40, 0);
	expect_missing(&r, F(th_vm), F(th_ractor), F(ractor_running_ec), F(vm_lock_owner));
	r = build("3.4.0");
	put(r.vm, 0);
	expect_missing(&r, F(th_vm), F(th_ractor), F(ractor_running_ec), F(vm_lock_owner));
	r = build("3.4.0");
	put(r.vm + 32, 0); /* which of the two is the ractor? */
	expect_missing(&r, F(th_vm), F(th_ractor), F(ractor_running_ec), F(vm_lock_owner));
}

Test(search, thread_of_another_ractor)
{
	struct ruby r = build("3.4.0");
	uint64_t ractor = take(&r.malloc, 800);

	put(ractor, new_data(&r, ractor));
	put(ractor + r.l.ractor_running_ec, r.ecs[1]);
	put(ractor + r.l.ractor_running_ec + 8, r.th[1]);
	put(r.th[1] + r.l.th_ractor, ractor);
	put(r.ractor + r.l.ractor_running_ec, r.ecs[0]);
	expect_all(&r);
}

Test(search, running_ec)
{
	struct ruby r = build("3.4.0");

	put(r.ractor + r.l.ractor_running_ec, r.ecs[2]);
	expect_missing(&r, F(ractor_running_ec)); /* not its thread's EC any more */
	put(r.ractor + r.l.ractor_running_ec, r.ecs[1]);
	put(r.ractor + 600, r.ecs[0]);
	put(r.ractor + 608, r.th[1]);
	expect_missing(&r, F(ractor_running_ec));
}

Test(search, fibers)
{
	struct ruby r = build("3.0.0");
	uint64_t fiber = r.ecs[0] - r.l.fiber_ec, root = r.ecs[2] - r.l.fiber_ec;

	put(fiber + r.l.fiber_prev + 8, 8);		 /* nil */
	put(root + r.l.fiber_prev + 8, get(fiber + 16)); /* 3.0: the Fiber */
	expect_all(&r);
	put(root + r.l.fiber_prev + 8, 0);
	expect_missing(&r, F(fiber_prev));
	put(fiber + r.l.fiber_prev, 0);
	expect_missing(&r, F(fiber_prev)); /* no fiber was resumed */
	put(r.ecs[0] + r.l.ec_fiber_ptr - 16, r.ecs[0] - 16);
	put(r.ecs[1] + r.l.ec_fiber_ptr - 16, r.ecs[1] - 16);
	expect_missing(&r, F(fiber_prev), F(ec_fiber_ptr), F(fiber_ec));
}

Test(search, native_stack)
{
	struct ruby r = build("3.4.0");
	uint64_t ec = r.ecs[1];

	put(ec + TAG_AT, 0);
	put(ec + r.l.ec_stack_start, 0);
	put(ec + r.l.ec_stack_start + 16, 0);
	expect_all(&r); /* a thread that has not started yet */
	ec = r.ecs[0];
	put(ec + r.l.ec_stack_start + 16, 0x100);
	expect_missing(&r, F(ec_stack_start)); /* the tag is not in the stack */
}

/*
 * An alias is called by another ID than the method was defined by; some methods are no longer what
 * they were.
 */
Test(search, methods)
{
	struct ruby r = build("3.4.0");

	for (size_t i = 0; i < N_METHODS / 4; i++)
		put(r.entries[i] + 24, 5000 << 4);
	expect_all(&r);
	put(r.entries[N_METHODS / 4] + 24, 5000 << 4);
	expect_missing(&r, F(original_id));
	r = build("3.4.0");
	for (size_t i = 3; i < N_METHODS; i++)
		put(get(r.entries[i] + 16) + 8, r.classes[0]); /* a method of another kind */
	expect_all(&r);
	put(get(r.entries[0] + 16) + 8, r.classes[0]);
	expect_missing(&r, F(original_id));
	r = build("3.4.0");
	for (size_t i = 0; i < N_METHODS; i++)
		put(get(r.entries[i] + 16) + 40, get(r.entries[i] + 24));
	expect_missing(&r, F(original_id)); /* which of the two? */
}

/* The path, the base label and the label; and some iseqs that are gone. */
Test(search, location)
{
	struct ruby r = build("3.4.0");
	uint64_t location;

	for (size_t i = 0; i < N_METHODS / 4; i++)
		memset(at(get(r.blocks[i] + 16) + r.l.iseq_location), 0, 32);
	expect_all(&r);
	for (size_t i = 0; i < N_METHODS; i++) {
		location = get(r.methods[i] + 16) + r.l.iseq_location;
		put(location - 8, get(location));
		location = get(r.blocks[i] + 16) + r.l.iseq_location;
		put(location - 8, get(location));
	}
	/* Where does it begin? Nothing is found of what is read through it. */
	cr_expect_eq(search(&r).layout.iseq_location, RUBY_UNKNOWN);
	cr_expect_eq(search(&r).layout.string_embed, RUBY_UNKNOWN);
}

Test(search, few_iseqs)
{
	struct ruby r = build("3.4.0");
	size_t i;

	for (i = 3; i < N_METHODS; i++)
		put(r.methods[i], 0);
	for (i = 0; i < N_METHODS; i++)
		put(r.blocks[i], 0);
	expect_missing(&r, F(lineno_size), F(insns_body), F(insns_size), F(insns_index),
		       F(insn_entry), F(parent_iseq), F(local_iseq));
}

Test(search, iseqs_that_no_frame_has)
{
	struct ruby r = build("3.4.0");
	uint64_t cfp = get(r.ecs[0] + 16);
	size_t i, k;

	for (k = 0; k < 3; k++)
		for (i = 0; i < 2 * N_METHODS; i++)
			put(get(r.ecs[k] + 16) + i * r.l.cf_size + 16, 0);
	put(cfp + 16, r.blocks[4]);
	expect_all(&r); /* the others lie around it */
}

Test(search, lines)
{
	struct ruby r = build("3.4.0");
	uint64_t body = get(r.methods[5] + 16), info = get(body + r.l.insns_body);

	put32(info + 12, 7); /* before the method */
	expect_missing(&r, F(insn_entry));
	put32(info, 7);
	expect_missing(&r, F(lineno_size), F(insn_entry));
	put32(body + r.l.insns_size, 1);
	expect_missing(&r, F(lineno_size), F(insns_body), F(insns_size), F(insns_index),
		       F(insn_entry));
}

Test(search, local_and_parent)
{
	struct ruby r = build("3.4.0");
	size_t i;

	/* Another word fits as a parent, as far as these iseqs go … */
	for (i = 0; i < N_METHODS; i++)
		put(get(r.blocks[i] + 16) + 200, r.methods[i]);
	expect_missing(&r, F(parent_iseq));
	/* … and as a local iseq. */
	for (i = 0; i < N_METHODS; i++)
		put(get(r.methods[i] + 16) + 200, r.methods[i]);
	expect_missing(&r, F(parent_iseq), F(local_iseq));
}

#define FROM_CLASSES                                                                               \
	F(class_form), F(class_path), F(class_permanent), F(class_attached), F(singleton_bit)

Test(search, names_of_classes)
{
	struct ruby r = build("4.0.0");
	size_t i;

	for (i = 0; i < 3; i++)
		put(r.classes[i] + 64, get(r.classes[i] + r.l.class_path));
	expect_missing(&r, FROM_CLASSES); /* twice */
	r = build("4.0.0");
	put(r.classes[1] + r.l.class_path, get(r.classes[0] + r.l.class_path));
	expect_missing(&r, FROM_CLASSES); /* a wrong one */
	r = build("3.1.0");
	put(get(get(get(r.classes[2] + 24) + 8) + 48) + 40, QNIL);
	expect_missing(&r, FROM_CLASSES); /* none */
	r = build("3.2.0");
	r.bin.symbol[RUBY_SYM_rb_cString] = 0;
	expect_missing(&r, FROM_CLASSES);
}

Test(search, singleton_classes)
{
	struct ruby r = build("4.0.0");
	size_t i;

	for (i = 0; i < 3; i++)
		put(get(r.classes[i] + 8) + 64, r.classes[i]);
	expect_missing(&r, F(class_attached), F(class_permanent), F(singleton_bit));
	r = build("3.1.0");
	for (i = 0; i < N_CLASSES; i++)
		put(get(r.classes[i] + 8), get(get(r.classes[i] + 8)) | 1ul << 20);
	expect_missing(&r, F(singleton_bit)); /* two flags tell */
}

/* A class whose instance variable is an instance of it, as its singleton class would have. */
Test(search, class_with_an_instance)
{
	struct ruby r = build("3.1.0");
	uint64_t instance = take(&r.heap, 40);

	put(instance + 8, r.classes[7]);
	put_iv(&r, r.classes[7], 0x333, instance);
	expect_all(&r);
}

Test(search, permanent_names)
{
	struct ruby r = build("4.0.0");
	size_t i;

	put(r.classes[5] + r.l.class_path, new_string(&r, "#<Class:0x00007f>::A"));
	*(uint8_t *)at(r.classes[5] + r.l.class_permanent) = 0;
	expect_all(&r); /* a temporary one */
	for (i = 0; i < N_CLASSES; i++)
		*(uint8_t *)at(r.classes[i] + 100) = 1;
	expect_missing(&r, F(class_permanent));
}

/* Its units are in a struct id_entry_dir. */
Test(search, symbol_table_with_a_directory)
{
	struct ruby r = build("4.1.0");
	uint64_t ids = get(SYMBOLS + RUBY_SYMBOLS_IDS), dir = take(&r.malloc, 16),
		 entries = take(&r.malloc, 8);

	put(entries, get(ids + 16)); /* the only unit of an embedded Array */
	put(dir, 16);
	put(dir + 8, entries);
	put(SYMBOLS + RUBY_SYMBOLS_IDS, new_data(&r, dir));
	expect_all(&r);
	cr_expect_eq(search(&r).symbols, SYMBOLS);
	put(entries, 0);
	expect_missing(&r, F(symbol_form));
}

Test(search, symbol_tables)
{
	struct ruby r = build("4.1.0");

	build_symbols(&r, SYMBOLS + 0x80);
	expect_missing(&r, F(symbol_form));
	cr_expect_eq(search(&r).symbols, 0, "two");
	put(SYMBOLS, 3000ull << 32);
	expect_all(&r);
	cr_expect_eq(search(&r).symbols, SYMBOLS + 0x80);
	put(SYMBOLS + 0x80, 10);
	expect_missing(&r, F(symbol_form));
	r = build("4.1.0");
	r.bin.data_hi = ~0ull;
	expect_missing(&r, F(symbol_form));
}

/* ---- hostile ---- */

/* Numbers, and pointers to anywhere, in place of any part of a process. */
Test(search, hostile_memory)
{
	unsigned int seed;
	size_t i;

	for (seed = 1; seed <= 40; seed++) {
		struct ruby r = build(seed % 2 ? "4.1.0" : "2.7.0");
		unsigned int every = 1 + seed % 5 * 50;

		srand(seed);
		for (i = 0; i < IMAGE; i += 8) {
			uint64_t word = (uint64_t)rand() << 31 | (uint64_t)rand();

			if (rand() % every)
				continue;
			put(BASE + i, rand() % 3 ? BASE + word % (IMAGE / 8) * 8 : word % 70000);
		}
		search(&r);
	}
}

/* Memory full of what looks like iseqs and classes. */
Test(search, hostile_heap)
{
	struct ruby r = build("3.4.0");
	uint64_t addr;

	for (addr = HEAP; addr < HEAP + 0x60000; addr += 8)
		if (!get(addr))
			put(addr, addr % 24 == 0   ? T_ISEQ
				  : addr % 24 == 8 ? T_CLASS
						   : r.classes[7]);
	search(&r);
}
