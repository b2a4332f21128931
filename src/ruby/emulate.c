/* SPDX-License-Identifier: GPL-2.0-only */
#include "ruby/emulate.h"

#include <string.h>

#include "base/array.h"
#include "target/memory.h"

#define STEPS	     256  /* instructions executed of the function itself … */
#define CALLEE_STEPS 48	  /* … and of one it calls: those of interest are accessors */
#define BUDGET	     4096 /* instructions in one run */
#define DEPTH	     3	  /* calls within calls */
#define PENDING	     12	  /* branches not yet taken */

/* No address of user space on any machine: so the stack is told from memory by its address. */
#define STACK_TOP    (1ull << 63)
#define STACK_SIZE   65536 /* what counts as stack; only the topmost EMU_SLOTS words are kept */

#define TLS_MODULES  4096u	  /* more shared objects than any process has loaded */
#define TLS_BLOCK    (1ull << 24) /* larger than the TLS of all that a process loads at its start */

/* The exploration of one function. */
struct emu_paths {
	struct emu_state pending[PENDING];
	unsigned int head, n;
	uint64_t visited[STEPS]; /* addresses of instructions executed */
	unsigned int n_visited, max_visited;
};

/* ---- values ---- */

struct emu_value emu_const(uint64_t v)
{
	return (struct emu_value) { .v = v, .known = true };
}

static bool is_const(struct emu_value a)
{
	return a.known && !a.load;
}

/* What has become of @a's origin after @b was added to the value. */
static void shift_origin(struct emu_value *a, int64_t b)
{
	int64_t offset;

	if (a->bits || __builtin_add_overflow(a->offset, b, &offset) || offset != (int32_t)offset)
		a->load = 0;
	else
		a->offset = (int32_t)offset;
}

/* The value is bits @shift and up of @a. */
static void cut_origin(struct emu_value *a, uint64_t shift)
{
	if (shift > 63 || (!a->bits && a->offset))
		a->load = 0;
	else
		a->offset += (int32_t)shift;
	a->bits = true;
}

static uint64_t compute(enum emu_op op, uint64_t a, uint64_t b)
{
	switch (op) {
	case EMU_ADD:
		return a + b;
	case EMU_SUB:
		return a - b;
	case EMU_AND:
		return a & b;
	case EMU_OR:
		return a | b;
	case EMU_XOR:
		return a ^ b;
	case EMU_SHR:
		return b < 64 ? a >> b : 0;
	case EMU_OTHER:
		break;
	}
	return 0;
}

struct emu_value emu_compute(enum emu_op op, struct emu_value a, struct emu_value b)
{
	struct emu_value r = a;

	if (op == EMU_ADD && is_const(a)) {
		r = b;
		b = a;
		a = r;
	}
	if (op == EMU_OTHER)
		return (struct emu_value) { 0 };
	r.known = a.known && b.known;
	r.v = r.known ? compute(op, a.v, b.v) : 0;
	if (!is_const(b) || op == EMU_OR || op == EMU_XOR)
		r.load = 0;
	else if (op == EMU_ADD || op == EMU_SUB)
		shift_origin(&r, (int64_t)(op == EMU_ADD ? b.v : -b.v));
	else
		cut_origin(&r, op == EMU_SHR ? b.v : 0);
	if (!r.load)
		return r.known ? emu_const(r.v) : (struct emu_value) { 0 };
	return r;
}

struct emu_value emu_add(struct emu_value a, int64_t b)
{
	return emu_compute(EMU_ADD, a, emu_const((uint64_t)b));
}

struct emu_value emu_narrow(struct emu_value v, unsigned int width)
{
	return width >= 8 ? v : emu_compute(EMU_AND, v, emu_const((1ull << width * 8) - 1));
}

const struct emu_access *emu_origin(const struct emulator *e, const struct emu_value *v)
{
	return v->load ? &e->access[v->load - 1] : NULL;
}

/* ---- memory ---- */

static bool in_more(const struct emulator *e, uint64_t addr)
{
	return addr >= e->more_lo && addr < e->more_hi;
}

static bool in_code(const struct emulator *e, uint64_t addr)
{
	return (addr >= e->text_lo && addr < e->text_hi) || in_more(e, addr);
}

size_t emu_fetch(struct emulator *e, uint64_t pc, uint8_t *code, size_t size)
{
	uint64_t end = in_more(e, pc) ? e->more_hi : e->text_hi;
	size_t off;

	if (!in_code(e, pc))
		return 0;
	e->in_more |= in_more(e, pc);
	if (size > end - pc)
		size = end - pc;
	if (pc < e->code_addr || pc - e->code_addr + size > e->code_len) {
		e->code_addr = pc;
		e->code_len = memory_read_some(e->mem, pc, e->code, sizeof(e->code));
	}
	off = pc - e->code_addr;
	if (size > e->code_len - off)
		size = e->code_len - off;
	memcpy(code, e->code + off, size);
	return size;
}

static bool on_stack(struct emu_value addr)
{
	return addr.known && addr.v + STACK_SIZE - STACK_TOP < 2 * STACK_SIZE;
}

/* The slot at @addr, or NULL if it is not kept. */
static struct emu_value *stack_slot(struct emu_state *s, uint64_t addr)
{
	uint64_t i = (STACK_TOP - addr - 1) / 8;

	return addr < STACK_TOP && i < EMU_SLOTS ? &s->slot[i] : NULL;
}

void emu_forget(struct emu_state *s, struct emu_value addr, unsigned int width)
{
	uint64_t at;

	if (!on_stack(addr))
		return;
	for (at = addr.v & ~7ull; at < addr.v + width; at += 8) {
		struct emu_value *slot = stack_slot(s, at);

		if (slot)
			*slot = (struct emu_value) { 0 };
	}
}

static struct emu_value stack_load(struct emu_state *s, uint64_t addr, unsigned int width)
{
	struct emu_value *slot = stack_slot(s, addr);

	return slot && addr % 8 == 0 ? emu_narrow(*slot, width) : (struct emu_value) { 0 };
}

/* NULL if there is no room. */
static struct emu_access *add_access(struct emulator *e, struct emu_value addr, unsigned int width)
{
	struct emu_access *a = &e->access[e->n_accesses];

	if (e->n_accesses == EMU_ACCESSES)
		return NULL;
	if (addr.bits)
		addr.load = 0;
	*a = (struct emu_access) { .addr = addr, .width = (uint8_t)width };
	e->n_accesses++;
	return a;
}

struct emu_value emu_load(struct emulator *e, struct emu_state *s, struct emu_value addr,
			  unsigned int width)
{
	struct emu_value r = { 0 };
	struct emu_access *a;

	if (on_stack(addr))
		return stack_load(s, addr.v, width);
	a = add_access(e, addr, width);
	if (!a)
		return r;
	if (addr.known && width <= 8 && !memory_read(e->mem, addr.v, &a->value.v, width))
		a->value.known = true;
	else
		a->value.v = 0;
	r = a->value;
	r.load = (uint16_t)e->n_accesses;
	return r;
}

void emu_store(struct emulator *e, struct emu_state *s, struct emu_value addr,
	       struct emu_value value, unsigned int width)
{
	struct emu_access *a;

	if (on_stack(addr)) {
		emu_forget(s, addr, width);
		if (width == 8 && addr.v % 8 == 0 && stack_slot(s, addr.v))
			*stack_slot(s, addr.v) = value;
		return;
	}
	a = add_access(e, addr, width);
	if (a) {
		a->value = value;
		a->store = true;
	}
}

/* ---- thread-local storage ---- */

/* As __tls_get_addr() does it: { module, offset } through the DTV. */
static bool tls_address(const struct emulator *e, const uint64_t index[2], uint64_t *ret)
{
	uint64_t dtv, block, at = e->tp + (uint64_t)e->machine->dtv[e->libc].at;

	if (!index[0] || index[0] > TLS_MODULES || index[1] > TLS_BLOCK)
		return false;
	if (memory_read_u64(e->mem, at, &dtv) ||
	    memory_read_u64(e->mem, dtv + index[0] * e->machine->dtv[e->libc].entry, &block))
		return false;
	if (!block || block == ~0ull) /* not allocated in this thread yet */
		return false;
	*ret = block + index[1];
	return true;
}

/* Two words at the constant address @v: what a linker, not a program, has made. */
static bool read_pair(const struct emulator *e, struct emu_value v, uint64_t pair[2])
{
	return is_const(v) && !memory_read(e->mem, v.v, pair, 2 * sizeof(*pair));
}

/* What a function outside the code returns. */
static struct emu_value outside_result(struct emulator *e, const struct emu_state *s)
{
	uint64_t index[2], addr;

	if (read_pair(e, s->reg[e->machine->argument], index) && tls_address(e, index, &addr))
		return emu_const(addr);
	e->left_code = true;
	return (struct emu_value) { 0 };
}

/*
 * A TLS descriptor is { function, argument }, and the function is called with its address. The
 * argument is the offset from the thread pointer if the variable is in static TLS, else it points
 * to { module, offset }. Returns the offset from the thread pointer and changes no other register.
 */
static bool call_descriptor(struct emulator *e, struct emu_state *s, struct emu_value target)
{
	struct emu_value *r = &s->reg[e->machine->tlsdesc];
	uint64_t desc[2], index[2], addr;

	if (!target.known || !read_pair(e, *r, desc) || desc[0] != target.v)
		return false;
	if (desc[1] + TLS_BLOCK < 2 * TLS_BLOCK) {
		*r = emu_const(desc[1]);
		return true;
	}
	if (memory_read(e->mem, desc[1], index, sizeof(index)) || !tls_address(e, index, &addr))
		return false;
	*r = emu_const(addr - e->tp);
	return true;
}

/* ---- control ---- */

void emu_branch(struct emulator *e, const struct emu_state *s, uint64_t target)
{
	struct emu_paths *p = e->paths;
	struct emu_state *copy = &p->pending[(p->head + p->n) % PENDING];

	if (p->n == PENDING || !in_code(e, target))
		return;
	*copy = *s;
	copy->pc = target;
	p->n++;
}

enum emu_step emu_jump(struct emulator *e, struct emu_state *s, struct emu_value target)
{
	if (target.known && in_code(e, target.v)) {
		s->pc = target.v;
		return EMU_NEXT;
	}
	s->reg[e->machine->result] = outside_result(e, s);
	return EMU_RETURN;
}

static bool first_time(struct emu_paths *p, uint64_t pc)
{
	unsigned int i;

	for (i = 0; i < p->n_visited; i++)
		if (p->visited[i] == pc)
			return false;
	if (p->n_visited == p->max_visited)
		return false;
	p->visited[p->n_visited++] = pc;
	return true;
}

static enum emu_step run_path(struct emulator *e, struct emu_state *s)
{
	enum emu_step step = EMU_NEXT;

	while (step == EMU_NEXT) {
		if (!e->budget || !first_time(e->paths, s->pc))
			return EMU_STOP;
		e->budget--;
		step = e->machine->step(e, s);
	}
	return step;
}

/*
 * Run the function at s->pc by all its paths, the one that falls through its branches first, since
 * compilers lay out the likely path so. Returns how many results, at most @max, were put in
 * @results. NULL and what is unknown are none.
 */
static unsigned int explore(struct emulator *e, struct emu_state *s, unsigned int steps,
			    struct emu_value *results, unsigned int max)
{
	struct emu_paths paths, *outer = e->paths;
	unsigned int n = 0;

	paths.head = paths.n = paths.n_visited = 0;
	paths.max_visited = steps;
	e->paths = &paths;
	for (;;) {
		struct emu_value *result = &s->reg[e->machine->result];

		if (run_path(e, s) == EMU_RETURN && (result->load || result->v))
			results[n++] = *result;
		if (n == max || !paths.n)
			break;
		*s = paths.pending[paths.head];
		paths.head = (paths.head + 1) % PENDING;
		paths.n--;
	}
	e->paths = outer;
	return n;
}

void emu_call(struct emulator *e, struct emu_state *s, struct emu_value target)
{
	struct emu_value result = { 0 };
	unsigned int i;

	if (target.known && in_code(e, target.v)) {
		struct emu_state callee = *s;

		callee.pc = target.v;
		if (e->depth < DEPTH) {
			e->depth++;
			explore(e, &callee, CALLEE_STEPS, &result, 1);
			e->depth--;
		}
	} else if (call_descriptor(e, s, target)) {
		return;
	} else {
		result = outside_result(e, s);
	}
	for (i = 0; i < EMU_REGS; i++)
		if (e->machine->scratch >> i & 1)
			s->reg[i] = (struct emu_value) { 0 };
	s->reg[e->machine->result] = result;
}

void emu_run(struct emulator *e, uint64_t entry)
{
	struct emu_state s = { .pc = entry };

	e->n_accesses = 0;
	e->in_more = e->left_code = false;
	e->depth = 0;
	e->budget = BUDGET;
	e->code_len = 0;
	e->paths = NULL;
	/* Room above for what the function finds there: its arguments, a return address. */
	s.reg[e->machine->sp] = emu_const(STACK_TOP - 64);
	e->n_results = explore(e, &s, STEPS, e->result, ARRAY_SIZE(e->result));
}
