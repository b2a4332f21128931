/* SPDX-License-Identifier: GPL-2.0-only */
/* The registers that a thread has in user mode, wherever the kernel keeps them. */
#ifndef RBPF_REGISTERS_BPF_H
#define RBPF_REGISTERS_BPF_H

#if defined(__TARGET_ARCH_x86)
static __always_inline void take_registers(struct rbpf_regs *ret, const struct pt_regs *regs)
{
	ret->pc = regs->ip;
	ret->sp = regs->sp;
	ret->fp = regs->bp;
	ret->by_dwarf[0] = regs->ax;
	ret->by_dwarf[1] = regs->dx;
	ret->by_dwarf[2] = regs->cx;
	ret->by_dwarf[3] = regs->bx;
	ret->by_dwarf[4] = regs->si;
	ret->by_dwarf[5] = regs->di;
	ret->by_dwarf[6] = regs->bp;
	ret->by_dwarf[7] = regs->sp;
	ret->by_dwarf[8] = regs->r8;
	ret->by_dwarf[9] = regs->r9;
	ret->by_dwarf[10] = regs->r10;
	ret->by_dwarf[11] = regs->r11;
	ret->by_dwarf[12] = regs->r12;
	ret->by_dwarf[13] = regs->r13;
	ret->by_dwarf[14] = regs->r14;
	ret->by_dwarf[15] = regs->r15;
}
#else
static __always_inline void take_registers(struct rbpf_regs *ret, const struct user_pt_regs *regs)
{
	int i;

	ret->pc = regs->pc;
	ret->sp = regs->sp;
	ret->fp = regs->regs[29];
	ret->lr = regs->regs[30];
	/* Unrolled, because the verifier allows only constant offsets into a context. */
#pragma unroll
	for (i = 0; i < 31; i++)
		ret->by_dwarf[i] = regs->regs[i];
	ret->by_dwarf[31] = regs->sp;
}
#endif

/*
 * A member of the current task. Since 5.11 it can be read, with what it points to, without calling
 * a helper for each pointer: @direct, as in C. Before: the names on the way there, as
 * BPF_CORE_READ() has them.
 */
#define current_member(direct, ...)                                                                \
	(has_current_btf()                                                                         \
		 ? bpf_get_current_task_btf()->direct                                              \
		 : BPF_CORE_READ((struct task_struct *)bpf_get_current_task(), ##__VA_ARGS__))
#define has_current_btf()                                                                          \
	bpf_core_enum_value_exists(enum bpf_func_id, BPF_FUNC_get_current_task_btf)

/* The kernel's struct pt_regs, of which arm64's bpf_user_pt_regs_t is the beginning. */
struct pt_regs___kernel {
} __attribute__((preserve_access_index));

/* Before bpf_task_pt_regs() (5.15): the registers are at the end of the task's kernel stack. */
static __always_inline const void *end_of_stack(const struct task_struct *task)
{
	return BPF_CORE_READ(task, stack) + KERNEL_STACK_SIZE -
	       bpf_core_type_size(struct pt_regs___kernel);
}

#define has_task_pt_regs() bpf_core_enum_value_exists(enum bpf_func_id, BPF_FUNC_task_pt_regs)

/*
 * Read the registers that the kernel saved at @at when a thread entered it. @room is a buffer for
 * them: they would take up half of the BPF stack. Returns 0, or -1 if the thread did not come from
 * user mode or they cannot be read.
 */
static __always_inline int entry_registers(struct rbpf_regs *ret, const void *at,
					   bpf_user_pt_regs_t *room)
{
	if (bpf_probe_read_kernel(room, sizeof(*room), at))
		return -1;
	if (!regs_user_mode(room))
		return -1;
	take_registers(ret, room);
	return 0;
}

#endif
