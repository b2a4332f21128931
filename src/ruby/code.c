/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Each function is read backwards, from its result through the loads that led to it:
 *
 *   rb_thread_current  self <- thread <- EC <- slot
 *   rb_fiber_current   self <- fiber <- EC <- slot
 *   rb_during_gc       bit 5 or 6 of flags <- objspace <- VM <- ruby_current_vm_ptr
 *   rb_gc_count        count <- objspace <- VM <- ruby_current_vm_ptr
 *                      both, where each ractor has one: objspace <- ractor <-
 * ruby_single_main_ractor objspace <- ractor <- thread <- EC <- slot rb_thread_main     self <-
 * main thread <- ractor <- ruby_single_main_ractor self <- main thread <- ractor <- thread <- EC <-
 * slot self <- main thread <- VM <- thread <- EC <- slot (2.7)
 *
 * where "self" is the object at 16 of a thread or fiber. rb_id2str and rb_fiber_yield do too much
 * for that: of these, the memory they touch before is looked at.
 *
 * Sources: gc.c, thread.c, vm.c, vm_core.h, cont.c, symbol.c of 2.7 to 4.1.
 */
#include "ruby/code.h"

#include "ruby/binary.h"
#include "ruby/emulate.h"
#include "ruby/object.h"
#include "ruby/structs.h"
#include "target/memory.h"

#define RUNNING_EC_BACK 8    /* rb_ractor_t.threads.running_ec is the word before .main */
#define FIBER_SIZE	8192 /* more than any has */

/* What was said of one fact so far. */
struct fact {
	uint64_t value;
	bool said, disputed;
};

struct reading {
	struct emulator emu;
	const struct ruby_binary *bin;
	bool global_ec;	 /* 2.7: the EC is in a global variable */
	uint64_t ec_var; /* address of the EC slot or of that variable; 0: not known */
	struct fact field[RUBY_FIELDS];
	struct fact current_vm, symbols;
	struct fact ractor_objspace, single_ractor;
	struct fact during_gc_bit;
	bool gc_in_module, gc_left; /* see struct ruby_code, as far as it was run */
};

/* ---- facts ---- */

/* Paths that disagree show that something was misread: then nothing is known. */
static void say(struct fact *fact, uint64_t value)
{
	if (fact->said && fact->value != value)
		fact->disputed = true;
	fact->said = true;
	fact->value = value;
}

static bool known(const struct fact *fact)
{
	return fact->said && !fact->disputed;
}

/* No member of interest is the first of its struct or of less than 4 bytes. */
static void say_offset(struct reading *rd, enum ruby_field field, int64_t offset)
{
	bool sane = offset > 0 && offset < RUBY_UNKNOWN && offset % 4 == 0;

	say(&rd->field[field], sane ? (uint64_t)offset : RUBY_UNKNOWN);
}

static bool is_field(const struct reading *rd, enum ruby_field field, int32_t offset)
{
	const struct fact *fact = &rd->field[field];

	return known(fact) && fact->value != RUBY_UNKNOWN && (int64_t)fact->value == offset;
}

/* ---- live data ---- */

static bool in_data(const struct reading *rd, struct emu_value addr)
{
	return addr.known && addr.v >= rd->bin->data_lo && addr.v < rd->bin->data_hi;
}

/*
 * Whether a variable is there, and no member of a struct, which may be among the data, too. None of
 * interest is the first.
 */
static bool is_variable(const struct reading *rd, struct emu_value addr)
{
	return in_data(rd, addr) && !addr.offset;
}

static bool is_object(const struct reading *rd, struct emu_value v, unsigned int type)
{
	uint64_t flags;

	return v.known && ruby_is_object(v.v) && !memory_read_u64(rd->emu.mem, v.v, &flags) &&
	       ruby_flags_type(flags) == type;
}

/* Whether @ec is the EC of a thread. */
static bool is_ec(const struct reading *rd, uint64_t ec)
{
	const struct fact *thread_ptr = &rd->field[RUBY_FIELD_ec_thread_ptr];
	struct emu_value self = { .known = true };
	uint64_t th;

	return known(thread_ptr) && !memory_read_u64(rd->emu.mem, ec + thread_ptr->value, &th) &&
	       !memory_read_u64(rd->emu.mem, th + RUBY_SELF, &self.v) &&
	       is_object(rd, self, RUBY_T_DATA);
}

/* ---- loads ---- */

/* Run a function. False if there is none. */
static bool run(struct reading *rd, enum ruby_binary_symbol function)
{
	uint64_t entry = rd->bin->symbol[function];

	if (entry)
		emu_run(&rd->emu, entry);
	return entry != 0;
}

/* The load that gave the pointer that @a is relative to, or NULL. */
static const struct emu_access *base_of(const struct reading *rd, const struct emu_access *a)
{
	const struct emu_access *base = a ? emu_origin(&rd->emu, &a->addr) : NULL;

	return base && base->width == 8 ? base : NULL;
}

/*
 * The @n loads that led to @result, the self of a thread or fiber, the last one first. The last in
 * @ret may have a base, too: a GOT entry or such. False if it is something else.
 */
static bool self_chain(const struct reading *rd, const struct emu_value *result,
		       const struct emu_access **ret, unsigned int n)
{
	unsigned int i;

	ret[0] = emu_origin(&rd->emu, result);
	for (i = 1; i < n; i++)
		ret[i] = base_of(rd, ret[i - 1]);
	return ret[n - 1] && !result->bits && !result->offset && ret[0]->width == 8 &&
	       ret[0]->addr.offset == RUBY_SELF;
}

static bool loads_ec(const struct reading *rd, const struct emu_access *a)
{
	return a && !a->store && rd->ec_var && a->addr.known && a->addr.v == rd->ec_var;
}

/* Whether it loads @member of the current EC. */
static bool loads_from_ec(const struct reading *rd, const struct emu_access *a,
			  enum ruby_field member)
{
	return a && !a->store && is_field(rd, member, a->addr.offset) &&
	       loads_ec(rd, base_of(rd, a));
}

/* ---- rb_thread_current ---- */

static void read_ec(struct reading *rd)
{
	uint64_t global = rd->bin->symbol[RUBY_SYM_ruby_current_execution_context_ptr];
	const struct emu_access *c[3];
	unsigned int i;

	for (i = 0; i < rd->emu.n_results; i++) {
		if (!self_chain(rd, &rd->emu.result[i], c, 3))
			continue;
		say_offset(rd, RUBY_FIELD_ec_thread_ptr, c[1]->addr.offset);
		if (is_object(rd, c[0]->value, RUBY_T_DATA) && (!global || c[2]->addr.v == global))
			rd->ec_var = c[2]->addr.v;
	}
}

/* Which libc resolves the TLS address shows by what is found there. */
static void read_thread_current(struct reading *rd)
{
	for (rd->emu.libc = 0; rd->emu.libc < EMU_LIBCS; rd->emu.libc++) {
		if (run(rd, RUBY_SYM_rb_thread_current))
			read_ec(rd);
		if (rd->ec_var)
			return;
	}
	rd->emu.libc = 0;
}

/* ---- rb_fiber_current ---- */

/* An EC lies in its fiber. */
static void read_fiber_ec(struct reading *rd, const struct emu_access *ec,
			  const struct emu_access *fiber)
{
	uint64_t offset = ec->value.v - fiber->value.v;

	if (ec->value.known && fiber->value.known && offset < FIBER_SIZE)
		say_offset(rd, RUBY_FIELD_fiber_ec, (int64_t)offset);
}

/* If there is no object for the root fiber yet, it makes one: of th->ec->fiber_ptr. */
static void read_th_ec(struct reading *rd, const struct emu_access *fiber)
{
	const struct emu_access *ec = base_of(rd, fiber), *th = base_of(rd, ec);
	const struct emu_access *current = base_of(rd, th);

	if (fiber->store || !is_field(rd, RUBY_FIELD_ec_fiber_ptr, fiber->addr.offset) ||
	    !loads_from_ec(rd, th, RUBY_FIELD_ec_thread_ptr))
		return;
	if (ec->value.known && ec->value.v == current->value.v)
		say_offset(rd, RUBY_FIELD_th_ec, ec->addr.offset);
}

static void read_fiber_current(struct reading *rd)
{
	const struct emu_access *c[3];
	unsigned int i;

	if (!run(rd, RUBY_SYM_rb_fiber_current))
		return;
	for (i = 0; i < rd->emu.n_results; i++) {
		if (!self_chain(rd, &rd->emu.result[i], c, 3) ||
		    (rd->ec_var && !loads_ec(rd, c[2])))
			continue;
		say_offset(rd, RUBY_FIELD_ec_fiber_ptr, c[1]->addr.offset);
		if (rd->ec_var)
			read_fiber_ec(rd, c[2], c[1]);
	}
	for (i = 0; i < rd->emu.n_accesses; i++)
		read_th_ec(rd, &rd->emu.access[i]);
}

/* ---- rb_fiber_yield ---- */

static bool is_of_fiber(const struct reading *rd, const struct emu_access *a)
{
	return a->width == 8 && a->addr.offset != RUBY_SELF &&
	       loads_from_ec(rd, base_of(rd, a), RUBY_FIELD_ec_fiber_ptr);
}

/* It returns to fiber->prev, and sets that to NULL. Of what it does later, nothing is like that. */
static void read_fiber_yield(struct reading *rd)
{
	const struct emu_access *a = rd->emu.access;
	unsigned int i, k;

	if (!run(rd, RUBY_SYM_rb_fiber_yield))
		return;
	for (i = 0; i < rd->emu.n_accesses; i++) {
		if (!a[i].store || !a[i].value.known || a[i].value.v || !is_of_fiber(rd, &a[i]))
			continue;
		for (k = 0; k < i; k++)
			if (!a[k].store && a[k].addr.offset == a[i].addr.offset &&
			    is_of_fiber(rd, &a[k]))
				say_offset(rd, RUBY_FIELD_fiber_prev, a[i].addr.offset);
	}
}

/* ---- rb_during_gc, rb_gc_count ---- */

/* Whether @objspace is loaded from the only ractor, or that of the running thread. */
static bool is_of_ractor(const struct reading *rd, const struct emu_access *objspace)
{
	const struct emu_access *owner = base_of(rd, objspace);

	if (!owner)
		return false;
	if (known(&rd->single_ractor) && owner->addr.v == rd->single_ractor.value)
		return true;
	return is_field(rd, RUBY_FIELD_th_ractor, owner->addr.offset) &&
	       loads_from_ec(rd, base_of(rd, owner), RUBY_FIELD_ec_thread_ptr);
}

/* @a is a load from the objspace, which the VM has, or a ractor. */
static bool read_objspace(struct reading *rd, const struct emu_access *a)
{
	const struct emu_access *objspace = base_of(rd, a), *owner = base_of(rd, objspace);

	if (is_of_ractor(rd, objspace)) {
		say(&rd->ractor_objspace, (uint64_t)objspace->addr.offset);
		return true;
	}
	if (!owner || !is_variable(rd, owner->addr))
		return false;
	say(&rd->current_vm, owner->addr.v);
	say_offset(rd, RUBY_FIELD_vm_objspace, objspace->addr.offset);
	return true;
}

/*
 * Run a function of the collector. A Ruby with modular collectors calls it through a variable, also
 * the one that is built in.
 */
static bool run_gc(struct reading *rd, enum ruby_binary_symbol function)
{
	if (!run(rd, function))
		return false;
	rd->gc_in_module |= rd->emu.in_more;
	rd->gc_left |= rd->emu.left_code;
	return true;
}

/*
 * Whether bit number @bit of @flags may be during_gc: where each ractor has an objspace, one more
 * is before it.
 */
static bool is_during_gc(const struct reading *rd, const struct emu_access *flags, int32_t bit)
{
	return bit == RUBY_GC_DURING_GC_BIT ||
	       (bit == RUBY_GC_DURING_GC_BIT + 1 && is_of_ractor(rd, base_of(rd, flags)));
}

/* The bit may be taken from a byte, a word or two words: they are counted from where it is. */
static void read_during_gc(struct reading *rd)
{
	const struct emu_value *r = rd->emu.result;
	unsigned int i;

	if (!run_gc(rd, RUBY_SYM_rb_during_gc))
		return;
	for (i = 0; i < rd->emu.n_results; i++) {
		const struct emu_access *flags = emu_origin(&rd->emu, &r[i]);

		if (!flags || !r[i].bits || !is_during_gc(rd, flags, r[i].offset % 8) ||
		    !read_objspace(rd, flags))
			continue;
		say_offset(rd, RUBY_FIELD_objspace_flags,
			   (int64_t)flags->addr.offset + r[i].offset / 8);
		say(&rd->during_gc_bit, (uint64_t)r[i].offset % 8);
	}
}

static void read_gc_count(struct reading *rd)
{
	const struct emu_value *r = rd->emu.result;
	unsigned int i;

	if (!run_gc(rd, RUBY_SYM_rb_gc_count))
		return;
	for (i = 0; i < rd->emu.n_results; i++) {
		const struct emu_access *count = emu_origin(&rd->emu, &r[i]);

		if (count && !r[i].bits && !r[i].offset && count->width == 8 &&
		    read_objspace(rd, count))
			say_offset(rd, RUBY_FIELD_objspace_count, count->addr.offset);
	}
}

/* ---- rb_thread_main ---- */

/* @main loads ractor->threads.main. */
static void read_running_ec(struct reading *rd, const struct emu_access *main)
{
	const struct emu_access *ractor = base_of(rd, main);
	int64_t offset = (int64_t)main->addr.offset - RUNNING_EC_BACK;
	uint64_t ec;

	if (!ractor->value.known ||
	    memory_read_u64(rd->emu.mem, ractor->value.v + (uint64_t)offset, &ec))
		return;
	if (!ec || is_ec(rd, ec))
		say_offset(rd, RUBY_FIELD_ractor_running_ec, offset);
}

static void read_thread_main(struct reading *rd)
{
	const struct emu_access *c[4];
	unsigned int i;

	if (!run(rd, RUBY_SYM_rb_thread_main))
		return;
	for (i = 0; i < rd->emu.n_results; i++) {
		bool of_thread;

		if (!self_chain(rd, &rd->emu.result[i], c, 3))
			continue;
		c[3] = base_of(rd, c[2]);
		of_thread = loads_from_ec(rd, c[3], RUBY_FIELD_ec_thread_ptr);
		if (of_thread)
			say_offset(rd, rd->global_ec ? RUBY_FIELD_th_vm : RUBY_FIELD_th_ractor,
				   c[2]->addr.offset);
		if (rd->global_ec)
			continue;
		if (is_variable(rd, c[2]->addr))
			say(&rd->single_ractor, c[2]->addr.v);
		else if (!of_thread)
			continue;
		read_running_ec(rd, c[1]);
	}
}

/* ---- rb_id2str ---- */

/*
 * It reads last_id (4.1: next_id), an unsigned int that comes first, and ids of
 * ruby_global_symbols.
 */
static void read_symbols(struct reading *rd)
{
	const struct emu_access *a = rd->emu.access;
	unsigned int i, k;

	if (!run(rd, RUBY_SYM_rb_id2str))
		return;
	for (i = 0; i < rd->emu.n_accesses; i++) {
		if (a[i].store || a[i].width != 4 || !in_data(rd, a[i].addr))
			continue;
		for (k = 0; k < rd->emu.n_accesses; k++)
			if (!a[k].store && a[k].width == 8 && a[k].addr.known &&
			    a[k].addr.v == a[i].addr.v + RUBY_SYMBOLS_IDS &&
			    (is_object(rd, a[k].value, RUBY_T_ARRAY) ||
			     is_object(rd, a[k].value, RUBY_T_DATA)))
				say(&rd->symbols, a[i].addr.v);
	}
}

/* ---- all of them ---- */

static void report(const struct reading *rd, struct ruby_code *ret)
{
	enum ruby_field field;

	*ret = (struct ruby_code) { 0 };
	ruby_layout_init(&ret->layout);
	for (field = 0; field < RUBY_FIELDS; field++)
		if (known(&rd->field[field]))
			*ruby_layout_at(&ret->layout, field) = (uint16_t)rd->field[field].value;
	if (known(&rd->current_vm))
		ret->current_vm = rd->current_vm.value;
	if (known(&rd->during_gc_bit))
		ret->during_gc_bit = (uint8_t)rd->during_gc_bit.value;
	if (known(&rd->ractor_objspace)) {
		ret->single_ractor = known(&rd->single_ractor) ? rd->single_ractor.value : 0;
		ret->ractor_objspace = rd->ractor_objspace.value;
		/* What the VM has is one to end with. */
		ret->layout.vm_objspace = RUBY_UNKNOWN;
	}
	if (known(&rd->symbols))
		ret->symbols = rd->symbols.value;
	if (!rd->global_ec)
		ret->ec_slot = rd->ec_var;
	ret->gc_in_module = rd->gc_in_module;
	/* Some path may lead to what ends the program. */
	ret->gc_elsewhere = rd->gc_left && (ret->layout.objspace_flags == RUBY_UNKNOWN ||
					    ret->layout.objspace_count == RUBY_UNKNOWN);
}

static void reading_init(struct reading *rd, const struct emu_machine *machine,
			 const struct memory *mem, const struct ruby_binary *bin, uint64_t tp)
{
	*rd = (struct reading) {
		.emu = { .machine = machine,
			 .mem = mem,
			 .text_lo = bin->text_lo,
			 .text_hi = bin->text_hi,
			 .more_lo = bin->gc_lo,
			 .more_hi = bin->gc_hi,
			 .tp = tp },
		.bin = bin,
		.global_ec = bin->symbol[RUBY_SYM_ruby_current_execution_context_ptr] != 0,
	};
}

void ruby_code_read_machine(const struct emu_machine *machine, const struct memory *mem,
			    const struct ruby_binary *bin, uint64_t tp, struct ruby_code *ret)
{
	struct reading rd;

	reading_init(&rd, machine, mem, bin, tp);
	/*
	 * In this order: what is found out of the EC and the fiber tells their loads from others.
	 */
	read_thread_current(&rd);
	read_fiber_current(&rd);
	read_fiber_yield(&rd);
	read_thread_main(&rd);
	read_during_gc(&rd);
	read_gc_count(&rd);
	read_symbols(&rd);
	report(&rd, ret);
}

void ruby_code_read(const struct memory *mem, const struct ruby_binary *bin, uint64_t tp,
		    struct ruby_code *ret)
{
	ruby_code_read_machine(&EMU_HOST, mem, bin, tp, ret);
}

void ruby_code_read_gc(const struct memory *mem, const struct ruby_binary *bin, uint64_t tp,
		       struct ruby_code *ret)
{
	struct reading rd;

	reading_init(&rd, &EMU_HOST, mem, bin, tp);
	read_thread_current(&rd);
	read_thread_main(&rd);
	read_during_gc(&rd);
	read_gc_count(&rd);
	report(&rd, ret);
}
