/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Reading what names the request, from the frame that the walk found (request_frame.bpf.h).
 *
 * It is read at the tick: later the request may be over, and another object have the receiver's
 * address. A control frame always holds the receiver. A local variable is not in memory where
 * compiled code keeps it in a register: ZJIT does, and YJIT in a frame that has not called anything
 * yet. It then counts as unreadable.
 *
 * Compiled and called like ruby_walk.bpf.h.
 */
#ifndef RBPF_REQUEST_READ_BPF_H
#define RBPF_REQUEST_READ_BPF_H

#include "ruby_complete.bpf.h"

#define SINGLETON_DEPTH 8  /* classes and modules above each other that are left out */
#define ENV_ENTRIES	64 /* of Rack's environment that are looked at: a server fills it first */

_Static_assert(ENV_ENTRIES * sizeof(struct ruby_st_entry) <= CF_CHUNK * RUBY_CF_SIZE_MAX,
	       "they fit into cf[]");

/*
 * What is remembered of the object at @addr: in the state of the heap that w->seed stands for, an
 * address that was seen in use is no other object's, nor is that of an old object up to the next
 * major collection.
 */
static __always_inline struct walk_seen *request_seen(struct walk *w, __u64 addr)
{
	return &w->request_seen[(addr >> 3 ^ addr >> 13 ^ w->spread) & (REQUEST_SEEN - 1)];
}

static __always_inline bool request_is_seen(const struct walk *w, const struct walk_seen *seen,
					    __u64 addr)
{
	return is_seen(w, seen->addr, addr);
}

/* @flags: the object's. */
static __always_inline void request_see(const struct walk *w, struct walk_seen *seen, __u64 addr,
					__u64 flags, __u64 value)
{
	seen->addr = addr ^ (is_old(w, flags) ? w->old_seed : w->seed);
	seen->value = value;
}

/*
 * The flags of @klass, the class of an object that lives; that it got old meanwhile may be missed.
 * 0: it cannot be read.
 */
static __always_inline __u64 request_class_flags(struct walk *w, __u64 klass)
{
	struct walk_seen *seen = request_seen(w, klass);
	__u64 flags;

	w->request_class_new = !request_is_seen(w, seen, klass);
	if (!w->request_class_new)
		return seen->value;
	if (walk_read(&flags, sizeof(flags), klass))
		return 0;
	request_see(w, seen, klass, flags, flags);
	return flags;
}

/*
 * The class of the object at @value, which is above its singleton class and the modules that it was
 * extended by, if it has them; 0 if there is none, or it cannot be read.
 */
__noinline __u64 request_class(__u32 walk_id, __u64 value)
{
	struct walk *w = walk_state(walk_id);
	__u64 words[2], klass, flags; /* flags, klass */
	__u32 i;

	if (!w || !ruby_is_object(value) || walk_read(words, sizeof(words), value))
		return 0;
	klass = words[1];
	for (i = 0; i < SINGLETON_DEPTH; i++) {
		flags = ruby_is_object(klass) ? request_class_flags(w, klass) : 0;
		if (!flags)
			return 0;
		if ((flags & RUBY_T_MASK) == RUBY_T_CLASS &&
		    !(flags >> (w->layout.naming.singleton_bit & 63) & 1)) {
			w->request_class_flags = flags;
			return klass;
		}
		if (!w->request_rule.super_word ||
		    walk_read(&klass, sizeof(klass), klass + w->request_rule.super_word * 8ul))
			return 0;
	}
	return 0;
}

/* Local variable @slot of the frame; 0 if it cannot be read. */
__noinline __u64 request_local(__u32 walk_id, __u32 slot)
{
	struct walk *w = walk_state(walk_id);
	__u64 value, pc;

	if (!w || !slot)
		return 0;
	pc = w->request.frame.pc;
	if (pc & RBPF_PC_STALE || (w->zjit_on == ZJIT_ON &&
				   (pc & RBPF_PC_JIT || w->layout.flags & RBPF_LAYOUT_ZJIT_BARE)))
		return 0;
	return walk_read(&value, sizeof(value), w->request_ep - (__u64)slot * 8) ? 0 : value;
}

/*
 * Word @i of the text of @len bytes that begins at word @from of the String in w->text, into the
 * record.
 */
static __always_inline void request_copy_word(struct walk *w, __u32 from, __u32 len, __u32 i)
{
	__u64 word = w->text[(from + i) & (RBPF_LABEL_WORDS - 1)];

	if (len <= i * 8)
		return;
	if (len < (i + 1) * 8)
		word &= ((__u64)1 << (len & 7) * 8) - 1;
	((__u64 *)w->request.text)[i] = word;
}

/* The same of all its words: a String has three at most. */
static __always_inline void request_copy_text(struct walk *w, __u32 from, __u32 len)
{
	request_copy_word(w, from, len, 0);
	request_copy_word(w, from, len, 1);
	request_copy_word(w, from, len, 2);
}

/*
 * Put the text of @value, a String or a Symbol, into the record: of a Symbol that is no object its
 * ID. Returns 0, or -1 if it is neither or cannot be read.
 */
__noinline int request_text(__u32 walk_id, __u64 value)
{
	struct walk *w = walk_state(walk_id);
	__u64 *words, at, len,
		from = 0; /* from: the word of it where the text is in the String itself */

	if (!w)
		return -1;
	if ((value & RUBY_SYMBOL_MASK) == RUBY_SYMBOL_FLAG) {
		w->request.symbol = value >> RUBY_SYMBOL_SHIFT;
		return 0;
	}
	words = w->text;
	if (!ruby_is_object(value) || walk_read(words, RUBY_OBJECT_WORDS * 8, value))
		return -1;
	if ((words[0] & RUBY_T_MASK) == RUBY_T_SYMBOL) {
		value = words[RSYMBOL_FSTR_WORD];
		if (!ruby_is_object(value) || walk_read(words, RUBY_OBJECT_WORDS * 8, value))
			return -1;
	}
	if ((words[0] & RUBY_T_MASK) != RUBY_T_STRING)
		return -1;
	len = words[RSTRING_LEN_WORD];
	if (words[0] & RSTRING_NOEMBED) {
		at = words[RSTRING_PTR_WORD];
	} else if (w->layout.flags & RBPF_LAYOUT_LONG_EMBED) {
		from = RSTRING_EMBED_LONG / 8;
		at = value + RSTRING_EMBED_LONG;
	} else {
		from = RSTRING_EMBED_SHORT / 8;
		at = value + RSTRING_EMBED_SHORT;
		len = RSTRING_EMBED_LEN(words[0]);
	}
	if (len > RBPF_REQUEST_TEXT) {
		len = RBPF_REQUEST_TEXT;
		w->request.flags |= RBPF_REQUEST_TEXT_CUT;
	}
	w->request.text_len = len;
	barrier_var(len);
	if (len > RBPF_REQUEST_TEXT)
		return -1;
	/*
	 * A short one was read with its String. (len itself is compared: of a sum of it the
	 * verifier of 6.12 takes the wrong bounds over to it.)
	 */
	if (from && len <= (RUBY_OBJECT_WORDS - from) * 8) {
		request_copy_text(w, from, len);
		return 0;
	}
	return len && walk_read(w->request.text, len, at) ? -1 : 0;
}

/* ---- Rack's environment ---- */

/*
 * Read where the entries of @hash are into w->text, and the first of them into w->cf, whose frames
 * nobody needs any more. Returns how many, 0 if that cannot be read. A Hash of up to 8 entries has
 * another form: no server's environment is so small.
 */
__noinline int request_env_entries(__u32 walk_id, __u64 hash)
{
	struct walk *w = walk_state(walk_id);
	__u64 flags, at = hash, n;

	if (!w || !ruby_is_object(hash) || walk_read(&flags, sizeof(flags), hash) ||
	    (flags & RUBY_T_MASK) != RUBY_T_HASH || !(flags & RHASH_ST_TABLE))
		return 0;
	if (w->request_rule.st_pointer &&
	    walk_read(&at, sizeof(at), hash + w->request_rule.st_pointer))
		return 0;
	if (walk_read(w->text, 16, at + w->request_rule.st_bound))
		return 0;
	n = w->text[0];
	if (n > ENV_ENTRIES)
		n = ENV_ENTRIES;
	barrier_var(n);
	if (!n || n > ENV_ENTRIES)
		return 0;
	return walk_read(w->cf, n * sizeof(struct ruby_st_entry), w->text[1]) ? 0 : (int)n;
}

/* Put no text into the record. */
static __always_inline void request_clear_text(struct walk *w)
{
	w->request.symbol = 0;
	w->request.text_len = 0;
	w->request.flags &= ~RBPF_REQUEST_TEXT_CUT;
	__builtin_memset(w->request.text, 0, sizeof(w->request.text));
}

/*
 * Put the String that the first @n entries in w->cf have under @key into the record. Returns 0, or
 * -1 if there is none.
 */
__noinline int request_env_get(__u32 walk_id, __u32 n, __u32 key)
{
	struct walk *w = walk_state(walk_id);
	const struct ruby_st_entry *entries;
	__u64 hash, of = 0, value = 0;
	const __u64 *text;
	__u32 i;

	if (!w)
		return -1;
	entries = (const struct ruby_st_entry *)w->cf;
	hash = w->request_rule.key_hash[key & (RBPF_ENV_KEYS - 1)];
	for (i = 0; i < ENV_ENTRIES && i < n; i++) {
		if (entries[i].hash == hash) {
			of = entries[i].key;
			value = entries[i].record;
			break;
		}
	}
	request_clear_text(w);
	if (!of || request_text(walk_id, of))
		return -1;
	text = (const __u64 *)w->request.text;
	if (w->request.text_len != RBPF_ENV_KEY_LEN(key) || text[0] != RBPF_ENV_KEY_START ||
	    text[1] != RBPF_ENV_KEY_END(key))
		return -1;
	request_clear_text(w);
	return request_text(walk_id, value);
}

/*
 * Put path and method of the request with the environment @hash into the record. Returns 0, or -1
 * if the path cannot be read.
 */
__noinline int request_env(__u32 walk_id, __u64 hash)
{
	struct walk *w = walk_state(walk_id);
	__u32 n;
	int r;

	if (!w)
		return -1;
	n = request_env_entries(walk_id, hash);
	if (!n)
		return -1;
	w->request.object = hash;
	if (!w->request_rule.key_hash[RBPF_ENV_PATH])
		return -1;
	if (!request_env_get(walk_id, n, RBPF_ENV_METHOD))
		w->request.verb = *(const __u64 *)w->request.text;
	r = request_env_get(walk_id, n, RBPF_ENV_PATH);
	if (r)
		request_clear_text(w);
	return r;
}

/* ---- all of it ---- */

/* The fingerprint of the request that was read; it is of this epoch and era. */
static __always_inline __u64 request_hash(const struct walk *w)
{
	const struct rbpf_ring_request *rec = &w->request;
	const __u64 *text = (const __u64 *)rec->text;
	__u64 hash;
	__u32 i;

	hash = rbpf_mix(rbpf_mix(w->seed, rec->frame.iseq), rec->object);
	hash = rbpf_mix(rbpf_mix(rbpf_mix(hash, rec->klass), rec->symbol), rec->me);
	hash = rbpf_mix(hash, rec->verb);
	for (i = 0; i < RBPF_REQUEST_TEXT / 8; i++)
		hash = rbpf_mix(hash, text[i]);
	return rbpf_mix(hash, (__u64)rec->flags << 32 | (__u32)rec->rule << 16 | rec->text_len) | 1;
}

/*
 * Whether the check of @iseq was taken when its stack was defined, and it is no other iseq since;
 * into *@ret.
 */
static __always_inline bool request_checked(const struct walk *w, __u64 iseq, __u64 *ret)
{
	*ret = w->iseqs[iseq_slot(w, iseq)].check;
	return *ret && iseq_is_seen(w, iseq);
}

static __always_inline void request_check_iseq(struct walk *w, __u32 walk_id)
{
	__u64 iseq = w->request.frame.iseq, check;
	struct walk_seen *seen = request_seen(w, iseq);

	if (request_checked(w, iseq, &check)) {
		w->request.frame.check = check;
		return;
	}
	if (!request_is_seen(w, seen, iseq)) {
		check = walk_check_iseq(walk_id, iseq, true);
		if (!check)
			return;
		request_see(w, seen, iseq, 0, check);
	}
	w->request.frame.check = seen->value;
}

static __always_inline void request_check_me(struct walk *w)
{
	struct walk_seen *seen = request_seen(w, w->request.me);
	__u64 me[RUBY_ME_WORDS], addr = w->request.me, check;

	if (!request_is_seen(w, seen, addr)) {
		if (walk_read(me, sizeof(me), addr))
			return;
		check = rbpf_check_me(0, me[RUBY_ME_DEF], me[RUBY_ME_CALLED_ID], me[RUBY_ME_OWNER]);
		request_see(w, seen, addr, me[RUBY_ME_FLAGS], check);
	}
	w->request.me_check = seen->value;
}

/* Take the checks of the frame that was read, for user space to prove it by. */
__noinline int request_take_checks(__u32 walk_id)
{
	struct walk *w = walk_state(walk_id);

	if (!w)
		return 0;
	request_check_iseq(w, walk_id);
	if (w->request.me)
		request_check_me(w);
	return 0;
}

/*
 * Read what the rule of the frame that was noted and kept names into w->request; its header and
 * eras are the caller's.
 */
__noinline int request_read(__u32 walk_id)
{
	struct walk *w = walk_state(walk_id);
	struct rbpf_ring_request *rec;
	__u64 local;

	if (!w)
		return 0;
	rec = &w->request;
	rec->frame.me = rec->frame.check = 0;
	rec->me_check = 0;
	rec->object = w->request_self;
	rec->rule = w->request_rule.rule;
	rec->klass = rec->symbol = rec->verb = 0;
	rec->text_len = 0;
	rec->flags = 0;
	__builtin_memset(rec->text, 0, sizeof(rec->text));
	if (w->request_rule.class_from == RBPF_REQUEST_OF_SELF) {
		rec->klass = request_class(walk_id, rec->object);
	} else if (w->request_rule.class_from != RBPF_REQUEST_NO_CLASS) {
		local = request_local(walk_id, w->request_rule.class_slot);
		if (w->request_rule.class_from == RBPF_REQUEST_OF_LOCAL) {
			rec->object = local;
			rec->klass = request_class(walk_id, local);
		} else if (ruby_is_object(local)) {
			rec->klass = local;
			w->request_class_flags = request_class_flags(w, local);
		}
	}
	if (w->request_rule.text_from == RBPF_REQUEST_ENV) {
		if (request_env(walk_id, request_local(walk_id, w->request_rule.text_slot)))
			rec->flags |= RBPF_REQUEST_NO_TEXT;
	} else if (w->request_rule.text_slot &&
		   request_text(walk_id, request_local(walk_id, w->request_rule.text_slot))) {
		rec->flags |= RBPF_REQUEST_NO_TEXT;
	}
	rec->request = request_hash(w);
	return 0;
}

#endif
