/* SPDX-License-Identifier: GPL-2.0-only */
#include <criterion/criterion.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ruby/emulate.h"
#include "ruby/emulate_x86_64_insn.h"
#include "target/memory.h"

/*
 * The processes of these tests: a page of code, a page of data, the thread pointer in a third that
 * is not mapped. All data is 0, but for pointers to TARGET in the code.
 */
#define TEXT	0x1000u
#define DATA	0x2000u
#define PAGE	0x1000u
#define POINTER 0x2100u /* also behind it */
#define TARGET	0x1040u
#define TP	0x7000u

struct process {
	uint8_t bytes[2 * PAGE]; /* from TEXT */
	struct memory mem;
	struct emulator emu;
};

static void read_image(const struct memory *mem, struct memory_span *spans, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		uint64_t at = spans[i].addr - TEXT;

		spans[i].ok = at < 2 * PAGE && spans[i].len <= 2 * PAGE - at;
		if (spans[i].ok)
			memcpy(spans[i].dst, (const uint8_t *)mem->image + at, spans[i].len);
	}
}

static struct process *process_new(const struct emu_machine *machine, const char *code, size_t size)
{
	struct process *p = calloc(1, sizeof(*p));
	uint64_t target = TARGET;

	cr_assert(p && size <= PAGE);
	memcpy(p->bytes, code, size);
	memcpy(p->bytes + POINTER - TEXT, &target, 8);
	memcpy(p->bytes + POINTER - TEXT + 8, &target, 8);
	p->mem = (struct memory) { .read_spans = read_image, .image = p->bytes };
	p->emu = (struct emulator) { .machine = machine,
				     .mem = &p->mem,
				     .text_lo = TEXT,
				     .text_hi = TEXT + PAGE,
				     .tp = TP };
	return p;
}

/* "[[2000]+10]": the word at 10 of the word at 2000. "[?]": the word at who knows where. */
static void describe(const struct emulator *e, const struct emu_access *a, char *out, size_t size)
{
	const struct emu_access *base = emu_origin(e, &a->addr);
	char inner[128];

	if (base) {
		int64_t offset = a->addr.offset;

		describe(e, base, inner, sizeof(inner));
		if (offset)
			snprintf(out, size, "[%s%c%" PRIx64 "]", inner, offset < 0 ? '-' : '+',
				 offset < 0 ? -offset : offset);
		else
			snprintf(out, size, "[%s]", inner);
	} else if (a->addr.known && a->addr.v < 0x10000 && a->addr.v > 0xfff) {
		snprintf(out, size, "[%" PRIx64 "]", a->addr.v);
	} else {
		snprintf(out, size, "[?]");
	}
}

/* The results in the order in which they were found: "[2000]>>5" are bits 5 and up of a word. */
static void describe_results(const struct emulator *e, char *out, size_t size)
{
	char one[160];
	size_t n = 0;

	out[0] = '\0';
	for (unsigned int i = 0; i < e->n_results; i++) {
		const struct emu_access *a = emu_origin(e, &e->result[i]);

		if (!a)
			continue;
		describe(e, a, one, sizeof(one));
		n += (size_t)snprintf(out + n, size - n, "%s%s", n ? " " : "", one);
		if (e->result[i].bits)
			n += (size_t)snprintf(out + n, size - n, ">>%" PRIx32,
					      (uint32_t)e->result[i].offset);
	}
}

struct example {
	const char *title, *want;
	const char *code;
	size_t size;
};

#define CODE(bytes) bytes, sizeof(bytes) - 1

static void expect_examples(const struct emu_machine *machine, const struct example *v, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		struct process *p = process_new(machine, v[i].code, v[i].size);
		char got[1024];

		emu_run(&p->emu, TEXT);
		describe_results(&p->emu, got, sizeof(got));
		cr_expect_str_eq(got, v[i].want, "%s: \"%s\", not \"%s\"", v[i].title, got,
				 v[i].want);
		free(p);
	}
}

static const struct example x86_64[] = {
	{ "chain", "[[2000]+10]",
	  /* mov 0x2000,%rax; mov 0x10(%rax),%rax; ret */
	  CODE("\x48\x8b\x04\x25\x00\x20\x00\x00\x48\x8b\x40\x10\xc3") },
	{ "lea", "[[2000]+18]",
	  /* mov 0x2000,%rax; lea 8(%rax),%rcx; mov 0x10(%rcx),%rax; ret */
	  CODE("\x48\x8b\x04\x25\x00\x20\x00\x00\x48\x8d\x48\x08\x48\x8b\x41\x10\xc3") },
	{ "sums", "[[2000]+f8]",
	  /* mov 0x2000,%rax; add $0x100,%rax; sub $8,%rax; mov (%rax),%rax; ret */
	  CODE("\x48\x8b\x04\x25\x00\x20\x00\x00\x48\x05\x00\x01\x00\x00\x48\x83\xe8\x08\x48\x8b"
	       "\x00\xc3") },
	{ "sum of two loads", "[?]",
	  /* mov 0x2000,%rax; add 0x2008,%rax; mov 8(%rax),%rax; ret */
	  CODE("\x48\x8b\x04\x25\x00\x20\x00\x00\x48\x03\x04\x25\x08\x20\x00\x00\x48\x8b\x40\x08"
	       "\xc3") },
	{ "index", "[[2000]+18]",
	  /* mov 0x2000,%rax; mov $2,%ecx; mov 8(%rax,%rcx,8),%rax; ret */
	  CODE("\x48\x8b\x04\x25\x00\x20\x00\x00\xb9\x02\x00\x00\x00\x48\x8b\x44\xc8\x08\xc3") },
	{ "unknown index", "[?]",
	  /* mov 0x2000,%rax; mov 8(%rax,%rdi,8),%rax; ret */
	  CODE("\x48\x8b\x04\x25\x00\x20\x00\x00\x48\x8b\x44\xf8\x08\xc3") },
	{ "relative to %rip", "[1234]",
	  /* mov 0x22d(%rip),%rax; ret */
	  CODE("\x48\x8b\x05\x2d\x02\x00\x00\xc3") },
	{ "thread pointer", "[7010]",
	  /* mov %fs:0x10,%rax; ret */
	  CODE("\x64\x48\x8b\x04\x25\x10\x00\x00\x00\xc3") },
	{ "below the thread pointer", "[6fb0]",
	  /* mov $-0x50,%rax; mov %fs:(%rax),%rax; ret */
	  CODE("\x48\xc7\xc0\xb0\xff\xff\xff\x64\x48\x8b\x00\xc3") },
	{ "push and pop", "[[2000]+8]",
	  /* mov 0x2000,%rax; push %rax; push $1; pop %rcx; pop %rbx; mov 8(%rbx),%rax; ret */
	  CODE("\x48\x8b\x04\x25\x00\x20\x00\x00\x50\x6a\x01\x59\x5b\x48\x8b\x43\x08\xc3") },
	{ "spill", "[[2000]+8]",
	  /*
	   * mov 0x2000,%rax; mov %rax,-8(%rsp); xor %eax,%eax; mov -8(%rsp),%rax; mov
	   * 8(%rax),%rax; ret
	   */
	  CODE("\x48\x8b\x04\x25\x00\x20\x00\x00\x48\x89\x44\x24\xf8\x31\xc0\x48\x8b\x44\x24\xf8"
	       "\x48\x8b\x40\x08\xc3") },
	{ "frame pointer", "[[2000]+8]",
	  /*
	   * push %rbp; mov %rsp,%rbp; sub $0x40,%rsp; mov 0x2000,%rax; mov %rax,-0x18(%rbp); mov
	   * 0x28(%rsp),%rax; mov 8(%rax),%rax; leave; ret
	   */
	  CODE("\x55\x48\x89\xe5\x48\x83\xec\x40\x48\x8b\x04\x25\x00\x20\x00\x00\x48\x89\x45\xe8"
	       "\x48\x8b\x44\x24\x28\x48\x8b\x40\x08\xc9\xc3") },
	{ "spill overwritten", "",
	  /* mov 0x2000,%rax; push %rax; movups %xmm0,(%rsp); pop %rax; ret */
	  CODE("\x48\x8b\x04\x25\x00\x20\x00\x00\x50\x0f\x11\x04\x24\x58\xc3") },
	{ "spill overwritten in part", "",
	  /* mov 0x2000,%rax; push %rax; movb $1,3(%rsp); pop %rax; ret */
	  CODE("\x48\x8b\x04\x25\x00\x20\x00\x00\x50\xc6\x44\x24\x03\x01\x58\xc3") },
	{ "both ways", "[[2000]+8] [[2000]+10]",
	  /*
	   * mov 0x2000,%rax; test %rax,%rax; je 1f; mov 8(%rax),%rax; ret; 1: mov
	   * 0x10(%rax),%rax; ret
	   */
	  CODE("\x48\x8b\x04\x25\x00\x20\x00\x00\x48\x85\xc0\x74\x05\x48\x8b\x40\x08\xc3\x48\x8b"
	       "\x40\x10\xc3") },
	{ "likely way first", "[[2000]+10] [2000]",
	  /*
	   * mov 0x2000,%rax; test %rax,%rax; jne 1f; jmp 2f; 1: ret; .skip 2,0x90; 2: mov
	   * 0x10(%rax),%rax; ret
	   */
	  CODE("\x48\x8b\x04\x25\x00\x20\x00\x00\x48\x85\xc0\x75\x02\xeb\x03\xc3\x90\x90\x48\x8b"
	       "\x40\x10\xc3") },
	{ "call that gives it", "[[2000]+8]",
	  /* call 1f; mov 8(%rax),%rax; ret; 1: mov 0x2000,%rax; ret */
	  CODE("\xe8\x05\x00\x00\x00\x48\x8b\x40\x08\xc3\x48\x8b\x04\x25\x00\x20\x00\x00\xc3") },
	{ "call keeps %rbx", "[[2000]+8]",
	  /*
	   * mov 0x2000,%rbx; call 1f; mov 8(%rbx),%rax; ret; 1: push %rbx; xor %ebx,%ebx; pop
	   * %rbx; ret
	   */
	  CODE("\x48\x8b\x1c\x25\x00\x20\x00\x00\xe8\x05\x00\x00\x00\x48\x8b\x43\x08\xc3\x53\x31"
	       "\xdb\x5b\xc3") },
	{ "call keeps the stack", "[2000]",
	  /* mov 0x2000,%rbx; push %rbx; call 1f; pop %rax; ret; 1: sub $8,%rsp; push %rdi; ret */
	  CODE("\x48\x8b\x1c\x25\x00\x20\x00\x00\x53\xe8\x02\x00\x00\x00\x58\xc3\x48\x83\xec\x08"
	       "\x57\xc3") },
	{ "call loses %rcx", "",
	  /* mov 0x2000,%rcx; call 1f; mov %rcx,%rax; ret; 1: ret */
	  CODE("\x48\x8b\x0c\x25\x00\x20\x00\x00\xe8\x04\x00\x00\x00\x48\x89\xc8\xc3\xc3") },
	{ "unlikely way of a callee", "[[2000]+8]",
	  /*
	   * call 1f; mov 8(%rax),%rax; ret; 1: je 2f; xor %eax,%eax; ret; 2: mov 0x2000,%rax;
	   * ret
	   */
	  CODE("\xe8\x05\x00\x00\x00\x48\x8b\x40\x08\xc3\x74\x03\x31\xc0\xc3\x48\x8b\x04\x25\x00"
	       "\x20\x00\x00\xc3") },
	{ "tail call", "[2000]",
	  /* jmp 1f; ud2; 1: mov 0x2000,%rax; ret */
	  CODE("\xeb\x02\x0f\x0b\x48\x8b\x04\x25\x00\x20\x00\x00\xc3") },
	{ "through a pointer", "[2000]",
	  /* jmp *0x2100; ud2; .org 0x40; mov 0x2000,%rax; ret */
	  CODE("\xff\x24\x25\x00\x21\x00\x00\x0f\x0b\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"
	       "\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"
	       "\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"
	       "\x00\x00\x00\x00\x48\x8b\x04\x25\x00\x20\x00\x00\xc3") },
	{ "outside", "",
	  /* call *0x2000; ret */
	  CODE("\xff\x14\x25\x00\x20\x00\x00\xc3") },
	{ "loop", "[2000]",
	  /* 1: mov 0x2000,%rax; jne 1b; ret */
	  CODE("\x48\x8b\x04\x25\x00\x20\x00\x00\x75\xf6\xc3") },
	{ "loop without end", "",
	  /* 1: jmp 1b */
	  CODE("\xeb\xfe") },
	{ "recursion", "[2000]",
	  /* call . ; mov 0x2000,%rax; ret */
	  CODE("\xe8\xfb\xff\xff\xff\x48\x8b\x04\x25\x00\x20\x00\x00\xc3") },
	{ "bit of a word", "[2000]>>5",
	  /* mov 0x2000,%eax; shr $5,%eax; and $1,%eax; ret */
	  CODE("\x8b\x04\x25\x00\x20\x00\x00\xc1\xe8\x05\x83\xe0\x01\xc3") },
	{ "bit of a byte", "[2000]>>5",
	  /* movzbl 0x2000,%eax; shr $5,%al; and $1,%eax; ret */
	  CODE("\x0f\xb6\x04\x25\x00\x20\x00\x00\xc0\xe8\x05\x83\xe0\x01\xc3") },
	{ "bit in a byte register", "[2000]>>5",
	  /* mov 0x2000,%al; shr $5,%al; and $1,%al; movzbl %al,%eax; ret */
	  CODE("\x8a\x04\x25\x00\x20\x00\x00\xc0\xe8\x05\x24\x01\x0f\xb6\xc0\xc3") },
	{ "bit of the high half", "[2000]>>25",
	  /* mov 0x2000,%rax; shr $32,%rax; shr $5,%eax; ret */
	  CODE("\x48\x8b\x04\x25\x00\x20\x00\x00\x48\xc1\xe8\x20\xc1\xe8\x05\xc3") },
	{ "bit after a sum", "",
	  /* mov 0x2000,%rax; add $1,%rax; shr $5,%rax; ret */
	  CODE("\x48\x8b\x04\x25\x00\x20\x00\x00\x48\x83\xc0\x01\x48\xc1\xe8\x05\xc3") },
	{ "pointer from bits", "[?]",
	  /* mov 0x2000,%rax; and $-8,%rax; mov 8(%rax),%rax; ret */
	  CODE("\x48\x8b\x04\x25\x00\x20\x00\x00\x48\x83\xe0\xf8\x48\x8b\x40\x08\xc3") },
	{ "high byte", "",
	  /* mov 0x2000,%rax; mov $1,%ah; ret */
	  CODE("\x48\x8b\x04\x25\x00\x20\x00\x00\xb4\x01\xc3") },
	{ "conditional move", "",
	  /* mov 0x2000,%rax; cmove %rdi,%rax; ret */
	  CODE("\x48\x8b\x04\x25\x00\x20\x00\x00\x48\x0f\x44\xc7\xc3") },
	{ "multiplication", "",
	  /* mov 0x2000,%rax; imul $3,%rax,%rax; ret */
	  CODE("\x48\x8b\x04\x25\x00\x20\x00\x00\x48\x6b\xc0\x03\xc3") },
	{ "vector registers are others", "[2000]",
	  /*
	   * mov 0x2000,%rax; pxor %xmm0,%xmm0; vpaddq %ymm0,%ymm1,%ymm0; movups %xmm0,8(%rdi);
	   * ret
	   */
	  CODE("\x48\x8b\x04\x25\x00\x20\x00\x00\x66\x0f\xef\xc0\xc5\xf5\xd4\xc0\x0f\x11\x47\x08"
	       "\xc3") },
	{ "AVX general register", "",
	  /* mov 0x2000,%rax; andn %rcx,%rdx,%rax; ret */
	  CODE("\x48\x8b\x04\x25\x00\x20\x00\x00\xc4\xe2\xe8\xf2\xc1\xc3") },
	{ "division", "",
	  /* mov 0x2000,%rax; div %rcx; ret */
	  CODE("\x48\x8b\x04\x25\x00\x20\x00\x00\x48\xf7\xf1\xc3") },
	{ "zero", "[2000]",
	  /* mov 0x2000,%rax; xor %ecx,%ecx; add %rcx,%rax; ret */
	  CODE("\x48\x8b\x04\x25\x00\x20\x00\x00\x31\xc9\x48\x01\xc8\xc3") },
	{ "padding", "[2000]",
	  /*
	   * endbr64; .byte 0x66,0x66,0x2e,0x0f,0x1f,0x84,0,0,0,0,0; xchg %ax,%ax; notrack jmp
	   * *0x2108; ud2; .org 0x40; bnd jmp 1f; ud2; 1: mov 0x2000,%rax; repz ret
	   */
	  CODE("\xf3\x0f\x1e\xfa\x66\x66\x2e\x0f\x1f\x84\x00\x00\x00\x00\x00\x66\x90\x3e\xff\x24"
	       "\x25\x08\x21\x00\x00\x0f\x0b\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"
	       "\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"
	       "\x00\x00\x00\x00\xf2\xeb\x02\x0f\x0b\x48\x8b\x04\x25\x00\x20\x00\x00\xf3\xc3") },
	{ "trap", "",
	  /* mov 0x2000,%rax; ud2; ret */
	  CODE("\x48\x8b\x04\x25\x00\x20\x00\x00\x0f\x0b\xc3") },
	{ "string instruction", "",
	  /* mov 0x2000,%rax; rep stosq; ret */
	  CODE("\x48\x8b\x04\x25\x00\x20\x00\x00\xf3\x48\xab\xc3") },
};

static const struct example arm64[] = {
	{ "chain", "[[2000]+10]",
	  /* adr x0, #0x1000; ldr x0, [x0]; ldr x0, [x0, #16]; ret */
	  CODE("\x00\x80\x00\x10\x00\x00\x40\xf9\x00\x08\x40\xf9\xc0\x03\x5f\xd6") },
	{ "pages", "[[2010]+7ff8]",
	  /* adrp x1, #0x1000; ldr x1, [x1, #0x10]; ldr x0, [x1, #0x7ff8]; ret */
	  CODE("\x01\x00\x00\xb0\x21\x08\x40\xf9\x20\xfc\x7f\xf9\xc0\x03\x5f\xd6") },
	{ "sums", "[[2000]+10f8]",
	  /*
	   * adrp x0, #0x1000; ldr x0, [x0]; add x0, x0, #1, lsl #12; add x0, x0, #0x100; sub x0,
	   * x0, #8; ldr x0, [x0]; ret
	   */
	  CODE("\x00\x00\x00\xb0\x00\x00\x40\xf9\x00\x04\x40\x91\x00\x00\x04\x91\x00\x20\x00\xd1"
	       "\x00\x00\x40\xf9\xc0\x03\x5f\xd6") },
	{ "subtraction", "[[2000]+8]",
	  /* adrp x0, #0x1000; ldr x0, [x0]; ldur x0, [x0, #8]; ret */
	  CODE("\x00\x00\x00\xb0\x00\x00\x40\xf9\x00\x80\x40\xf8\xc0\x03\x5f\xd6") },
	{ "negative", "[[2000]-8]",
	  /* adrp x0, #0x1000; ldr x0, [x0]; ldur x0, [x0, #-8]; ret */
	  CODE("\x00\x00\x00\xb0\x00\x00\x40\xf9\x00\x80\x5f\xf8\xc0\x03\x5f\xd6") },
	{ "index", "[[2000]+10010]",
	  /*
	   * adrp x0, #0x1000; ldr x0, [x0]; mov x1, #0x10; movk x1, #1, lsl #16; ldr x0, [x0,
	   * x1]; ret
	   */
	  CODE("\x00\x00\x00\xb0\x00\x00\x40\xf9\x01\x02\x80\xd2\x21\x00\xa0\xf2\x00\x68\x61\xf8"
	       "\xc0\x03\x5f\xd6") },
	{ "unknown index", "[?]",
	  /* adrp x0, #0x1000; ldr x0, [x0]; ldr x0, [x0, x1]; ret */
	  CODE("\x00\x00\x00\xb0\x00\x00\x40\xf9\x00\x68\x61\xf8\xc0\x03\x5f\xd6") },
	{ "shifted index", "[?]",
	  /* adrp x0, #0x1000; ldr x0, [x0]; mov x1, #1; ldr x0, [x0, x1, lsl #3]; ret */
	  CODE("\x00\x00\x00\xb0\x00\x00\x40\xf9\x21\x00\x80\xd2\x00\x78\x61\xf8\xc0\x03\x5f"
	       "\xd6") },
	{ "thread pointer", "[7018]",
	  /* mrs x1, tpidr_el0; mov x0, #0x18; ldr x0, [x1, x0]; ret */
	  CODE("\x41\xd0\x3b\xd5\x00\x03\x80\xd2\x20\x68\x60\xf8\xc0\x03\x5f\xd6") },
	{ "literal", "[1010]",
	  /* ldr x0, #16; ret */
	  CODE("\x80\x00\x00\x58\xc0\x03\x5f\xd6") },
	{ "pair", "[[2000]+18]",
	  /* adrp x0, #0x1000; ldr x0, [x0]; ldp x1, x0, [x0, #0x10]; ret */
	  CODE("\x00\x00\x00\xb0\x00\x00\x40\xf9\x01\x00\x41\xa9\xc0\x03\x5f\xd6") },
	{ "pair after", "[[2000]+8]",
	  /* adrp x1, #0x1000; ldp x0, x2, [x1], #16; ldr x0, [x0, #8]; ret */
	  CODE("\x01\x00\x00\xb0\x20\x08\xc1\xa8\x00\x04\x40\xf9\xc0\x03\x5f\xd6") },
	{ "moved base", "[2018]",
	  /* adrp x1, #0x1000; ldr x0, [x1, #0x10]!; ldr x0, [x1], #8; ldr x0, [x1]; ret */
	  CODE("\x01\x00\x00\xb0\x20\x0c\x41\xf8\x20\x84\x40\xf8\x20\x00\x40\xf9\xc0\x03\x5f"
	       "\xd6") },
	{ "spill", "[[2000]+8]",
	  /*
	   * stp x29, x30, [sp, #-48]!; mov x29, sp; adrp x0, #0x1000; ldr x0, [x0]; str x0, [sp,
	   * #24]; ldr x1, [x29, #24]; ldr x0, [x1, #8]; ldp x29, x30, [sp], #48; ret
	   */
	  CODE("\xfd\x7b\xbd\xa9\xfd\x03\x00\x91\x00\x00\x00\xb0\x00\x00\x40\xf9\xe0\x0f\x00\xf9"
	       "\xa1\x0f\x40\xf9\x20\x04\x40\xf9\xfd\x7b\xc3\xa8\xc0\x03\x5f\xd6") },
	{ "pair of spills", "[[2000]+8]",
	  /*
	   * sub sp, sp, #32; adrp x0, #0x1000; ldr x4, [x0]; stp x4, x3, [sp, #16]; mov x4, #0;
	   * ldp x4, x3, [sp, #16]; ldr x0, [x4, #8]; add sp, sp, #32; ret
	   */
	  CODE("\xff\x83\x00\xd1\x00\x00\x00\xb0\x04\x00\x40\xf9\xe4\x0f\x01\xa9\x04\x00\x80\xd2"
	       "\xe4\x0f\x41\xa9\x80\x04\x40\xf9\xff\x83\x00\x91\xc0\x03\x5f\xd6") },
	{ "spill overwritten", "",
	  /*
	   * adrp x0, #0x1000; ldr x0, [x0]; str x0, [sp, #-16]!; stp q0, q1, [sp]; ldr x0, [sp];
	   * ret
	   */
	  CODE("\x00\x00\x00\xb0\x00\x00\x40\xf9\xe0\x0f\x1f\xf8\xe0\x07\x00\xad\xe0\x03\x40\xf9"
	       "\xc0\x03\x5f\xd6") },
	{ "vector spills", "[2000]",
	  /*
	   * adrp x0, #0x1000; ldr x0, [x0]; str x0, [sp, #-16]!; stp d8, d9, [sp, #-16]!; ldp
	   * d8, d9, [sp], #16; ldr x0, [sp], #16; ret
	   */
	  CODE("\x00\x00\x00\xb0\x00\x00\x40\xf9\xe0\x0f\x1f\xf8\xe8\x27\xbf\x6d\xe8\x27\xc1\x6c"
	       "\xe0\x07\x41\xf8\xc0\x03\x5f\xd6") },
	{ "both ways", "[[2000]+8] [[2000]+10]",
	  /*
	   * adrp x0, #0x1000; ldr x0, [x0]; cbz x0, 1f; ldr x0, [x0, #8]; ret; 1: ldr x0, [x0,
	   * #16]; ret
	   */
	  CODE("\x00\x00\x00\xb0\x00\x00\x40\xf9\x60\x00\x00\xb4\x00\x04\x40\xf9\xc0\x03\x5f\xd6"
	       "\x00\x08\x40\xf9\xc0\x03\x5f\xd6") },
	{ "three ways", "[2000] [2008] [2010]",
	  /*
	   * adrp x1, #0x1000; tbnz w0, #3, 1f; b.eq 2f; ldr x0, [x1]; ret; 1: ldr x0, [x1, #8];
	   * ret; 2: ldr x0, [x1, #16]; ret
	   */
	  CODE("\x01\x00\x00\xb0\x80\x00\x18\x37\xa0\x00\x00\x54\x20\x00\x40\xf9\xc0\x03\x5f\xd6"
	       "\x20\x04\x40\xf9\xc0\x03\x5f\xd6\x20\x08\x40\xf9\xc0\x03\x5f\xd6") },
	{ "call that gives it", "[[2000]+8]",
	  /*
	   * str x30, [sp, #-16]!; bl 1f; ldr x0, [x0, #8]; ldr x30, [sp], #16; ret; 1: adrp x0,
	   * #0x1000; ldr x0, [x0]; ret
	   */
	  CODE("\xfe\x0f\x1f\xf8\x04\x00\x00\x94\x00\x04\x40\xf9\xfe\x07\x41\xf8\xc0\x03\x5f\xd6"
	       "\x00\x00\x00\xb0\x00\x00\x40\xf9\xc0\x03\x5f\xd6") },
	{ "call keeps x19", "[2000]",
	  /* adrp x19, #0x1000; ldr x19, [x19]; bl 1f; mov x0, x19; ret; 1: ret */
	  CODE("\x13\x00\x00\xb0\x73\x02\x40\xf9\x03\x00\x00\x94\xe0\x03\x13\xaa\xc0\x03\x5f\xd6"
	       "\xc0\x03\x5f\xd6") },
	{ "call loses x1", "",
	  /* adrp x1, #0x1000; ldr x1, [x1]; bl 1f; mov x0, x1; ret; 1: ret */
	  CODE("\x01\x00\x00\xb0\x21\x00\x40\xf9\x03\x00\x00\x94\xe0\x03\x01\xaa\xc0\x03\x5f\xd6"
	       "\xc0\x03\x5f\xd6") },
	{ "through a pointer", "[2000]",
	  /*
	   * adrp x16, #0x1000; ldr x17, [x16, #0x100]; add x16, x16, #0x100; br x17; .skip 0x30;
	   * adrp x0, #0x1000; ldr x0, [x0]; ret
	   */
	  CODE("\x10\x00\x00\xb0\x11\x82\x40\xf9\x10\x02\x04\x91\x20\x02\x1f\xd6\x00\x00\x00\x00"
	       "\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"
	       "\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"
	       "\x00\x00\x00\x00\x00\x00\x00\xb0\x00\x00\x40\xf9\xc0\x03\x5f\xd6") },
	{ "loop without end", "",
	  /* 1: b 1b */
	  CODE("\x00\x00\x00\x14") },
	{ "bit of a word", "[2000]>>5",
	  /* adrp x0, #0x1000; ldr w0, [x0]; ubfx w0, w0, #5, #1; ret */
	  CODE("\x00\x00\x00\xb0\x00\x00\x40\xb9\x00\x14\x05\x53\xc0\x03\x5f\xd6") },
	{ "bit of two words", "[2000]>>25",
	  /* adrp x0, #0x1000; ldr x0, [x0]; ubfx x0, x0, #37, #1; ret */
	  CODE("\x00\x00\x00\xb0\x00\x00\x40\xf9\x00\x94\x65\xd3\xc0\x03\x5f\xd6") },
	{ "bit of a byte", "[2000]>>5",
	  /* adrp x0, #0x1000; ldrb w0, [x0]; lsr w0, w0, #5; ubfx x0, x0, #0, #1; ret */
	  CODE("\x00\x00\x00\xb0\x00\x00\x40\x39\x00\x7c\x05\x53\x00\x00\x40\xd3\xc0\x03\x5f"
	       "\xd6") },
	{ "bits shifted up", "",
	  /* adrp x0, #0x1000; ldr x0, [x0]; ubfiz x0, x0, #1, #9; ret */
	  CODE("\x00\x00\x00\xb0\x00\x00\x40\xf9\x00\x20\x7f\xd3\xc0\x03\x5f\xd6") },
	{ "acquire", "[2000]",
	  /* adrp x0, #0x1000; ldar x0, [x0]; ret */
	  CODE("\x00\x00\x00\xb0\x00\xfc\xdf\xc8\xc0\x03\x5f\xd6") },
	{ "acquire by another model", "[2000]",
	  /* adrp x0, #0x1000; .inst 0xf8bfc000; ret */
	  CODE("\x00\x00\x00\xb0\x00\xc0\xbf\xf8\xc0\x03\x5f\xd6") },
	{ "select", "",
	  /* adrp x0, #0x1000; ldr x0, [x0]; csel x0, x0, x1, eq; ret */
	  CODE("\x00\x00\x00\xb0\x00\x00\x40\xf9\x00\x00\x81\x9a\xc0\x03\x5f\xd6") },
	{ "comparison", "[2000]",
	  /* adrp x0, #0x1000; ldr x0, [x0]; cmp x0, #1; tst x0, #7; cmn w0, w1; ret */
	  CODE("\x00\x00\x00\xb0\x00\x00\x40\xf9\x1f\x04\x00\xf1\x1f\x08\x40\xf2\x1f\x00\x01\x2b"
	       "\xc0\x03\x5f\xd6") },
	{ "hints", "[2000]",
	  /*
	   * paciasp; bti c; nop; dmb ish; adrp x0, #0x1000; ldr x0, [x0]; prfm pldl1keep, [x0];
	   * autiasp; retaa
	   */
	  CODE("\x3f\x23\x03\xd5\x5f\x24\x03\xd5\x1f\x20\x03\xd5\xbf\x3b\x03\xd5\x00\x00\x00\xb0"
	       "\x00\x00\x40\xf9\x00\x00\x80\xf9\xbf\x23\x03\xd5\xff\x0b\x5f\xd6") },
	{ "trap", "",
	  /* adrp x0, #0x1000; ldr x0, [x0]; brk #1000; ret */
	  CODE("\x00\x00\x00\xb0\x00\x00\x40\xf9\x00\x7d\x20\xd4\xc0\x03\x5f\xd6") },
	{ "system call", "",
	  /* adrp x0, #0x1000; ldr x0, [x0]; svc #0; ret */
	  CODE("\x00\x00\x00\xb0\x00\x00\x40\xf9\x01\x00\x00\xd4\xc0\x03\x5f\xd6") },
	{ "stack from a register", "",
	  /* adrp x0, #0x1000; ldr x0, [x0]; and sp, x0, #-16; ret */
	  CODE("\x00\x00\x00\xb0\x00\x00\x40\xf9\x1f\xec\x7c\x92\xc0\x03\x5f\xd6") },
};

Test(emulate, x86_64_examples)
{
	expect_examples(&emu_x86_64, x86_64, sizeof(x86_64) / sizeof(x86_64[0]));
}

Test(emulate, arm64_examples)
{
	expect_examples(&emu_arm64, arm64, sizeof(arm64) / sizeof(arm64[0]));
}

/* The length of each form of instruction. */
Test(emulate, x86_64_lengths)
{
	static const struct {
		size_t len; /* 0: ends the path */
		const char *code;
	} v[] = {
		{ 1, "\xc3" },			    /* ret */
		{ 2, "\x66\x90" },		    /* xchg %ax, %ax */
		{ 3, "\x48\x89\xc3" },		    /* mov %rax, %rbx */
		{ 4, "\x48\x8b\x04\x24" },	    /* mov (%rsp), %rax */
		{ 5, "\x48\x8b\x44\x24\x08" },	    /* mov 8(%rsp), %rax */
		{ 4, "\x49\x8b\x45\x00" },	    /* mov 0(%r13), %rax */
		{ 8, "\x4a\x8b\x04\xed\1\1\1\1" },  /* mov 0x1010101(,%r13,8), %rax */
		{ 5, "\x4b\x8b\x44\x25\x00" },	    /* mov 0(%r13,%r12), %rax */
		{ 7, "\x48\x8b\x05\1\1\1\1" },	    /* mov 0x1010101(%rip), %rax */
		{ 7, "\x48\x8b\x80\1\1\1\1" },	    /* mov 0x1010101(%rax), %rax */
		{ 5, "\xb8\1\1\1\1" },		    /* mov $0x1010101, %eax */
		{ 4, "\x66\xb8\1\1" },		    /* mov $0x101, %ax */
		{ 10, "\x48\xb8\1\1\1\1\1\1\1\1" }, /* movabs $…, %rax */
		{ 2, "\xb0\1" },		    /* mov $1, %al */
		{ 5, "\x66\x81\xc1\1\1" },	    /* add $0x101, %cx */
		{ 7, "\x48\x81\xc1\1\1\1\1" },	    /* add $0x1010101, %rcx */
		{ 8, "\x48\x83\x3d\1\1\1\1\1" },    /* cmpq $1, 0x1010101(%rip) */
		{ 6, "\xf7\xc1\1\1\1\1" },	    /* test $0x1010101, %ecx */
		{ 2, "\xf7\xd9" },		    /* neg %ecx */
		{ 3, "\xf6\xc1\1" },		    /* test $1, %cl */
		{ 8, "\x66\x66\x48\xe8\1\1\1\1" },  /* data16 data16 rex.W call */
		{ 6, "\x67\xe8\1\1\1\1" },	    /* addr32 call, as linkers write it */
		{ 6, "\x0f\x84\1\1\1\1" },	    /* je */
		{ 4, "\xf3\x0f\x1e\xfa" },	    /* endbr64 */
		{ 4, "\x0f\xba\xe0\1" },	    /* bt $1, %eax */
		{ 5, "\x66\x0f\x70\xc0\1" },	    /* pshufd $1, %xmm0, %xmm0 */
		{ 5, "\x66\x0f\x38\x00\xc1" },	    /* pshufb %xmm1, %xmm0 */
		{ 6, "\x66\x0f\x3a\x0f\xc1\1" },    /* palignr $1, %xmm1, %xmm0 */
		{ 3, "\xc5\xf8\x77" },		    /* vzeroupper */
		{ 4, "\xc5\xf9\xd6\xc1" },	    /* vmovq %xmm0, %xmm1 */
		{ 5, "\xc4\xe2\x68\xf2\xc1" },	    /* andn %ecx, %edx, %eax */
		{ 6, "\xc4\xe3\x7d\x39\xc1\1" },    /* vextracti128 $1, %ymm0, %xmm1 */
		{ 0, "\x0f\x0b" },		    /* ud2 */
		{ 0, "\x06" },			    /* not in 64-bit mode */
		{ 0, "\x62\xf1\xfd\x48\x6f\x00" },  /* AVX-512 */
		{ 0, "\x67\x8b\x00" },		    /* mov (%eax), %eax */
		{ 0, "\x48\x48\x89\xc3" },	    /* two REX prefixes */
		{ 0, "\x66\x66\x66\x66\x66\x66\x66\x66\x66\x66\x66\x66\x66\x66\x66\x90" },
	};

	for (size_t i = 0; i < sizeof(v) / sizeof(v[0]); i++) {
		char code[32] = { 0 };
		struct process *p;
		struct emu_state s = { .pc = TEXT };
		struct x86_insn insn;

		memcpy(code, v[i].code, v[i].len ? v[i].len : strlen(v[i].code));
		p = process_new(&emu_x86_64, code, sizeof(code));
		cr_expect_eq(x86_decode(&insn, &p->emu, &s), v[i].len != 0, "example %zu", i);
		if (v[i].len)
			cr_expect_eq(insn.at, v[i].len, "example %zu: %zu bytes", i, insn.at);
		free(p);
	}
}

/* Code may end anywhere, in the text or in what is mapped. */
Test(emulate, end_of_text)
{
	static const struct example *examples[] = { x86_64, arm64 };
	static const struct emu_machine *machines[] = { &emu_x86_64, &emu_arm64 };

	for (size_t m = 0; m < 2; m++) {
		for (size_t len = 0; len < examples[m]->size; len++) {
			struct process *p = process_new(machines[m], examples[m]->code,
							examples[m]->size);

			p->emu.text_hi = TEXT + len;
			emu_run(&p->emu, TEXT);
			cr_expect_eq(p->emu.n_results, 0, "%zu bytes", len);
			free(p);
		}
	}
}

/* What the code stores is seen, and no stack of its own is. */
Test(emulate, stores)
{
	/* push %rax; mov 0x2000,%rax; movq $0,8(%rax); mov %rax,0x2010; pop %rcx; ret */
	static const char code[] =
		"\x50\x48\x8b\x04\x25\x00\x20\x00\x00\x48\xc7\x40\x08\x00\x00\x00"
		"\x00\x48\x89\x04\x25\x10\x20\x00\x00\x59\xc3";
	struct process *p = process_new(&emu_x86_64, code, sizeof(code) - 1);
	const struct emu_access *a = p->emu.access;

	emu_run(&p->emu, TEXT);
	cr_assert_eq(p->emu.n_accesses, 3);
	cr_expect(!a[0].store && a[0].addr.v == 0x2000 && a[0].width == 8);
	cr_expect(a[1].store && a[1].addr.offset == 8 && emu_origin(&p->emu, &a[1].addr) == &a[0]);
	cr_expect(a[1].value.known && !a[1].value.v && !a[1].value.load);
	cr_expect(a[2].store && a[2].addr.v == 0x2010);
	cr_expect_eq(emu_origin(&p->emu, &a[2].value), &a[0]);
	cr_expect_eq(p->bytes[0x2010 - TEXT], 0, "memory is not written to");
	free(p);
}

/* More loads and results than are remembered, more branches and calls than are followed. */
Test(emulate, limits)
{
	static const char load[] = "\x48\x8b\x04\x25\x00\x20\x00\x00"; /* mov 0x2000,%rax */
	static const char way_out[] = "\x74\x01\xc3";		       /* je 1f; ret; 1: */
	static const char call_next[] = "\xe8\x00\x00\x00\x00";	       /* call 1f; 1: */
	const struct {
		const char *code;
		size_t size;
	} v[] = { { load, 8 }, { way_out, 3 }, { call_next, 5 } };

	for (size_t i = 0; i < sizeof(v) / sizeof(v[0]); i++) {
		char code[PAGE];
		struct process *p;
		size_t at = sizeof(load) - 1;

		memcpy(code, load, at);
		for (; at + v[i].size < sizeof(code); at += v[i].size)
			memcpy(code + at, v[i].code, v[i].size);
		memset(code + at, 0xc3, sizeof(code) - at);
		p = process_new(&emu_x86_64, code, sizeof(code));
		emu_run(&p->emu, TEXT);
		cr_expect_leq(p->emu.n_accesses, EMU_ACCESSES);
		cr_expect_leq(p->emu.n_results, EMU_RESULTS);
		free(p);
	}
}

/* Any bytes are run to an end. */
Test(emulate, random_code)
{
	const struct emu_machine *machines[] = { &emu_x86_64, &emu_arm64 };
	uint64_t seed = 1;

	for (int round = 0; round < 4000; round++) {
		struct process *p = process_new(machines[round & 1], "", 0);

		for (size_t i = 0; i < sizeof(p->bytes); i++) {
			seed = seed * 6364136223846793005ull + 1442695040888963407ull;
			p->bytes[i] = (uint8_t)(seed >> 56);
		}
		emu_run(&p->emu, TEXT + (seed >> 32) % PAGE / 4 * 4);
		cr_expect_leq(p->emu.n_accesses, EMU_ACCESSES);
		cr_expect_leq(p->emu.n_results, EMU_RESULTS);
		free(p);
	}
}
