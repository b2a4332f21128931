/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A recording with native stacks, for tests of views: what a program that compresses may look like.
 *
 *	stack of		    samples
 *	zlib at work, interpreted   6
 *	the same, with YJIT	    3	the kernel has been entered
 *	a block that only counts    4	called by Array#each
 *	garbage collection	    2
 *	a gap below a method	    3	two reasons, 2 and 1
 *	code of a JIT compiler	    1	which is no module's
 *	a native helper thread	    2	whose own frames are not internal
 *	the VM's timer thread	    1	of which all are
 *
 * The main thread is 0, the two others are 1 and 2.
 */
#ifndef RBPF_TESTS_MERGED_H
#define RBPF_TESTS_MERGED_H

#include "support/profile_builder.h"

#define MERGED_LIBRUBY	"/usr/lib/libruby-3.1.so.3.1"
#define MERGED_NO_TABLE "[native frames missing: the file has no unwind table]"
#define MERGED_UNMAPPED "[native frames missing: unknown code]"

static inline uint32_t merged_native(struct profile_builder *b, uint32_t parent, const char *name,
				     const char *module, uint64_t address, uint32_t flags)
{
	struct profile_frame frame;

	memset(&frame, 0, sizeof(frame)); /* interned as bytes */
	frame.kind = FRAME_NATIVE;
	frame.name = builder_str(b, name);
	frame.module = builder_module(b, module);
	frame.address = address;
	frame.flags = flags;
	return builder_stack(b, parent, builder_add_frame(b, &frame));
}

/* A function of the interpreter. */
static inline uint32_t merged_vm(struct profile_builder *b, uint32_t parent, const char *name)
{
	return merged_native(b, parent, name, MERGED_LIBRUBY, 0x1000, FRAME_INTERNAL);
}

static inline uint32_t merged_ruby(struct profile_builder *b, uint32_t parent, const char *name,
				   uint32_t line, uint32_t flags)
{
	struct profile_frame frame;

	memset(&frame, 0, sizeof(frame));
	frame.kind = FRAME_RUBY;
	frame.name = builder_str(b, name);
	frame.file = builder_str(b, "/app/x.rb");
	frame.line = line;
	frame.func_line = 1;
	frame.module = PROFILE_NONE;
	frame.flags = flags;
	return builder_stack(b, parent, builder_add_frame(b, &frame));
}

static inline uint32_t merged_other(struct profile_builder *b, uint32_t parent,
				    enum frame_kind kind, const char *name)
{
	return builder_stack(b, parent, builder_frame(b, kind, name, "", 0, 0));
}

/* `Foo#bar` upon the interpreter, as @flags and @line say. */
static inline uint32_t merged_foo(struct profile_builder *b, uint32_t line, uint32_t flags)
{
	uint32_t stack = merged_native(b, 0, "main", "/usr/bin/ruby3.1", 0x10, 0);

	stack = merged_vm(b, merged_vm(b, stack, "ruby_run_node"), "rb_vm_exec");
	return merged_ruby(b, merged_ruby(b, stack, "<main>", 9, 0), "Foo#bar", line, flags);
}

static inline uint32_t merged_zlib(struct profile_builder *b, uint32_t foo)
{
	uint32_t stack = merged_vm(b, foo, "vm_call_cfunc");

	stack = builder_stack(
		b, stack,
		builder_frame(b, FRAME_CFUNC, "Zlib::Deflate#deflate", "/app/x.rb", 3, 0));
	stack = merged_native(b, stack, "rb_deflate_deflate", "/usr/lib/ruby/zlib.so", 0x20,
			      FRAME_INTERNAL);
	stack = merged_native(b, stack, "zstream_run", "/usr/lib/ruby/zlib.so", 0x30, 0);
	return merged_native(b, stack, "deflate", "/lib/libz.so.1", 0x40, 0);
}

static inline void merged_add(struct profile_builder *b, uint32_t thread, uint32_t stack, size_t n,
			      uint16_t flags)
{
	while (n--)
		builder_sample(b, thread, stack, BUILDER_PERIOD, SAMPLE_NATIVE | flags);
}

static inline void merged_build(struct profile_builder *b)
{
	uint32_t process = builder_process(b, 42, "ruby app.rb");
	uint32_t ruby = builder_thread(b, process, 42, "ruby");
	uint32_t helper = builder_thread(b, process, 43, "libfoo");
	uint32_t timer = builder_thread(b, process, 44, "timer");
	uint32_t foo = merged_foo(b, 3, 0), stack;

	merged_add(b, ruby, merged_zlib(b, foo), 6, 0);
	stack = merged_zlib(b, merged_foo(b, 4, FRAME_YJIT));
	merged_add(b, ruby, merged_other(b, stack, FRAME_KERNEL, "asm_exc_page_fault"), 3,
		   SAMPLE_KERNEL);
	stack = builder_stack(b, foo,
			      builder_frame(b, FRAME_CFUNC, "Array#each", "/app/x.rb", 5, 0));
	stack = merged_vm(b, merged_vm(b, stack, "rb_ary_each"), "rb_yield");
	stack = merged_ruby(b, stack, "block in Foo#bar", 6, 0);
	merged_add(b, ruby, merged_vm(b, stack, "vm_exec_core"), 4, 0);
	stack = merged_vm(b, merged_vm(b, foo, "rb_str_new"), "garbage_collect");
	stack = builder_gc(b, stack, "(marking)");
	merged_add(b, ruby, merged_vm(b, stack, "gc_mark_children"), 2, SAMPLE_GC);
	merged_add(b, ruby, merged_other(b, foo, FRAME_GAP, MERGED_NO_TABLE), 2, SAMPLE_GAP);
	merged_add(b, ruby, merged_other(b, foo, FRAME_GAP, MERGED_UNMAPPED), 1, SAMPLE_GAP);
	stack = merged_other(b, merged_foo(b, 3, FRAME_ZJIT), FRAME_NATIVE, "[compiled Ruby code]");
	b->out.profile.frames[b->out.profile.stacks[stack].frame].flags = FRAME_INTERNAL;
	merged_add(b, ruby, stack, 1, 0);
	stack = merged_native(b, 0, "start_thread", "/lib/libc.so.6", 0x50, 0);
	merged_add(b, helper, merged_native(b, stack, "spin", "/usr/lib/libfoo.so", 0x60, 0), 2,
		   SAMPLE_NO_RUBY);
	merged_add(b, timer, merged_vm(b, 0, "timer_thread_func"), 1, SAMPLE_NO_RUBY);
}

#endif
