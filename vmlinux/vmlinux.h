/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The kernel's types that the BPF side reads, kept by hand: only the members that are used.
 * preserve_access_index makes each access a CO-RE relocation, so neither the order nor the
 * omissions matter; names and types do. For x86_64 and arm64.
 *
 * What the verifier addresses by constant offset (contexts, UAPI enums) is UAPI and has its true
 * layout.
 */
#ifndef RBPF_VMLINUX_H
#define RBPF_VMLINUX_H

typedef signed char __s8;
typedef unsigned char __u8;
typedef short __s16;
typedef unsigned short __u16;
typedef int __s32;
typedef unsigned int __u32;
typedef long long __s64;
typedef unsigned long long __u64;
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u32 __wsum;
typedef _Bool bool;

#define true 1
#define false 0
#define NULL ((void *)0)

/* UAPI: linux/bpf.h */
enum bpf_map_type {
	BPF_MAP_TYPE_HASH = 1,
	BPF_MAP_TYPE_ARRAY = 2,
	BPF_MAP_TYPE_PERCPU_ARRAY = 6,
	BPF_MAP_TYPE_LRU_HASH = 9,
	BPF_MAP_TYPE_RINGBUF = 27,
};

enum {
	BPF_ANY = 0,
	BPF_NOEXIST = 1,
};

enum {
	BPF_F_MMAPABLE = 1024,
};

enum {
	BPF_RB_NO_WAKEUP = 1,
	BPF_RB_FORCE_WAKEUP = 2,
};

enum {
	BPF_RB_AVAIL_DATA = 0,
	BPF_RB_RING_SIZE = 1,
};

/* Of what the kernel defines, those that are asked for before they are used. */
enum bpf_func_id {
	BPF_FUNC_get_current_task_btf = 158,
	BPF_FUNC_task_pt_regs = 175,
};

/* linux/sched.h; the same since 2.6 */
#define PF_EXITING	     0x00000004
#define PF_IO_WORKER	     0x00000010 /* of io_uring; since 5.12 */
#define PF_FROZEN	     0x00010000 /* up to 6.0 */
#define PF_KTHREAD	     0x00200000

/* linux/sched/jobctl.h; the same since 5.2 */
#define JOBCTL_TRAP_FREEZE   (1ul << 23)

/* linux/sched.h: bits of task_struct.__state; the same since 4.14. 0: it could run */
#define TASK_UNINTERRUPTIBLE 0x0002
#define TASK_STOPPED	     0x0004
#define TASK_TRACED	     0x0008
#define TASK_DEAD	     0x0080
#define TASK_FROZEN	     0x8000 /* since 6.1 */

/* UAPI: linux/sched.h: policies of real time */
#define SCHED_FIFO	     1
#define SCHED_RR	     2
#define SCHED_DEADLINE	     6

/* UAPI: linux/stat.h */
#define S_IFMT		     0170000
#define S_IFSOCK	     0140000
#define S_IFREG		     0100000
#define S_IFBLK		     0060000
#define S_IFDIR		     0040000

/* asm/thread_info.h, asm/memory.h of 5.10 to 5.14, without KASAN and with pages of 4 KiB. */
#define KERNEL_STACK_SIZE    16384

/* UAPI: linux/bpf_perf_event.h and the registers it embeds. */
#if defined(__TARGET_ARCH_x86)
struct pt_regs {
	unsigned long r15, r14, r13, r12, bp, bx, r11, r10, r9, r8, ax, cx, dx, si, di;
	unsigned long orig_ax, ip, cs, flags, sp, ss;
};
typedef struct pt_regs bpf_user_pt_regs_t;
#define regs_user_mode(regs) (((regs)->cs & 3) == 3)
#define regs_ip(regs)	     ((regs)->ip)
#define regs_sp(regs)	     ((regs)->sp)
#elif defined(__TARGET_ARCH_arm64)
struct user_pt_regs {
	__u64 regs[31];
	__u64 sp, pc, pstate;
};
typedef struct user_pt_regs bpf_user_pt_regs_t;
#define regs_user_mode(regs) (((regs)->pstate & 0xf) == 0)
#define regs_ip(regs)	     ((regs)->pc)
#define regs_sp(regs)	     ((regs)->sp)
#else
#error "unsupported architecture"
#endif

struct bpf_perf_event_data {
	bpf_user_pt_regs_t regs;
	__u64 sample_period;
	__u64 addr;
};

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct rq {
	__u64 clock; /* ns, of the scheduler: the same on all CPUs, as of when it looked last */
	__u64 clock_task; /* less what interrupts and a hypervisor took of this CPU */
};

struct cfs_rq {
	struct rq *rq;	    /* with CONFIG_FAIR_GROUP_SCHED */
	int throttle_count; /* it, and what it is in; with CONFIG_CFS_BANDWIDTH */
};

struct sched_entity {
	__u64 sum_exec_runtime;	     /* up to exec_start */
	__u64 exec_start;	     /* rq.clock_task when it was last added up */
	__u64 prev_sum_exec_runtime; /* when it came to its CPU; not of real-time tasks */
	struct cfs_rq *cfs_rq;	     /* with CONFIG_FAIR_GROUP_SCHED */
};

/* With CONFIG_SCHED_INFO; times are rq.clock */
struct sched_info {
	__u64 last_arrival; /* at its CPU */
	__u64 last_queued;  /* 0: it is not queued */
};

struct atomic_t {
	int counter;
};
typedef struct atomic_t atomic_t;

struct signal_struct {
	atomic_t live;
};

#if defined(__TARGET_ARCH_x86)
struct thread_struct {
	unsigned long fsbase;
};
#else
struct thread_struct {
	struct {
		unsigned long tp_value;
	} uw;
};
#endif

struct mm_struct;

struct fdtable {
	unsigned int max_fds;
	struct file **fd;
};

struct files_struct {
	struct fdtable *fdt;
};

struct task_struct {
	unsigned int flags;
	void *stack;
	int on_cpu;	      /* up to 7.1 */
	unsigned int __state; /* since 5.14; before, a long named state */
	struct mm_struct *mm;
	struct task_struct *group_leader;
	__u64 start_time;
	int pid;
	int tgid;
	int exit_code;
	char comm[16];
	struct sched_entity se;
	struct sched_info sched_info;
	unsigned int policy;
	unsigned long jobctl;
	unsigned long nvcsw, nivcsw;
	struct signal_struct *signal;
	struct files_struct *files;
	unsigned int in_execve : 1;
	unsigned int in_iowait : 1;
	unsigned int frozen : 1;
	_Bool throttled; /* since 6.18, with CONFIG_CFS_BANDWIDTH */
	struct thread_struct thread;
};

struct super_block {
	__u32 s_dev;
};

struct inode {
	__u16 i_mode;
	unsigned long i_ino;
	struct super_block *i_sb;
	__u32 i_generation;
};

struct qstr {
	__u32 len;
	const unsigned char *name;
};

struct dentry {
	struct qstr d_name;
};

struct path {
	struct dentry *dentry;
};

struct file {
	struct inode *f_inode;
	struct path f_path;
	void *private_data; /* of a socket: struct socket */
};

struct in6_addr {
	__u8 bytes[16];
};

struct sock_common {
	__be32 skc_daddr;
	__be16 skc_dport;
	__u16 skc_num; /* its own port */
	unsigned short skc_family;
	struct in6_addr skc_v6_daddr;
};

struct sock {
	struct sock_common __sk_common;
};

struct socket {
	struct sock *sk;
};

struct sockaddr_un {
	char sun_path[108];
};

struct unix_address {
	int len; /* with sun_family */
	struct sockaddr_un name[];
};

struct unix_sock {
	struct unix_address *addr; /* NULL: it has no name */
	struct sock *peer;
};

struct mm_struct {
	struct file *exe_file;
	long unsigned int start_stack;
};

struct linux_binprm {
	struct file *file;
};

struct seq_file;

struct bpf_iter_meta {
	struct seq_file *seq;
	__u64 session_id;
	__u64 seq_num;
};

struct bpf_iter__task {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
};

/* Before 5.14. */
struct task_struct___old {
	long state;
};

/* What arm64's pt_regs have behind those of user mode. libbpf has a pt_regs___arm64 of its own. */
#if defined(__TARGET_ARCH_arm64)
struct pt_regs___syscall {
	__u64 orig_x0;
	__s32 syscallno;
};
#endif

#pragma clang attribute pop

#endif
