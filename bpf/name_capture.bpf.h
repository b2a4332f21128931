/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Copies of the memory that names are read from.
 *
 * User space names iseqs and method entries by reading the process' memory when the definition of
 * a stack arrives, some milliseconds after the sample. A process that ends in between takes its
 * names with it; and one that defines code, drops it and collects garbage may have put another
 * object in its place. So, while a process is young, and where names have got lost
 * (RBPF_LAYOUT_COPY), what naming reads is copied when the stack is sampled, and sent ahead of its
 * definition: for each iseq and each method entry, once in the life of the process, the pieces that
 * src/ruby/{iseq,method,class,object}.c would read, as blocks {address, length, bytes}
 * (RBPF_RING_MEMORY). User space runs that same code over the blocks.
 *
 * What was sent is remembered in a table indexed by process and address (captured), which holds
 * the object's check (rbpf_check_iseq(), rbpf_check_me()): another object at the address is sent in
 * its turn, and one whose record found no room in the ring is sent again with the next stack. So is
 * one of which not all could be read, up to CAPTURE_TRIES times, and its stack with it: a page may
 * be missing for a moment only, as while the kernel moves it. Each record holds all that its iseqs
 * and method entries need, so that losing one harms no other.
 *
 * As everything read may be garbage, the pieces are bounded and so is their number; what is longer
 * than any code in use is left to user space. Two methods of a class or two iseqs of a file
 * have many pieces in common: within a record these are copied once (capture_once()).
 *
 * Compiled and called like ruby_walk.bpf.h: functions that the verifier should look at once are
 * global, take scalars and find their state by CPU; there are at most eight of them on the stack.
 * The shim also defines
 *
 *   capture_slot(slot)		pointer to slot @slot of the table, or NULL
 *   capture_send(rec, size)	0 if the record is in the ring
 *   capture_has_room()		whether the ring has room for what is not a sample
 */
#ifndef RBPF_NAME_CAPTURE_BPF_H
#define RBPF_NAME_CAPTURE_BPF_H

#include "capture_block.bpf.h"

/* A record with more words than this is sent before the next iseq or method entry is copied. */
#define CAPTURE_FULL	   (CAPTURE_WORDS / 4)
#define CAPTURE_IV_ENTRIES 32 /* of a class' st_table */
#define CAPTURE_SHAPES	   64
#define CAPTURE_PARENTS	   16 /* iseqs around one */
#define CAPTURE_SLOTS	   65536
#define CAPTURE_PAGE	   4096
#define CAPTURE_TRIES	   3 /* to copy all that an object needs */
#define CAPTURE_TRIES_MASK 3 /* bits of captured: 0, or how often that has failed so far */

/* ---- iseqs ---- */

/* The word at byte @off of the last body. */
static __always_inline __u64 captured_body(const struct walk *w, __u32 off)
{
	return captured_at(w, w->capture.body, off / 8);
}

static __always_inline __u64 captured_location(const struct walk *w, __u32 word)
{
	return captured_body(w, w->layout.naming.iseq_location + word * 8);
}

static __always_inline __u32 captured_body32(const struct walk *w, __u32 off)
{
	return (__u32)(captured_body(w, off) >> (off & 4) * 8);
}

/*
 * The iseq at @iseq and its body, which may end before RUBY_BODY_BYTES, and the mapping with it.
 * The first block is of @kind.
 */
__noinline int capture_body(__u32 walk_id, __u64 iseq, __u32 kind)
{
	struct walk *w = walk_state(walk_id);
	__u64 body, rest;

	if (!w || !ruby_is_object(iseq) || capture_block(walk_id, iseq, RUBY_ISEQ_WORDS * 8) ||
	    (captured_word(w, 0) & RUBY_IMEMO_MASK) != RUBY_IMEMO_ISEQ)
		return -1;
	capture_kind(w, kind);
	body = captured_word(w, RUBY_ISEQ_BODY);
	rest = CAPTURE_PAGE - body % CAPTURE_PAGE;
	if (capture_block(walk_id, body, RUBY_BODY_BYTES) &&
	    (rest >= RUBY_BODY_BYTES || capture_block(walk_id, body, rest)))
		return -1;
	w->capture.body = w->capture.at;
	return 0;
}

/* The line table of the iseq whose body was appended last, and its index. */
static __always_inline int capture_lines(struct walk *w, __u32 walk_id)
{
	const struct rbpf_naming *l = &w->layout.naming;
	__u64 n = captured_body32(w, l->insns_size), size = captured_body32(w, 4);

	if (!n)
		return 0;
	if (capture_block(walk_id, captured_body(w, l->insns_body), n * l->insn_entry))
		return -1;
	if (n == 1)
		return 0;
	return capture_block(walk_id, captured_body(w, l->insns_index), ruby_index_words(size) * 8);
}

/*
 * Append the parent of the iseq whose body was appended last, with its label; its body is then the
 * last. Returns 1 if the parent may have a parent, 0 if there is none or it is in the record, and
 * -1 if it cannot be read.
 */
__noinline int capture_parent(__u32 walk_id)
{
	struct walk *w = walk_state(walk_id);
	__u32 type;
	__u64 parent;

	if (!w)
		return -1;
	type = (__u32)captured_body(w, 0);
	parent = captured_body(w, w->layout.naming.parent_iseq);
	if (!parent || type == RUBY_ISEQ_TOP || type == RUBY_ISEQ_METHOD ||
	    type == RUBY_ISEQ_CLASS || type == RUBY_ISEQ_MAIN || !capture_once(w, parent))
		return 0;
	if (capture_body(walk_id, parent, RBPF_BLOCK_PART))
		return -1;
	capture_string(walk_id, captured_location(w, RUBY_LOCATION_LABEL));
	return 1;
}

/*
 * What else the label is made of. From 3.4 on: all its parents. Before: its base label, and the
 * local iseq, whose type says whether it is a method.
 */
static __always_inline int capture_around(struct walk *w, __u32 walk_id)
{
	__u64 local = captured_body(w, w->layout.naming.local_iseq);
	int i, r = 1;

	if (!w->layout.naming.labels_from_parents) {
		r = capture_string(walk_id, captured_location(w, RUBY_LOCATION_BASE_LABEL));
		if ((__u32)captured_body(w, 0) == RUBY_ISEQ_METHOD || !capture_once(w, local))
			return r;
		return r | capture_body(walk_id, local, RBPF_BLOCK_PART);
	}
	for (i = 0; i < CAPTURE_PARENTS && r > 0; i++)
		r = capture_parent(walk_id);
	return r ? -1 : 0;
}

__noinline int capture_iseq(__u32 walk_id, __u64 iseq)
{
	struct walk *w = walk_state(walk_id);
	int r;

	if (!w)
		return -1;
	capture_once(w, iseq);
	if (capture_body(walk_id, iseq, RBPF_BLOCK_ISEQ))
		return -1;
	r = capture_string(walk_id, captured_location(w, RUBY_LOCATION_LABEL)) |
	    capture_path(walk_id, captured_location(w, RUBY_LOCATION_PATHOBJ)) |
	    capture_lines(w, walk_id);
	/* Must come last: it changes capture.body. */
	return r | capture_around(w, walk_id);
}

/* ---- classes and method entries ---- */

/* Up to 3.1: the variable @key in the st_table of the class with rb_classext_t @ext; 0: none. */
__noinline __u64 capture_iv_tbl(__u32 walk_id, __u64 ext, __u64 key)
{
	struct walk *w = walk_state(walk_id);
	__u64 table, n;
	__u32 i;

	if (!w || capture_block(walk_id, ext + RCLASSEXT_IV_TBL, 8))
		return 0;
	table = captured_word(w, 0);
	if (!table ||
	    capture_block(walk_id, table + RUBY_ST_BOUND, 16)) /* entries_bound, entries */
		return 0;
	n = captured_word(w, 0);
	if (n > CAPTURE_IV_ENTRIES)
		n = CAPTURE_IV_ENTRIES;
	if (capture_block(walk_id, captured_word(w, 1), n * sizeof(struct ruby_st_entry)))
		return 0;
	for (i = 0; i < CAPTURE_IV_ENTRIES && i < n; i++)
		if (captured_word(w, i * 3) != RUBY_ST_DELETED &&
		    captured_word(w, i * 3 + 1) == key)
			return captured_word(w, i * 3 + 2);
	return 0;
}

/*
 * 3.2: the next shape of a chain, and the variable it stands for. Returns 1 if there is another
 * one.
 */
__noinline int capture_shape(__u32 walk_id, __u64 slots, __u64 key)
{
	struct walk *w = walk_state(walk_id);
	__u64 name, next_index, id;

	if (!w)
		return 0;
	id = w->capture.shape;
	if (!id || capture_block(walk_id, w->layout.naming.shapes + id * sizeof(struct ruby_shape),
				 sizeof(struct ruby_shape)))
		return 0;
	name = captured_word(w, 1);
	next_index = (__u32)captured_word(w, 2);
	w->capture.shape = captured_word(w, 3) >> 32;
	if ((__u8)captured_word(w, 3) != RUBY_SHAPE_IVAR || !next_index)
		return 1;
	if (capture_block(walk_id, slots + (next_index - 1) * 8, 8))
		return 0;
	if (name != key)
		return 1;
	w->capture.value = captured_word(w, 0);
	return 0;
}

/* 3.2: the variable @key of the class with @shape and values @slots; 0: none. */
__noinline __u64 capture_iv_slots(__u32 walk_id, __u64 shape, __u64 slots, __u64 key)
{
	struct walk *w = walk_state(walk_id);
	int i;

	if (!w)
		return 0;
	w->capture.shape = shape;
	w->capture.value = 0;
	for (i = 0; i < CAPTURE_SHAPES; i++)
		if (!capture_shape(walk_id, slots, key))
			break;
	return w->capture.value;
}

/* The variable @key of the class that was appended last. */
static __always_inline __u64 capture_ivar(struct walk *w, __u32 walk_id, __u64 key)
{
	if (w->layout.naming.class_form == RUBY_CLASS_IV_TBL)
		return capture_iv_tbl(walk_id, captured_word(w, RCLASS_PTR_WORD), key);
	return capture_iv_slots(walk_id, captured_word(w, 0) >> RUBY_SHAPE_ID_SHIFT,
				captured_word(w, RCLASS_IV_PTR_WORD), key);
}

static __always_inline bool is_class(__u64 flags)
{
	return (flags & RUBY_T_MASK) == RUBY_T_CLASS || (flags & RUBY_T_MASK) == RUBY_T_MODULE;
}

/* Append the name of the class that was appended last. Returns 0 also if it has none. */
static __always_inline int capture_class_name(struct walk *w, __u32 walk_id)
{
	__u64 name;

	if (w->layout.naming.class_form == RUBY_CLASS_EXT)
		name = captured_word(w, w->layout.naming.class_path / 8);
	else
		name = capture_ivar(w, walk_id, w->layout.naming.key_classpath);
	return ruby_is_object(name) ? capture_string(walk_id, name) : 0;
}

/*
 * Append the object of the singleton class that was appended last, if it is a class. Returns 1 if
 * it was appended now, 0 if it needs no name or is in the record already, and -1 if it cannot be
 * read.
 */
static __always_inline int capture_attached(struct walk *w, __u32 walk_id)
{
	__u64 attached;

	if (w->layout.naming.class_form == RUBY_CLASS_EXT)
		attached = captured_word(w, w->layout.naming.class_attached / 8);
	else
		attached = capture_ivar(w, walk_id, w->layout.naming.key_attached);
	/*
	 * Noted under another key than as an owner: as an owner its own attached object is needed.
	 */
	if (!ruby_is_object(attached) || !capture_once(w, attached | AS_ATTACHED))
		return 0;
	if (capture_block(walk_id, attached, 8))
		return -1;
	if (!is_class(captured_word(w, 0)))
		return 0;
	return capture_block(walk_id, attached, w->layout.naming.class_size) ? -1 : 1;
}

/*
 * The class or module that owns a method, and its name, or the name of what it is the singleton of.
 */
static __always_inline int capture_owner(__u32 walk_id, __u64 owner)
{
	struct walk *w = walk_state(walk_id);
	__u64 flags;
	int r;

	if (!w || !ruby_is_object(owner))
		return -1;
	if (!capture_once(w, owner))
		return 0;
	if (capture_block(walk_id, owner, w->layout.naming.class_size))
		return -1;
	flags = captured_word(w, 0);
	if (!is_class(flags))
		return -1;
	if ((flags & RUBY_T_MASK) == RUBY_T_CLASS &&
	    flags >> (w->layout.naming.singleton_bit & 63) & 1) {
		r = capture_attached(w, walk_id);
		if (r <= 0)
			return r;
	}
	return capture_class_name(w, walk_id);
}

/* The rest of the method entry that was appended last, with its @named method's name. */
__noinline int capture_method(__u32 walk_id, __u32 named)
{
	struct walk *w = walk_state(walk_id);
	__u64 def, owner;
	int r = 0;

	if (!w)
		return -1;
	def = captured_word(w, RUBY_ME_DEF);
	owner = captured_word(w, RUBY_ME_OWNER);
	if (capture_block(walk_id, def, w->layout.naming.original_id + 8))
		return -1;
	if (named)
		r = capture_id(walk_id, captured_word(w, w->layout.naming.original_id / 8));
	return r | capture_owner(walk_id, owner);
}

/* ---- a stack ---- */

/* Send what was copied; what is in the ring is remembered. */
__noinline int capture_flush(__u32 walk_id)
{
	struct walk *w = walk_state(walk_id);
	struct walk_capture *c;
	__u32 i, n, bytes;
	__u64 *slot;

	if (!w)
		return -1;
	c = &w->capture;
	n = c->n_items;
	bytes = (c->used & (CAPTURE_WORDS - 1)) * 8;
	c->record.n_bytes = bytes;
	c->nonce = rbpf_mix(c->nonce, 1);
	c->used = c->n_items = 0;
	if (!n)
		return 0;
	if (capture_send(&c->record, sizeof(c->record) + bytes)) {
		c->items_left = 0;
		c->incomplete = 1;
		walk_count(RBPF_CNT_NOT_COPIED);
		return -1;
	}
	for (i = 0; i < CAPTURE_ITEMS && i < n; i++) {
		__u64 addr = c->items[i].addr;

		slot = capture_slot(c->items[i].slot);
		if (slot)
			*slot = c->items[i].value;
		if (!(c->items[i].value & CAPTURE_TRIES_MASK))
			c->known[(addr >> 3 ^ addr >> 13) & (CAPTURE_KNOWN - 1)] = addr ^ w->seed;
	}
	return 0;
}

/* rbpf_check_iseq() of @iseq; walk_complete_frame() has just taken it, but for a collision. */
static __always_inline __u64 capture_iseq_check(struct walk *w, __u32 walk_id, __u64 iseq)
{
	__u32 slot = iseq_slot(w, iseq);

	return w->iseqs[slot].seen == (iseq ^ w->seed) ? w->iseqs[slot].check
						       : walk_check_iseq(walk_id, iseq, 1);
}

/*
 * A hash of what identifies the object at @addr. Of a method entry it is 0 if none is there. Of an
 * iseq it is never 0: its check cannot be taken if the label is a C literal in a page that the
 * process has not touched (src/ruby/constants.h), and it is to be copied then, too.
 */
static __always_inline __u64 capture_check(struct walk *w, __u32 walk_id, __u64 addr, __u32 kind)
{
	if (kind == RBPF_BLOCK_ISEQ)
		return capture_iseq_check(w, walk_id, addr) | 1;
	/*
	 * Its check is made of its words; capture_item() takes the block back if user space has it.
	 */
	if (capture_block(walk_id, addr, RUBY_ME_WORDS * 8) ||
	    (captured_word(w, 0) & RUBY_IMEMO_MASK) != RUBY_IMEMO_MENT)
		return 0;
	capture_kind(w, kind);
	return rbpf_check_me(0, captured_word(w, RUBY_ME_DEF), captured_word(w, RUBY_ME_CALLED_ID),
			     captured_word(w, RUBY_ME_OWNER));
}

/* Copy what the iseq or method entry at @addr needs, unless that was done before. */
__noinline int capture_item(__u32 walk_id, __u64 addr, __u32 kind)
{
	struct walk *w = walk_state(walk_id);
	struct walk_capture_item *item;
	__u64 *known, check, value;
	__u32 start, slot, tries;

	if (!w)
		return -1;
	if (w->capture.used > CAPTURE_FULL && capture_flush(walk_id))
		return -1;
	if (!capture_once(w, addr | AS_ITEM))
		return 0;
	start = w->capture.used;
	check = capture_check(w, walk_id, addr, kind);
	value = rbpf_mix(w->capture.process, addr);
	slot = (value >> 32) & (CAPTURE_SLOTS - 1);
	value = rbpf_mix(value, check) & ~(__u64)CAPTURE_TRIES_MASK;
	known = capture_slot(slot);
	if (!check || !known || *known == value) {
		w->capture.used = start;
		w->capture.incomplete |= !check;
		if (known && check)
			w->capture.known[(addr >> 3 ^ addr >> 13) & (CAPTURE_KNOWN - 1)] = addr ^
											   w->seed;
		return 0;
	}
	if (!w->capture.items_left) {
		w->capture.used = start;
		w->capture.incomplete = 1;
		walk_count(RBPF_CNT_NOT_COPIED);
		return -1;
	}
	tries = (*known ^ value) <= CAPTURE_TRIES_MASK ? *known & CAPTURE_TRIES_MASK : 0;
	w->capture.items_left--;
	item = &w->capture.items[w->capture.n_items++ & (CAPTURE_ITEMS - 1)];
	item->addr = addr;
	item->value = value;
	item->slot = slot;
	walk_count(RBPF_CNT_COPIED);
	if (kind == RBPF_BLOCK_ISEQ ? capture_iseq(walk_id, addr)
				    : capture_method(walk_id, kind == RBPF_BLOCK_CFUNC)) {
		w->capture.incomplete = 1;
		walk_count(RBPF_CNT_COPY_FAULT);
		/* What others have in common with it may be missing: they copy it themselves. */
		w->capture.nonce = rbpf_mix(w->capture.nonce, 1);
		if (tries + 1 < CAPTURE_TRIES) {
			item->value |= tries + 1;
			w->capture.again = 1;
		}
	}
	return 0;
}

static __always_inline bool capture_is_known(const struct walk *w, __u64 addr)
{
	return w->capture.known[(addr >> 3 ^ addr >> 13) & (CAPTURE_KNOWN - 1)] == (addr ^ w->seed);
}

/* Frames from @first on, as many as are looked at in one go. */
#define CAPTURE_FRAMES 64

__noinline int capture_frames(__u32 walk_id, __u32 first)
{
	struct walk *w = walk_state(walk_id);
	__u32 i;

	if (!w)
		return -1;
	for (i = 0; i < CAPTURE_FRAMES; i++) {
		const struct rbpf_frame *f = &w->frames[(first + i) & (RBPF_MAX_FRAMES - 1)];

		if (first + i >= w->n_frames)
			return 0;
		if (f->iseq && !capture_is_known(w, f->iseq))
			capture_item(walk_id, f->iseq, RBPF_BLOCK_ISEQ);
		if (f->me && !capture_is_known(w, f->me))
			capture_item(walk_id, f->me,
				     f->iseq ? RBPF_BLOCK_METHOD : RBPF_BLOCK_CFUNC);
	}
	return w->n_frames > first + i;
}

/*
 * Copy and send what naming the frames of w->record needs and was not sent before. @process tells
 * the process, and its program, from all others. walk_complete() has been called. Returns whether
 * user space has all of it then; if not, and w->capture.again was set, the stack is to be sent once
 * more.
 */
static __always_inline bool capture_stack(struct walk *w, __u32 walk_id, __u64 process)
{
	struct rbpf_ring_memory *rec = &w->capture.record;
	__u32 i;

	if (!(w->layout.flags & RBPF_LAYOUT_COPY))
		return false;
	if (!capture_has_room()) {
		walk_count(RBPF_CNT_NOT_COPIED);
		return false;
	}
	rec->h = w->record.h;
	rec->h.type = RBPF_RING_MEMORY;
	rec->gc_era = w->record.gc_era;
	rec->flags = w->record.flags;
	w->capture.process = process;
	w->capture.items_left = CAPTURE_ITEMS;
	w->capture.used = w->capture.n_items = w->capture.incomplete = 0;
	w->capture.nonce = rbpf_mix(w->capture.nonce, 1);
	w->capture.items_nonce = w->capture.nonce;
	for (i = 0; i < RBPF_MAX_FRAMES; i += CAPTURE_FRAMES)
		if (capture_frames(walk_id, i) <= 0)
			break;
	capture_flush(walk_id);
	return !w->capture.incomplete;
}

#endif
