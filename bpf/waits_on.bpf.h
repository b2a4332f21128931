/* SPDX-License-Identifier: GPL-2.0-only */
/* What is behind the descriptor that a thread waits for: who is at the other end, or which file. */
#ifndef RBPF_WAITS_ON_BPF_H
#define RBPF_WAITS_ON_BPF_H

/* linux/socket.h */
enum {
	AF_UNIX = 1,
	AF_INET = 2,
	AF_INET6 = 10,
};

/* The @n bytes of a name at @from: its end if it is a path, and longer than there is room. */
static __always_inline void take_name(struct rbpf_waits_on *ret, const void *from, __u64 n,
				      bool is_path)
{
	__u64 size = n;

	ret->len = n < 255 ? n : 255;
	if (is_path && n > RBPF_ON_NAME)
		from += n - RBPF_ON_NAME;
	/* Last, and at once: the verifier has to see its bounds. */
	barrier_var(size);
	if (size > RBPF_ON_NAME)
		size = RBPF_ON_NAME;
	bpf_probe_read_kernel(ret->name, size, from);
}

static __always_inline void take_inet(struct rbpf_waits_on *ret, const struct sock *sk,
				      __u32 family)
{
	ret->kind = family == AF_INET ? RBPF_ON_INET : RBPF_ON_INET6;
	ret->own_port = BPF_CORE_READ(sk, __sk_common.skc_num);
	ret->port = __builtin_bswap16(BPF_CORE_READ(sk, __sk_common.skc_dport));
	if (!ret->port)
		return;
	if (family == AF_INET)
		take_name(ret, &sk->__sk_common.skc_daddr, 4, false);
	else
		take_name(ret, &sk->__sk_common.skc_v6_daddr, 16, false);
}

/* The address of a socket that was bound, or was made by accept() from one that was. */
static __always_inline bool take_unix_address(struct rbpf_waits_on *ret,
					      const struct unix_address *at)
{
	const void *path = &at->name[0].sun_path;
	__u32 n = (__u32)BPF_CORE_READ(at, len) - sizeof(__u16);
	char first = 0;

	if (!n || n > sizeof(at->name[0].sun_path) || bpf_probe_read_kernel(&first, 1, path))
		return false;
	/* The NUL after a path is a part of it. */
	take_name(ret, path, first ? (__u64)n - 1 : n, true);
	return true;
}

static __always_inline void take_unix(struct rbpf_waits_on *ret, const struct unix_sock *sk)
{
	const struct unix_address *at = NULL;
	const struct sock *peer;

	if (!bpf_core_type_exists(struct unix_sock))
		return;
	peer = BPF_CORE_READ(sk, peer);
	if (peer)
		at = BPF_CORE_READ((const struct unix_sock *)peer, addr);
	ret->kind = at ? RBPF_ON_UNIX : RBPF_ON_UNIX_OWN;
	if (!at)
		at = BPF_CORE_READ(sk, addr);
	if (!at || !take_unix_address(ret, at))
		ret->kind = RBPF_ON_NOTHING;
}

/* Mostly there is nothing to copy. */
static __always_inline void waits_on_copy(struct rbpf_waits_on *to,
					  const struct rbpf_waits_on *from)
{
	if (from->kind != RBPF_ON_NOTHING)
		*to = *from;
	else
		to->kind = RBPF_ON_NOTHING;
}

/*
 * What is behind @file, for which a thread waits as @wait says. No part of its callers, whose stack
 * is short.
 */
static __noinline int waits_on_read(struct rbpf_waits_on *ret, const struct file *file, __u32 wait)
{
	const struct socket *socket;
	const struct sock *sk;
	struct qstr name;
	__u32 family;

	ret->kind = RBPF_ON_NOTHING;
	if (!file || (wait != RBPF_WAIT_DISK && wait != RBPF_WAIT_NETWORK))
		return 0;
	*ret = (struct rbpf_waits_on) {};
	if (wait == RBPF_WAIT_DISK) {
		name.len = BPF_CORE_READ(file, f_path.dentry, d_name.len);
		name.name = BPF_CORE_READ(file, f_path.dentry, d_name.name);
		ret->kind = RBPF_ON_FILE;
		take_name(ret, name.name, name.len, false);
		return 0;
	}
	socket = BPF_CORE_READ(file, private_data);
	sk = BPF_CORE_READ(socket, sk);
	family = BPF_CORE_READ(sk, __sk_common.skc_family);
	if (family == AF_INET || family == AF_INET6)
		take_inet(ret, sk, family);
	else if (family == AF_UNIX)
		take_unix(ret, (const struct unix_sock *)sk);
	return 0;
}

#endif
