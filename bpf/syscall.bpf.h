/* SPDX-License-Identifier: GPL-2.0-only */
/* The system call that a thread is in, and what it waits for there. */
#ifndef RBPF_SYSCALL_BPF_H
#define RBPF_SYSCALL_BPF_H

#include "registers.bpf.h"

/* Numbers of system calls: asm/unistd_64.h of x86_64, asm-generic/unistd.h. */
#if defined(__TARGET_ARCH_x86)
#define SYSCALL(x86, generic) (x86)
#else
#define SYSCALL(x86, generic) (generic)
#endif
#define NOT_THERE (-1000) /* on arm64 */

enum {
	SYS_read = SYSCALL(0, 63),
	SYS_write = SYSCALL(1, 64),
	SYS_pread64 = SYSCALL(17, 67),
	SYS_pwrite64 = SYSCALL(18, 68),
	SYS_readv = SYSCALL(19, 65),
	SYS_writev = SYSCALL(20, 66),
	SYS_sendfile = SYSCALL(40, 71),
	SYS_connect = SYSCALL(42, 203),
	SYS_accept = SYSCALL(43, 202),
	SYS_sendto = SYSCALL(44, 206),
	SYS_recvfrom = SYSCALL(45, 207),
	SYS_sendmsg = SYSCALL(46, 211),
	SYS_recvmsg = SYSCALL(47, 212),
	SYS_accept4 = SYSCALL(288, 242),
	SYS_recvmmsg = SYSCALL(299, 243),
	SYS_sendmmsg = SYSCALL(307, 269),
	SYS_poll = SYSCALL(7, NOT_THERE),
	SYS_ppoll = SYSCALL(271, 73),
	SYS_select = SYSCALL(23, NOT_THERE - 1),
	SYS_pselect6 = SYSCALL(270, 72),
	SYS_epoll_wait = SYSCALL(232, NOT_THERE - 2),
	SYS_epoll_pwait = SYSCALL(281, 22),
	SYS_epoll_pwait2 = SYSCALL(441, 441),
	SYS_nanosleep = SYSCALL(35, 101),
	SYS_clock_nanosleep = SYSCALL(230, 115),
	SYS_wait4 = SYSCALL(61, 260),
	SYS_waitid = SYSCALL(247, 95),
	SYS_futex = SYSCALL(202, 98),
	SYS_futex_waitv = SYSCALL(449, 449),
	SYS_flock = SYSCALL(73, 32),
	SYS_fcntl = SYSCALL(72, 25),
	SYS_fsync = SYSCALL(74, 82),
	SYS_fdatasync = SYSCALL(75, 83),
	SYS_sync = SYSCALL(162, 81),
	SYS_syncfs = SYSCALL(306, 267),
	SYS_msync = SYSCALL(26, 227),
	SYS_preadv = SYSCALL(295, 69),
	SYS_pwritev = SYSCALL(296, 70),
	SYS_preadv2 = SYSCALL(327, 286),
	SYS_pwritev2 = SYSCALL(328, 287),
	SYS_splice = SYSCALL(275, 76),
	SYS_io_uring_enter = SYSCALL(426, 426),
	SYS_futex_wait = SYSCALL(455, 455),
	SYS_semop = SYSCALL(65, 193),
	SYS_semtimedop = SYSCALL(220, 192),
	SYS_restart_syscall = SYSCALL(219, 128),
};

/* Of the operation of futex(); linux/futex.h. */
enum {
	FUTEX_WAIT_BITSET = 9,
	FUTEX_CMD = ~(128 | 256), /* without FUTEX_PRIVATE_FLAG and FUTEX_CLOCK_REALTIME */
};

#define FD_SETSIZE 1024 /* bits of an fd_set */

/* Where a thread entered the kernel; number < 0: not by a system call. */
struct syscall {
	__s64 number;
	__u64 args[4];
	const struct file *file; /* result of wait_in_syscall(); NULL: it knows of none */
};

#if defined(__TARGET_ARCH_x86)
static __always_inline int syscall_at(struct syscall *ret, const void *at)
{
	struct pt_regs regs;

	if (bpf_probe_read_kernel(&regs, sizeof(regs), at) || !regs_user_mode(&regs))
		return -1;
	ret->number = (__s64)regs.orig_ax;
	ret->args[0] = regs.di;
	ret->args[1] = regs.si;
	ret->args[2] = regs.dx;
	ret->args[3] = regs.r10;
	return 0;
}
#else
static __always_inline int syscall_at(struct syscall *ret, const void *at)
{
	const struct pt_regs___syscall *more = at;

	if (bpf_probe_read_kernel(ret->args, sizeof(ret->args), at))
		return -1;
	ret->number = BPF_CORE_READ(more, syscallno);
	ret->args[0] = BPF_CORE_READ(more, orig_x0); /* x0 itself may be the result already */
	return 0;
}
#endif

/* Of its arguments, which restart_syscall() leaves as they are; not 0. */
static __always_inline __u64 syscall_mark(const struct syscall *s)
{
	__u64 mark = rbpf_mix(rbpf_mix(0, s->args[0]), s->args[1]);

	return rbpf_mix(rbpf_mix(mark, s->args[2]), s->args[3]) | 1;
}

/* Where the current task entered the kernel. */
static __always_inline int current_syscall(struct syscall *ret)
{
	if (has_task_pt_regs())
		return syscall_at(ret, (const void *)bpf_task_pt_regs(bpf_get_current_task_btf()));
	return syscall_at(ret, end_of_stack((const void *)bpf_get_current_task()));
}

/* Only the memory of the current task can be read. */
static __always_inline bool is_current(const struct task_struct *task)
{
	return (__u64)task == bpf_get_current_task();
}

/* The descriptors of @task, *@n of them. Both are 0 of a task that has closed all, as it ends. */
static __always_inline struct file **descriptors(const struct task_struct *task, __u32 *n)
{
	const struct fdtable *fdt;

	if (is_current(task)) {
		*n = current_member(files->fdt->max_fds, files, fdt, max_fds);
		return current_member(files->fdt->fd, files, fdt, fd);
	}
	fdt = BPF_CORE_READ(task, files, fdt);
	*n = BPF_CORE_READ(fdt, max_fds);
	return BPF_CORE_READ(fdt, fd);
}

/* What is behind descriptor @fd of @task; NULL: it has none with this number. */
static __always_inline const struct file *file_behind(const struct task_struct *task, __u64 fd)
{
	struct file **table, *file = NULL;
	__u32 n;

	table = descriptors(task, &n);
	if ((__u32)fd < n)
		bpf_probe_read_kernel(&file, sizeof(file), &table[(__u32)fd]);
	return file;
}

/* What a thread waits for that waits for @file. */
static __always_inline __u32 wait_for_file(const struct file *file)
{
	__u32 mode;

	if (!file)
		return RBPF_WAIT_OTHER;
	mode = BPF_CORE_READ(file, f_inode, i_mode) & S_IFMT;
	if (mode == S_IFSOCK)
		return RBPF_WAIT_NETWORK;
	if (mode == S_IFREG || mode == S_IFDIR || mode == S_IFBLK)
		return RBPF_WAIT_DISK;
	return RBPF_WAIT_PIPE;
}

static __always_inline __u32 wait_for_fd(const struct task_struct *task, struct syscall *s,
					 __u64 fd)
{
	s->file = file_behind(task, fd);
	return wait_for_file(s->file);
}

/* Of its struct pollfd[] the first that is there tells, for mostly there is one. */
static __always_inline __u32 wait_in_poll(const struct task_struct *task, struct syscall *s)
{
	__s32 fd = -1;

	if (!s->args[1])
		return RBPF_WAIT_TIMER;
	if (!is_current(task) || bpf_probe_read_user(&fd, sizeof(fd), (const void *)s->args[0]) ||
	    fd < 0)
		return RBPF_WAIT_OTHER;
	return wait_for_fd(task, s, fd);
}

/*
 * The number of the lowest bit of @bits, not 0, without a branch: the verifier would follow each of
 * 64 to its end.
 */
static __always_inline int lowest_bit(__u64 bits)
{
	__u64 below = (bits & -bits) - 1;

	below -= below >> 1 & 0x5555555555555555;
	below = (below & 0x3333333333333333) + (below >> 2 & 0x3333333333333333);
	below = (below + (below >> 4)) & 0x0f0f0f0f0f0f0f0f;
	return (int)(below * 0x0101010101010101 >> 56);
}

/* The lowest descriptor of the fd_set at @set, in its first 64; or -1. */
static __always_inline int first_of_set(__u64 set)
{
	__u64 bits = 0;

	if (!set || bpf_probe_read_user(&bits, sizeof(bits), (const void *)set) || !bits)
		return -1;
	return lowest_bit(bits);
}

static __always_inline bool is_in_set(__u64 set, __u32 fd)
{
	__u64 bits = 0;

	return set &&
	       !bpf_probe_read_user(&bits, sizeof(bits), (const void *)(set + fd / 64 * 8)) &&
	       bits >> (fd & 63) & 1;
}

/*
 * The lowest descriptor tells, or the highest if that is a socket: the main thread of a Ruby also
 * waits for an eventfd or a pipe of the VM, for signals, which mostly has a low number.
 */
static __always_inline __u32 wait_in_select(const struct task_struct *task, struct syscall *s)
{
	__u32 high = (__u32)s->args[0] - 1, wait;
	const struct file *file;
	int fd;

	if (!s->args[0] || !(s->args[1] | s->args[2] | s->args[3]))
		return RBPF_WAIT_TIMER;
	if (!is_current(task))
		return RBPF_WAIT_OTHER;
	fd = first_of_set(s->args[1]);
	if (fd < 0)
		fd = first_of_set(s->args[2]);
	if (fd < 0)
		fd = first_of_set(s->args[3]);
	/* None below 64, or they cannot be read: it has many, as servers do. */
	wait = fd < 0 ? RBPF_WAIT_NETWORK : wait_for_fd(task, s, fd);
	if ((wait == RBPF_WAIT_NETWORK && s->file) || high >= FD_SETSIZE)
		return wait;
	if (!is_in_set(s->args[1], high) && !is_in_set(s->args[2], high) &&
	    !is_in_set(s->args[3], high))
		return wait;
	file = file_behind(task, high);
	if (wait_for_file(file) != RBPF_WAIT_NETWORK)
		return wait;
	s->file = file;
	return RBPF_WAIT_NETWORK;
}

/* Whether it says that it waits for I/O. */
static __always_inline bool in_iowait(const struct task_struct *task)
{
	return BPF_CORE_READ_BITFIELD_PROBED(task, in_iowait);
}

/*
 * What @task, which is in the middle of @s, waits for, with s->file; of another than the current
 * task less is known.
 */
static __always_inline __u32 wait_in_syscall(const struct task_struct *task, struct syscall *s)
{
	switch (s->number) {
	case SYS_futex:
	case SYS_futex_waitv:
	case SYS_futex_wait:
	case SYS_flock:
	case SYS_fcntl:
	case SYS_semop:
	case SYS_semtimedop:
		return RBPF_WAIT_LOCK;
	case SYS_read:
	case SYS_write:
	case SYS_pread64:
	case SYS_pwrite64:
	case SYS_readv:
	case SYS_writev:
	case SYS_preadv:
	case SYS_pwritev:
	case SYS_preadv2:
	case SYS_pwritev2:
	case SYS_splice:
	case SYS_connect:
	case SYS_accept:
	case SYS_sendto:
	case SYS_recvfrom:
	case SYS_sendmsg:
	case SYS_recvmsg:
	case SYS_accept4:
	case SYS_recvmmsg:
	case SYS_sendmmsg:
		return wait_for_fd(task, s, s->args[0]);
	case SYS_sendfile: /* reads a file, and writes to what is mostly a socket */
		return wait_for_fd(task, s, s->args[in_iowait(task) ? 1 : 0]);
	case SYS_poll:
	case SYS_ppoll:
		return wait_in_poll(task, s);
	case SYS_select:
	case SYS_pselect6:
		return wait_in_select(task, s);
	case SYS_epoll_wait:
	case SYS_epoll_pwait:
	case SYS_epoll_pwait2:
	case SYS_io_uring_enter: /* what it waits for is in its ring; says that it is I/O always */
		return RBPF_WAIT_NETWORK;
	case SYS_nanosleep:
	case SYS_clock_nanosleep:
		return RBPF_WAIT_TIMER;
	case SYS_wait4:
	case SYS_waitid:
		return RBPF_WAIT_CHILD;
	case SYS_fsync:
	case SYS_fdatasync:
		s->file = file_behind(task, s->args[0]);
		return RBPF_WAIT_DISK;
	case SYS_sync:
	case SYS_syncfs:
	case SYS_msync:
		return RBPF_WAIT_DISK;
	}
	/*
	 * open(), stat(), unlink() and others of files wait uninterruptibly, or say that it is I/O.
	 */
	return in_iowait(task) ? RBPF_WAIT_DISK : RBPF_WAIT_OTHER;
}

#endif
