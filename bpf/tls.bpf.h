/* SPDX-License-Identifier: GPL-2.0-only */
/* Thread-local storage of the running thread. */
#ifndef RBPF_TLS_BPF_H
#define RBPF_TLS_BPF_H

/* The member of a task that is its thread pointer. */
#if defined(__TARGET_ARCH_x86)
#define THREAD_POINTER thread.fsbase
#else
#define THREAD_POINTER thread.uw.tp_value
#endif

#define DTV_ENTRY_GLIBC 16 /* with the number of entries before the first; musl has it in that */

/*
 * The address in *@ret at which the thread with thread pointer @tp has @variable, which is in
 * static TLS or behind the DTV. @checked: a DTV that is too short is noticed; without, what was
 * read must prove itself. Returns enum rbpf_status.
 */
static __always_inline int tls_address(const struct rbpf_tls *variable, __u64 tp, bool checked,
				       __u64 *ret)
{
	__u64 base = tp, dtv, n;

	if (variable->model == RBPF_TLS_DTV) {
		if (bpf_probe_read_user(&dtv, sizeof(dtv), (void *)(tp + variable->dtv_offset)))
			return RBPF_FAULT_TLS;
		if (checked) {
			base = variable->dtv_entry == DTV_ENTRY_GLIBC ? dtv - DTV_ENTRY_GLIBC : dtv;
			if (bpf_probe_read_user(&n, sizeof(n), (void *)base))
				return RBPF_FAULT_TLS;
			if (variable->module > n)
				return RBPF_NO_EC;
		}
		base = dtv + (__u64)variable->module * variable->dtv_entry;
		if (bpf_probe_read_user(&base, sizeof(base), (void *)base))
			return RBPF_FAULT_TLS;
		/* Not allocated until the thread first touches it. */
		if (base == ~0ull || !base)
			return RBPF_NO_EC;
	}
	*ret = base + variable->offset;
	return RBPF_OK;
}

#endif
