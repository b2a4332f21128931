/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * How a filter of system calls is written (seccomp(2)): an array of these statements, which begins
 * with SECCOMP_BEGIN, has a statement for each call that is not to end the process, and closes with
 * SECCOMP_END. sandbox_filter() installs it. Only for the files that have such a filter.
 *
 * A filter sees numbers: it cannot follow a pointer, so no name of a file and no structure. Filters
 * add up and are inherited: of several, the strictest decides about a call.
 */
#ifndef RBPF_WORKER_SECCOMP_H
#define RBPF_WORKER_SECCOMP_H

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/syscall.h>

#if defined(__x86_64__)
#define HOST_AUDIT_ARCH AUDIT_ARCH_X86_64
#elif defined(__aarch64__)
#define HOST_AUDIT_ARCH AUDIT_ARCH_AARCH64
#else
#error "unsupported architecture"
#endif

#define FIELD(member)  BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, member))
/* The low half of argument @i; both architectures are little-endian. */
#define ARGUMENT(i)    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[i]))
#define RETURN(action) BPF_STMT(BPF_RET | BPF_K, (action))
#define IF_EQUAL(value, then, otherwise)                                                           \
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (value), then, otherwise)
#define IF_BITS(bits, then, otherwise) BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, (bits), then, otherwise)

#define FAIL_WITH(call, code)	       IF_EQUAL(__NR_##call, 0, 1), RETURN(SECCOMP_RET_ERRNO | (code))
#define REFUSE(call)		       FAIL_WITH(call, EACCES)
#define ALLOW(call)		       IF_EQUAL(__NR_##call, 0, 1), RETURN(SECCOMP_RET_ALLOW)
/* With one of @bits set in argument @i. */
#define ALLOW_WITH(call, i, bits)                                                                  \
	IF_EQUAL(__NR_##call, 0, 4), ARGUMENT(i), IF_BITS(bits, 0, 1), RETURN(SECCOMP_RET_ALLOW),  \
		RETURN(SECCOMP_RET_KILL_PROCESS)
/* With none of @bits set in argument @i. */
#define ALLOW_WITHOUT(call, i, bits)                                                               \
	IF_EQUAL(__NR_##call, 0, 4), ARGUMENT(i), IF_BITS(bits, 1, 0), RETURN(SECCOMP_RET_ALLOW),  \
		RETURN(SECCOMP_RET_KILL_PROCESS)
/* With @value as argument @i. */
#define ALLOW_EQUAL(call, i, value)                                                                \
	IF_EQUAL(__NR_##call, 0, 4), ARGUMENT(i), IF_EQUAL(value, 0, 1),                           \
		RETURN(SECCOMP_RET_ALLOW), RETURN(SECCOMP_RET_KILL_PROCESS)

/* Numbers are those of this architecture; x32 has others. */
#define SECCOMP_BEGIN                                                                              \
	FIELD(arch), IF_EQUAL(HOST_AUDIT_ARCH, 1, 0), RETURN(SECCOMP_RET_KILL_PROCESS), FIELD(nr)
#define SECCOMP_END RETURN(SECCOMP_RET_KILL_PROCESS)

/* What allocating memory and ending take: memory from the heap, or anonymous and not executable. */
#define ALLOW_MEMORY                                                                               \
	ALLOW(brk), ALLOW(munmap), ALLOW(mremap), ALLOW(madvise),                                  \
		ALLOW_WITHOUT(mprotect, 2, PROT_EXEC), IF_EQUAL(__NR_mmap, 0, 6), ARGUMENT(3),     \
		IF_BITS(MAP_ANONYMOUS, 0, 3), ARGUMENT(2), IF_BITS(PROT_EXEC, 1, 0),               \
		RETURN(SECCOMP_RET_ALLOW), RETURN(SECCOMP_RET_KILL_PROCESS)

#endif
