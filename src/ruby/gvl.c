/* SPDX-License-Identifier: GPL-2.0-only */
#include "ruby/gvl.h"

#include <errno.h>
#include <stdbool.h>

#include "ruby/validate_parts.h"
#include "ruby/vm.h"

/* A queue of more threads is not walked to its head. */
#define MAX_QUEUE   4096
#define HEAD_TRIES  8

#define STATUS_BITS 16	      /* the status of a thread and its flags have fewer */
#define TURN_MAX_US 100000000 /* a turn can be made longer, but not so long */

static int find_queue(const struct ruby_vm *vm, uint64_t th, uint64_t *ret)
{
	const struct ruby_layout *l = &vm->layout;
	uint64_t ractor;

	if (ruby_layout_has(l->vm_gvl_queue)) {
		*ret = vm->vm + l->vm_gvl_queue;
		return vm->vm ? 0 : -ENOENT;
	}
	if (!ruby_layout_has(l->ractor_gvl_queue) || !ruby_layout_has(l->th_ractor))
		return -ENOENT;
	if (memory_read_u64(&vm->mem, th + l->th_ractor, &ractor) || !ruby_is_object(ractor))
		return -EFAULT;
	*ret = ractor + l->ractor_gvl_queue;
	return 0;
}

/*
 * Whether @node is in the list with this @head. A node that was removed keeps its pointers, but its
 * neighbours do not point to it; one of another list leads back to itself.
 */
static int is_listed(const struct ruby_vm *vm, uint64_t node, uint64_t head)
{
	struct ruby_list_node at = { 0 }, next;
	uint64_t addr = node;
	int i;

	if (memory_read(&vm->mem, node, &at, sizeof(at)))
		return -EFAULT;
	for (i = 0; i < MAX_QUEUE; i++) {
		if (at.next == node || !ruby_is_object(at.next))
			return 0;
		if (memory_read(&vm->mem, at.next, &next, sizeof(next)))
			return 0;
		if (next.prev != addr)
			return 0;
		if (at.next == head)
			return 1;
		addr = at.next;
		at = next;
	}
	return -ENOENT;
}

int ruby_gvl_waits(const struct ruby_vm *vm, uint64_t ec)
{
	const struct ruby_layout *l = &vm->layout;
	uint64_t th, head = 0;
	int r;

	if (!ruby_layout_has(l->th_ready))
		return -ENOENT;
	if (memory_read_u64(&vm->mem, ec + l->ec_thread_ptr, &th) || !ruby_is_object(th))
		return -EFAULT;
	r = find_queue(vm, th, &head);
	return r ? r : is_listed(vm, th + l->th_ready, head);
}

/*
 * Whether @head is the head of a list: the node that it leads to, itself if nobody waits, leads
 * back. The process runs on meanwhile, so it may take some tries.
 */
static bool is_head(const struct ruby_vm *vm, uint64_t head)
{
	struct ruby_list_node at, next;
	int i;

	for (i = 0; i < HEAD_TRIES; i++) {
		memory_refresh(&vm->mem);
		if (memory_read(&vm->mem, head, &at, sizeof(at)) || !ruby_is_object(at.next) ||
		    !ruby_is_object(at.prev))
			return false;
		if (!memory_read(&vm->mem, at.next, &next, sizeof(next)) && next.prev == head)
			return true;
	}
	return false;
}

/*
 * Whether the thread @th can have its node at th_ready: it is in a list, alone, was in one, or is
 * all 0 where the thread never waited. Nothing tells an offset where two other words are 0.
 */
static bool can_have_node(const struct ruby_vm *vm, uint64_t th)
{
	struct ruby_list_node at;

	return !memory_read(&vm->mem, th + vm->layout.th_ready, &at, sizeof(at)) &&
	       ((!at.next && !at.prev) || (ruby_is_object(at.next) && ruby_is_object(at.prev)));
}

/*
 * Whether who is first in the queue with this @head, if anybody is, is a thread. The queue changes
 * meanwhile.
 */
static bool holds_threads(const struct ruby_vm *vm, uint64_t head)
{
	uint64_t first;
	int i;

	for (i = 0; i < HEAD_TRIES; i++) {
		memory_refresh(&vm->mem);
		if (memory_read_u64(&vm->mem, head, &first))
			return false;
		if (first == head || validate_is_thread(vm, first - vm->layout.th_ready))
			return true;
	}
	return false;
}

/* The address of what points to the thread that holds the GVL of @th; 0 if it is not known. */
static uint64_t find_holder(const struct ruby_vm *vm, uint64_t th)
{
	const struct ruby_layout *l = &vm->layout;
	uint64_t ractor, holder, of, at = 0;

	if (ruby_layout_has(l->vm_gvl_owner))
		at = vm->vm + l->vm_gvl_owner;
	else if (ruby_layout_has(l->ractor_gvl_owner) && ruby_layout_has(l->th_ractor) &&
		 !memory_read_u64(&vm->mem, th + l->th_ractor, &ractor))
		at = ractor + l->ractor_gvl_owner;
	if (!at || memory_read_u64(&vm->mem, at, &holder))
		return 0;
	if (!holder)
		return at;
	if (!ruby_is_object(holder))
		return 0;
	if (!ruby_layout_has(l->th_vm))
		return at;
	return !memory_read_u64(&vm->mem, holder + l->th_vm, &of) && of == vm->vm ? at : 0;
}

uint64_t ruby_gvl_owner_at(const struct ruby_vm *vm, uint64_t th)
{
	const struct rbpf_layout *w = &vm->walk;
	uint64_t ractor;

	if (w->gvl_owner)
		return w->gvl_owner;
	if (!w->ractor_gvl_owner || memory_read_u64(&vm->mem, th + vm->layout.th_ractor, &ractor) ||
	    !ruby_is_object(ractor))
		return 0;
	return ractor + w->ractor_gvl_owner;
}

/*
 * Where thread @th has its status; 0 if what is there cannot be that. The word has a few flags
 * beside it, and after it stands for how long the thread has had its turn, in µs, of which a turn
 * has 0.1 million.
 */
static uint16_t find_status(const struct ruby_vm *vm, uint64_t th)
{
	const uint16_t at = vm->layout.th_running_time;
	uint32_t words[2];

	if (!ruby_layout_has(at) ||
	    memory_read(&vm->mem, th + at - sizeof(words[0]), words, sizeof(words)) ||
	    words[0] >> STATUS_BITS || words[1] > TURN_MAX_US)
		return 0;
	return (uint16_t)(at - sizeof(words[0]));
}

void ruby_gvl_validate(struct ruby_vm *vm, uint64_t th)
{
	const struct ruby_layout *l = &vm->layout;
	struct rbpf_layout *w = &vm->walk;
	uint64_t head = 0, holder;

	if (!ruby_layout_has(l->th_ready) || find_queue(vm, th, &head) || !is_head(vm, head) ||
	    !can_have_node(vm, th) || !holds_threads(vm, head)) {
		ruby_vm_check_add(vm, "GVL", false, false,
				  "not found: waits for it are shown as those for a lock%s",
				  vm->rules.runs_early ? ", GC may be unknown as threads begin"
						       : "");
		return;
	}
	holder = find_holder(vm, th);
	w->th_ready = l->th_ready;
	w->th_status = find_status(vm, th);
	if (ruby_layout_has(l->vm_gvl_queue)) {
		w->gvl_queue = head;
		w->gvl_owner = holder;
	} else {
		w->ractor_gvl_queue = l->ractor_gvl_queue;
		w->ractor_gvl_owner = holder ? l->ractor_gvl_owner : 0;
	}
	ruby_vm_check_add(vm, "GVL", true, false, "its queue%s", holder ? " and its holder" : "");
}
