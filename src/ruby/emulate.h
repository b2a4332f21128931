/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A small emulator that runs a function of another process to learn which memory it reads.
 *
 * It reads the function and its data from live memory and writes nothing: what the code stores goes
 * to a stack of the emulator's own or nowhere. Each value remembers the load it was computed from,
 * so that afterwards one can ask for the chain of loads behind a result, with the displacement of
 * each: "the word at 16 of the word at 48 of the word at &ruby_current_ec".
 *
 * It knows no flags: at a conditional branch both ways are taken, so what is seen does not depend
 * on the state the process happens to be in. Each instruction of a function is executed at most
 * once, so there are no loops. Calls within the code that may be run are followed. A call out of it
 * is taken to be one of __tls_get_addr() if its argument points to { module, offset }; else its
 * result is unknown.
 * After an instruction that is not modelled, whatever it may have written is unknown; one that
 * cannot be decoded ends the path.
 *
 * It trusts nothing that it reads: code and data may be any bytes.
 */
#ifndef RBPF_RUBY_EMULATE_H
#define RBPF_RUBY_EMULATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct memory;

#define EMU_REGS     32
#define EMU_SLOTS    64	 /* 8-byte words of stack that keep their values */
#define EMU_ACCESSES 256 /* loads and stores remembered of one run; later loads give nothing */
#define EMU_RESULTS  8	 /* results remembered of one run */
#define EMU_LIBCS    2	 /* forms of the DTV: glibc, musl */

/* The value of a register. All zero: nothing is known. */
struct emu_value {
	uint64_t v;	/* the value, if known; else 0 */
	int32_t offset; /* the value is what was loaded + offset; or, if bits, loaded >> offset */
	uint16_t load;	/* number of the load that it was computed from, from 1; 0: from none */
	bool known;
	bool bits; /* some bits of what was loaded, from bit number offset up */
};

/* A load or store of the code, other than of its own stack. */
struct emu_access {
	struct emu_value addr;
	struct emu_value value; /* read from memory; or about to be stored */
	uint8_t width;		/* in bytes */
	bool store;
};

struct emu_state {
	uint64_t pc;
	struct emu_value reg[EMU_REGS];
	struct emu_value slot[EMU_SLOTS];
};

enum emu_step {
	EMU_NEXT,   /* go on at pc */
	EMU_RETURN, /* the result register holds the function's result */
	EMU_STOP,   /* not to be followed: a trap, or code that is not understood */
};

struct emulator;

/* A kind of processor. */
struct emu_machine {
	enum emu_step (*step)(struct emulator *e, struct emu_state *s);
	uint8_t sp, result, argument; /* register numbers */
	uint8_t tlsdesc;  /* register with the argument and result of a TLS descriptor */
	uint32_t scratch; /* set of registers that a call may change */
	struct {
		int8_t at;     /* of the pointer to the DTV, from the thread pointer */
		uint8_t entry; /* size of its entries */
	} dtv[EMU_LIBCS];
};

extern const struct emu_machine emu_x86_64, emu_arm64;

#ifdef __aarch64__
#define EMU_HOST emu_arm64
#else
#define EMU_HOST emu_x86_64
#endif

struct emulator {
	const struct emu_machine *machine;
	const struct memory *mem;
	uint64_t text_lo, text_hi; /* the code that may be run … */
	uint64_t more_lo, more_hi; /* … and more of it, in another file; both 0: there is none */
	uint64_t tp;		   /* thread pointer */
	unsigned int libc;	   /* which form of the DTV: below EMU_LIBCS */

	/* What the last run did. */
	struct emu_access access[EMU_ACCESSES]; /* load number n is access[n - 1] */
	unsigned int n_accesses;
	struct emu_value result[EMU_RESULTS]; /* one for each path; those that are unknown or 0 are
						 left out */
	unsigned int n_results;
	bool in_more;	/* code in [more_lo, more_hi) was run */
	bool left_code; /* a path led out of the code, and not to what resolves a TLS address */

	/* Private. */
	unsigned int depth, budget;
	struct emu_paths *paths;
	uint64_t code_addr;
	size_t code_len;
	uint8_t code[256];
};

/* Run the function at @entry. What it did is in @e until the next run. */
void emu_run(struct emulator *e, uint64_t entry);

/* The load that @v was computed from, or NULL. */
const struct emu_access *emu_origin(const struct emulator *e, const struct emu_value *v);

/* ---- for the machines ---- */

enum emu_op { EMU_ADD, EMU_SUB, EMU_AND, EMU_OR, EMU_XOR, EMU_SHR, EMU_OTHER };

struct emu_value emu_const(uint64_t v);
struct emu_value emu_compute(enum emu_op op, struct emu_value a, struct emu_value b);
struct emu_value emu_add(struct emu_value a, int64_t b);
/* The low @width bytes of @v. */
struct emu_value emu_narrow(struct emu_value v, unsigned int width);

/* Copy at most @size bytes of code from @pc; returns their number, 0 outside the text. */
size_t emu_fetch(struct emulator *e, uint64_t pc, uint8_t *code, size_t size);

struct emu_value emu_load(struct emulator *e, struct emu_state *s, struct emu_value addr,
			  unsigned int width);
void emu_store(struct emulator *e, struct emu_state *s, struct emu_value addr,
	       struct emu_value value, unsigned int width);
/* Something unknown is stored by an instruction that is not modelled. */
void emu_forget(struct emu_state *s, struct emu_value addr, unsigned int width);

/* A conditional branch: @target is taken later, on a copy of @s. */
void emu_branch(struct emulator *e, const struct emu_state *s, uint64_t target);
enum emu_step emu_jump(struct emulator *e, struct emu_state *s, struct emu_value target);
void emu_call(struct emulator *e, struct emu_state *s, struct emu_value target);

#endif
