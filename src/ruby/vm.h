/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A Ruby VM found in a live process: its layout, proven, and the addresses that names are read
 * from.
 *
 * Attaching only reads memory. It tells nothing of threads or stacks; see walk.h, iseq.h, method.h.
 */
#ifndef RBPF_RUBY_VM_H
#define RBPF_RUBY_VM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "rbpf_abi.h"
#include "ruby/binary.h"
#include "ruby/layout.h"
#include "target/memory.h"

struct err;
struct file_worker;
struct ruby_cache;

/*
 * At most so much memory is read to attach to a process (struct memory_budget); some MB are usual.
 */
#define RUBY_ATTACH_BYTES (256u << 20)

/* The results of attaching, for rbpf doctor: one line for each check. */
#define RUBY_VM_CHECKS	  20
struct ruby_vm_check {
	const char *name;
	char detail[160];
	bool ok;
	bool needed; /* a Ruby that fails it is refused; else rbpf does without */
};

struct ruby_vm {
	struct memory mem;
	struct file_worker *worker; /* reads its files; not owned */
	pid_t pid;
	struct ruby_binary binary;
	struct ruby_layout layout;
	uint8_t source[RUBY_FIELDS]; /* enum ruby_source of each fact */
	struct ruby_rules rules;
	struct rbpf_layout walk; /* what the walker needs, with the addresses of this process */
	uint64_t vm;		 /* address of the rb_vm_t */
	uint64_t symbols;	 /* address of ruby_global_symbols */
	struct {		 /* up to 3.2; see class.h */
		uint64_t classpath, attached; /* IDs */
		uint64_t shapes;	      /* address of the first shape; 3.2 */
	} class_keys;
	struct ruby_vm_check checks[RUBY_VM_CHECKS];
	size_t n_checks;
};

#define RUBY_VM_INIT                                                                               \
	{                                                                                          \
		0                                                                                  \
	}

struct ruby_attach_options {
	struct file_worker *worker;    /* reads the files of the process */
	const struct rbpf_task *tasks; /* threads with their thread pointers; those of other
					* processes are skipped */
	size_t n_tasks;
	unsigned int sources;	  /* 1 << enum ruby_source of those to use; 0: all */
	struct ruby_cache *cache; /* what is known of binaries seen before; may be NULL */
	uid_t uid; /* of the process: only its layouts and root's of @cache are used */
	/*
	 * The process has begun a moment ago. If its binary is in @cache, what is not found as it
	 * is known counts as not being there yet (-EAGAIN): to search for it takes 20 times as
	 * long, and a script may be over by then.
	 */
	bool just_begun;
};

/*
 * Find the Ruby of process @pid and prove its layout.
 *
 * Returns 0, or with ERR_TARGET: -ENOENT (no Ruby VM in it), -EAGAIN (a VM that has not started
 * yet), -ESRCH (it has ended or executed another program), -EPROTO (a member of the layout is
 * unknown, or the self-check failed; the message names it), -ENOTSUP (a Ruby before 2.7), -E2BIG
 * (more than RUBY_ATTACH_BYTES would have to be read); -ENOMEM; or -EINTR when stop_overdue(). In
 * every case, @ret->checks is filled as far as it went, and @ret is to be released with
 * ruby_vm_deinit().
 */
int ruby_vm_attach(pid_t pid, const struct ruby_attach_options *opts, struct ruby_vm *ret,
		   struct err *err);
void ruby_vm_deinit(struct ruby_vm *vm);

/*
 * The VM of @pid, a child that was forked from the process of @parent and has not executed another
 * program: the same addresses, nothing to prove again. Returns 0 or -ENOMEM.
 */
int ruby_vm_fork(const struct ruby_vm *parent, pid_t pid, struct ruby_vm *ret);

/*
 * What the walker needs of another process that executes the same file: @vm->walk without what is
 * an address of this one. False if that is not enough to walk its threads.
 */
bool ruby_vm_preset(const struct ruby_vm *vm, struct rbpf_layout *ret);

/* Add a line to @vm->checks. */
__attribute__((format(printf, 5, 6))) void ruby_vm_check_add(struct ruby_vm *vm, const char *name,
							     bool ok, bool needed, const char *fmt,
							     ...);

/*
 * Take @vm->layout over into what the walker needs, @vm->walk; the addresses are set when the
 * layout is validated.
 */
void ruby_vm_fill_walk(struct ruby_vm *vm);

/* Whether ZJIT is in use: its entry point is set when it is switched on. */
bool ruby_vm_zjit_on(const struct ruby_vm *vm);

/*
 * The era of the heap, now: see rbpf_gc_era(). Returns 0, -EAGAIN (an era is just ending: it is
 * *@ret or the one before), -ENOENT (not known in this Ruby) or -EFAULT. *@major is rbpf_gc_major()
 * now, and 0 unless 0 is returned.
 */
int ruby_vm_gc_era(const struct ruby_vm *vm, uint64_t *ret, uint64_t *major);

/* The same for who reads other memory in one go with it: these spans, which fill in @words … */
struct ruby_era_words {
	uint64_t before;
	uint32_t flags;
	__u64 words[RBPF_GC_WORDS];
	uint64_t ractor; /* rbpf_layout.gc_single */
};
#define RUBY_ERA_SPANS 5
void ruby_vm_era_spans(const struct ruby_vm *vm, struct ruby_era_words *words,
		       struct memory_span *spans);

/* … and what they tell, when they were read in their order. Returns as ruby_vm_gc_era(). */
int ruby_vm_era(const struct ruby_vm *vm, const struct ruby_era_words *words,
		const struct memory_span *spans, uint64_t *ret, uint64_t *major);

#endif
