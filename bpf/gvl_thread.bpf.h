/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * RBPF_TLS_GLOBAL (Ruby 2.7): one variable holds the EC of the thread that held the VM's lock last,
 * and is never cleared. A sampled thread that runs without the lock, or that is not one of Ruby's,
 * must not be given that stack: a thread is recognised by its rb_thread_t.thread_id, which is its
 * thread pointer plus layout.thread_id_bias. A thread is searched in the VM's list when it is first
 * sampled, and kept in gvl_threads; one that is not found is searched again in another epoch.
 */
#ifndef RBPF_GVL_THREAD_BPF_H
#define RBPF_GVL_THREAD_BPF_H

/* Threads of the VM's list that are looked at in a tick, at two reads each. */
#define GVL_TICK_THREADS 256

/* Whether the rb_thread_t at @th is that of the thread with @thread_id. */
static __always_inline bool gvl_is_thread(const struct walk *w, __u64 th, __u64 thread_id)
{
	__u64 id = 0;

	return th && !bpf_probe_read_user(&id, sizeof(id), (void *)(th + w->layout.th_thread_id)) &&
	       id == thread_id;
}

/* The thread that held the lock last, if it is that with @thread_id, else 0. */
static __always_inline __u64 gvl_last_holder(const struct walk *w, __u64 thread_id)
{
	__u64 ec = 0, th = 0;

	if (bpf_probe_read_user(&ec, sizeof(ec), (void *)w->layout.ec_global) || !ec ||
	    bpf_probe_read_user(&th, sizeof(th), (void *)(ec + w->layout.ec_thread_ptr)))
		return 0;
	return gvl_is_thread(w, th, thread_id) ? th : 0;
}

/*
 * Whether the node at @node of the VM's list is that of the thread with @thread_id; if not, the
 * next one is put into w->gvl_next, 0 if there is none. The node stands first in an rb_thread_t.
 */
__noinline int gvl_check_node(__u32 walk_id, __u64 node, __u64 thread_id)
{
	struct walk *w = walk_state(walk_id);
	__u64 id;

	if (!w)
		return 0;
	w->gvl_next = 0;
	if (bpf_probe_read_user(&id, sizeof(id), (void *)(node + w->layout.th_thread_id)))
		w->gvl_unread = 1;
	else if (id == thread_id)
		return 1;
	if (bpf_probe_read_user(&w->gvl_next, sizeof(w->gvl_next), (void *)node)) {
		w->gvl_next = 0;
		w->gvl_unread = 1;
	}
	return 0;
}

/*
 * Look through the VM's list. Returns 0 if it is not there, or w->gvl_unread says that part of the
 * list could not be read: a page that is being copied after a fork is not mapped for a moment, and
 * the tick can come from within that page fault.
 */
__noinline __u64 gvl_search(__u32 walk_id, __u64 thread_id)
{
	struct walk *w = walk_state(walk_id);
	__u64 node;
	int i;

	if (!w)
		return 0;
	w->gvl_unread = bpf_probe_read_user(&node, sizeof(node), (void *)w->layout.threads) != 0;
	if (w->gvl_unread)
		return 0;
	for (i = 0; i < GVL_TICK_THREADS && node && node != w->layout.threads; i++) {
		if (gvl_check_node(walk_id, node, thread_id))
			return node;
		node = w->gvl_next;
	}
	return 0;
}

/* The EC of the thread @id (tgid, tid). Returns enum rbpf_status. */
static __always_inline int gvl_thread_ec(__u32 walk_id, __u64 thread_id, __u64 id, __u64 epoch,
					 __u64 *ec)
{
	struct walk *w = walk_state(walk_id);
	__u64 *known, th;

	if (!w)
		return RBPF_NO_EC;
	known = bpf_map_lookup_elem(&gvl_threads, &id);
	th = gvl_last_holder(w, thread_id);
	if (!th) {
		if (known && *known == (epoch << 1 | 1))
			return RBPF_NO_EC;
		th = known && !(*known & 1) && gvl_is_thread(w, *known, thread_id)
			     ? *known
			     : gvl_search(walk_id, thread_id);
		if (!th && w->gvl_unread)
			return RBPF_FAULT_EC;
	}
	if (!known || *known != th) {
		__u64 value = th ? th : epoch << 1 | 1;

		bpf_map_update_elem(&gvl_threads, &id, &value, BPF_ANY);
	}
	if (!th)
		return RBPF_NO_EC;
	if (bpf_probe_read_user(ec, sizeof(*ec), (void *)(th + w->layout.th_ec)))
		return RBPF_FAULT_EC;
	return *ec ? RBPF_OK : RBPF_NO_EC;
}

#endif
