/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What the parts of the validation (validate*.c) have in common; of no use to others.
 */
#ifndef RBPF_RUBY_VALIDATE_PARTS_H
#define RBPF_RUBY_VALIDATE_PARTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ruby_iseq;
struct ruby_method;
struct ruby_vm;

/* Whether @ec is an EC whose thread has it as the current one. */
bool validate_is_current_ec(const struct ruby_vm *vm, uint64_t ec);

/*
 * The EC that the thread of @ec has now: it may have switched to another fiber. @ec if not known.
 */
uint64_t validate_current_ec(const struct ruby_vm *vm, uint64_t ec);

/* Whether @th is a thread: its current EC leads back to it. */
bool validate_is_thread(const struct ruby_vm *vm, uint64_t th);

/*
 * validate_gc.c. Set @vm->walk.gc_* if the collector is known, and the thread that collects; add to
 * @vm->checks. @tp is the thread pointer of a thread with an EC, @th the rb_thread_t of one.
 */
void validate_gc(struct ruby_vm *vm, uint64_t tp, uint64_t th);

/*
 * validate_tags.c. Set @vm->walk.tag_*, by the tags of the @n threads of @ecs, and add to
 * @vm->checks. @tp as above, or 0.
 */
void validate_tags(struct ruby_vm *vm, const uint64_t *ecs, size_t n, uint64_t tp);

/* ---- validate_names.c ---- */

/* What members of iseqs and methods are asked. */
enum validate_fact {
	VALIDATE_METHOD_NAME,
	VALIDATE_LINENO,
	VALIDATE_LINES,
	VALIDATE_INDEX,
	VALIDATE_LOCAL,
	VALIDATE_PARENT,
	VALIDATE_ATTRS,
	VALIDATE_FACTS,
};

/* How many objects agree, and contradict. All zero but .known: none was asked. */
struct validate_evidence {
	unsigned int yes[VALIDATE_FACTS], no[VALIDATE_FACTS];
	bool known; /* the layout was valid in another process of the file: a few are enough */
	unsigned int n_frames;
	uint64_t iseq; /* address of one of them; 0: none */
};

/* Ask @iseq, of a frame, and its @method (or NULL), which were read with @vm->layout. */
void validate_ask_frame(const struct ruby_vm *vm, const struct ruby_iseq *iseq,
			const struct ruby_method *method, struct validate_evidence *ev);

/*
 * Ask what is in the heap near the iseqs of @ev, too, unless the layout is known from another
 * process and nothing contradicts. Returns the name of a member that is another one, or NULL; adds
 * to @vm->checks. A builtin_attrs that is another one becomes RUBY_UNKNOWN.
 */
const char *validate_names(struct ruby_vm *vm, struct validate_evidence *ev);

#endif
