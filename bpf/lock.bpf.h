/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Mutexes and Monitors: who waits for one, who holds it, and how long others have waited meanwhile.
 *
 * How long threads wait for a Mutex is added up as for a GVL (gvl.bpf.h), by the address of its
 * rb_mutex_t. Who holds it is read from it when a thread begins to wait for it, and noted for that
 * thread; one that has waited for it is noted as the next one. Whoever is noted is asked whether it
 * holds it still when it is sampled and when it leaves the CPU, and charged with what was added
 * since. Who gives it to another thread, which it wakes, is charged then; from Ruby 3.3 on that one
 * is woken only when it gets the GVL, so who has unlocked it is charged at the next of these
 * occasions.
 *
 * A thread is noted for one Mutex, the last. A Queue has no holder.
 */
#ifndef RBPF_LOCK_BPF_H
#define RBPF_LOCK_BPF_H

#include "gvl.bpf.h"

#define NAME_MUTEX	  0x000000786574756dull /* "mutex", rb_data_type_t.wrap_struct_name … */
#define NAME_MUTEX_MASK	  0x0000ffffffffffffull /* … and the NUL behind it */
#define NAME_MONITOR	  0x00726f74696e6f6dull /* "monitor" */
#define LOCK_QUEUE_STEPS  64 /* nodes of the queue of a Mutex that are looked at, from its end */
#define LOCK_WORDS	  5  /* of a Mutex, with its queue */
/* Words of struct sync_waiter before its node, thread_sync.c: one of them is the thread. */
#define LOCK_WAITER_WORDS 3

/* A T_DATA: the struct in it, and the first 8 bytes of the name of its type. */
struct lock_data {
	__u64 data, name;
};

/* What @object is. Returns 0, or -1 if it is no T_DATA or cannot be read. */
static __noinline int lock_data(__u32 walk_id, __u64 object, struct lock_data *ret)
{
	struct walk *w = walk_state(walk_id);
	__u64 words[RTYPEDDATA_DATA_WORD + 1], type, name;
	bool serial, embedded;

	if (!w || !ruby_is_object(object) || walk_read(words, sizeof(words), object) ||
	    (words[0] & RUBY_T_MASK) != RUBY_T_DATA)
		return -1;
	serial = w->layout.mutex_form == RUBY_MUTEX_SERIAL;
	type = serial ? words[RTYPEDDATA_FLAG_WORD] & ~7ull : words[RTYPEDDATA_FLAG_WORD - 1];
	embedded = words[RTYPEDDATA_FLAG_WORD] &
		   (serial ? RTYPEDDATA_EMBEDDED_TYPE : RTYPEDDATA_EMBEDDED_FLAG);
	ret->data = embedded ? object + RTYPEDDATA_DATA_WORD * 8 : words[RTYPEDDATA_DATA_WORD];
	if (walk_read(&name, sizeof(name), type) || walk_read(&ret->name, sizeof(ret->name), name))
		return -1;
	return 0;
}

/* The rb_mutex_t of @object, if that is a Mutex or Monitor; else 0. */
static __noinline __u64 lock_of(__u32 walk_id, __u64 object)
{
	struct walk *w = walk_state(walk_id);
	struct lock_data of = {};

	if (!w || lock_data(walk_id, object, &of))
		return 0;
	if (of.name == NAME_MONITOR &&
	    (walk_read(&object, sizeof(object), of.data + RUBY_MONITOR_MUTEX) ||
	     lock_data(walk_id, object, &of)))
		return 0;
	return (of.name & NAME_MUTEX_MASK) == NAME_MUTEX ? of.data : 0;
}

/*
 * The Mutex or Monitor that is self where the thread that was walked is: its rb_mutex_t, or 0. It
 * is remembered for as long as the address means that object (stack_seed()).
 */
static __noinline __u64 lock_of_self(__u32 walk_id)
{
	struct walk *w = walk_state(walk_id);
	struct walk_seen *seen;
	__u64 self;

	if (!w ||
	    walk_read(&self, sizeof(self), w->cf_own + offsetof(struct ruby_control_frame, self)))
		return 0;
	seen = &w->lock_seen[(self >> 3 ^ self >> 9) & (LOCK_SEEN - 1)];
	if (seen->addr != (self ^ w->seed)) {
		seen->value = lock_of(walk_id, self);
		seen->addr = self ^ w->seed;
	}
	return seen->value;
}

/*
 * Whether the thread that was walked is in the queue with this @head, whose last node is @last: it
 * came in there.
 */
static __noinline int lock_queue_has_it(__u32 walk_id, __u64 head, __u64 last)
{
	struct walk *w = walk_state(walk_id);
	__u64 node = last, at = head;
	struct {
		__u64 waiter[LOCK_WAITER_WORDS];
		struct ruby_list_node node;
	} n;
	int i;

	if (!w)
		return 0;
	for (i = 0; i < LOCK_QUEUE_STEPS; i++) {
		if (node == head || walk_read(&n, sizeof(n), node - sizeof(n.waiter)) ||
		    n.node.next != at)
			return 0;
		if (n.waiter[0] == w->th || n.waiter[1] == w->th || n.waiter[2] == w->th)
			return 1;
		at = node;
		node = n.node.prev;
	}
	return 0;
}

/*
 * Whether it is in the queue of @mutex, of which these are the first words: one that lets the Mutex
 * sleep, as a ConditionVariable does, is not. The queue is behind the owner and the next Mutex of
 * the owner, since 3.4 one word further on; what is no queue does not lead back.
 */
static __always_inline bool lock_is_waited_for(__u32 walk_id, __u64 mutex,
					       const __u64 words[LOCK_WORDS])
{
	return lock_queue_has_it(walk_id, mutex + 16, words[3]) ||
	       lock_queue_has_it(walk_id, mutex + 24, words[4]);
}

/*
 * The rb_thread_t that holds the Mutex with these first words, of the process of the thread that
 * was walked; 0 if none does.
 */
static __always_inline __u64 lock_owner_in(const struct walk *w, const __u64 words[2])
{
	__u64 th = 0;

	if (!words[0] || w->layout.mutex_form == RUBY_MUTEX_THREAD)
		return words[0];
	if (w->layout.mutex_form == RUBY_MUTEX_SERIAL)
		return words[1];
	if (!w->layout.fiber_ec ||
	    walk_read(&th, sizeof(th), words[0] + w->layout.fiber_ec + w->layout.ec_thread_ptr))
		return 0;
	return th;
}

/* The same of @mutex. */
static __noinline __u64 lock_owner(__u32 walk_id, __u64 mutex)
{
	struct walk *w = walk_state(walk_id);
	__u64 words[2];

	return w && !walk_read(words, sizeof(words), mutex) ? lock_owner_in(w, words) : 0;
}

static __always_inline __u8 *lock_mark(__u64 th, __u32 tgid)
{
	return &lock_marks[rbpf_mix(th, tgid) & (LOCK_MARKS - 1)];
}

static __always_inline struct lock_holder *lock_noted(__u64 th, __u32 tgid)
{
	struct lock_holder_key key = { .th = th, .tgid = tgid };

	return th && *lock_mark(th, tgid) ? bpf_map_lookup_elem(&lock_holders, &key) : NULL;
}

/*
 * Thread @th of process @tgid holds @mutex, or is about to. @noted: what lock_noted() says of it;
 * that is changed in place, which takes a third of the time: then another CPU may see the one word
 * and not yet the other.
 */
static __always_inline void lock_note(struct lock_holder *noted, __u64 th, __u32 tgid, __u64 mutex,
				      __u64 now)
{
	struct lock_holder_key key = { .th = th, .tgid = tgid };
	struct lock_holder holder = { .mutex = mutex, .at = now };

	if (noted) {
		*noted = holder;
		return;
	}
	*lock_mark(th, tgid) = 1;
	bpf_map_update_elem(&lock_holders, &key, &holder, BPF_ANY);
}

/*
 * The thread that was walked leaves the CPU, as w->wait says: if that is for a Mutex, note there
 * for which. Not in wait_note(), with which the BPF stack would be too short.
 */
__noinline int lock_wait_begin(__u32 walk_id)
{
	struct walk *w = walk_state(walk_id);
	__u64 words[LOCK_WORDS], mutex, owner;

	if (!w || w->wait.wait != RBPF_WAIT_LOCK || !w->layout.mutex_form ||
	    w->sample.status != RBPF_OK)
		return 0;
	mutex = lock_of_self(walk_id);
	if (!mutex || walk_read(words, sizeof(words), mutex) ||
	    !lock_is_waited_for(walk_id, mutex, words))
		return 0;
	gvl_wait_begin(mutex, w->sample.h.tgid, w->sample.h.ts);
	w->wait.lock = mutex;
	owner = lock_owner_in(w, words);
	if (owner && owner != w->th)
		lock_note(lock_noted(owner, w->sample.h.tgid), owner, w->sample.h.tgid, mutex,
			  w->sample.h.ts);
	return 0;
}

/*
 * Charge the thread that was walked with what others have waited for @mutex, where it last left the
 * CPU: there it waited for it, or held it. Returns 1, or 0 if it did neither there, or was charged
 * so since. A function of its own, for the BPF stack is short.
 */
static __noinline int lock_charge_before(__u32 walk_id, __u64 mutex)
{
	struct walk *w = walk_state(walk_id);
	struct rbpf_ring_sample *s;
	__u64 stack, native, request;
	struct rbpf_span span;
	__u16 status, flags;
	struct wait *wait;

	if (!w)
		return 0;
	s = &w->sample;
	wait = bpf_map_lookup_elem(&waits, &s->h.tid);
	if (!wait || wait->since || (wait->lock != mutex && wait->held != mutex))
		return 0;
	wait->lock = wait->held = 0;
	/* What was not seen to begin has no stacks: where the thread is now has to do. */
	if (wait->flags & RBPF_WAIT_BEFORE || wait->status == RBPF_NO_RUBY) {
		gvl_charge_sample(w, mutex, RBPF_EVENT_LOCK);
		return 1;
	}
	stack = s->stack, native = s->native, request = s->request;
	status = s->status, flags = s->flags, span = s->span;
	s->stack = wait->stack, s->native = wait->native, s->request = wait->request;
	s->span = wait->span;
	s->status = wait->status, s->flags = wait->flags & (RBPF_WAIT_HELD - 1);
	gvl_charge_sample(w, mutex, RBPF_EVENT_LOCK);
	s->stack = stack, s->native = native, s->request = request;
	s->status = status, s->flags = flags, s->span = span;
	return 1;
}

/*
 * Charge the thread of the sample in scratch @walk_id, if it holds the Mutex that it is noted for,
 * which is kept in w->lock_held then; or if it has unlocked it, and nobody has it yet.
 */
__noinline int lock_send(__u32 walk_id)
{
	struct walk *w = walk_state(walk_id);
	const struct lock_holder *h;
	__u64 mutex, owner;

	if (!w)
		return 0;
	w->lock_held = 0;
	if (!w->layout.mutex_form || w->sample.status != RBPF_OK)
		return 0;
	h = lock_noted(w->th, w->sample.h.tgid);
	if (!h)
		return 0;
	mutex = h->mutex;
	owner = lock_owner(walk_id, mutex);
	if (!owner)
		return lock_charge_before(walk_id, mutex);
	if (owner == w->th) {
		w->lock_held = mutex;
		gvl_charge_sample(w, mutex, RBPF_EVENT_LOCK);
	}
	return 0;
}

/*
 * What @wait, so far or in all, has made others wait for a Mutex that its thread, of which @h is
 * noted, held all the time: it did when it left the CPU, or was seen to hold it meanwhile. In ns.
 */
static __always_inline __u64 lock_caused(const struct lock_holder *h, const struct wait *wait,
					 __u64 now)
{
	if (!h || h->mutex == wait->lock || (h->mutex != wait->held && h->at < wait->since))
		return 0;
	return gvl_charge(h->mutex, wait->tgid, now);
}

/*
 * The thread that was walked wakes one that waits for @mutex: if it had that, it has just given it
 * away, and is charged.
 */
static __always_inline void lock_given(__u32 walk_id, __u64 mutex)
{
	const struct lock_holder *h;
	struct walk *w = walk_state(walk_id);

	if (!w)
		return;
	h = w->sample.status == RBPF_OK ? lock_noted(w->th, w->sample.h.tgid) : NULL;
	if (!h || h->mutex != mutex)
		return;
	/* With the GVL, it is given away anywhere: it was unlocked before that. */
	if (lock_of_self(walk_id) == mutex || !lock_charge_before(walk_id, mutex))
		gvl_charge_sample(w, mutex, RBPF_EVENT_LOCK);
}

#endif
