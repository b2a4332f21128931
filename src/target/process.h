/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A process: its identity and what /proc says of it. It knows nothing of Ruby or ELF.
 *
 * A pid alone names nothing for long: a process is pid and start time, and a pidfd that becomes
 * readable when it ends. Not thread-safe.
 */
#ifndef RBPF_TARGET_PROCESS_H
#define RBPF_TARGET_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "target/container.h"

struct err;

#define PROCESS_CMDLINE_MAX 4096

struct process {
	pid_t pid;
	pid_t ppid;
	uint64_t start_ticks; /* /proc/PID/stat field 22; 0: it was not read */
	uint64_t main_top;    /* process_main_top(): it tells one program of a process from the
			       * next, as addresses are drawn at random; 0: not known */
	int pidfd;	      /* -1 where there are too many open files (fds.h); owned */
	char *exe;	      /* as the target sees it, "" if unreadable; owned */
	char *cmdline;	      /* arguments joined by spaces, or [comm]; raw bytes, the first
			       * PROCESS_CMDLINE_MAX; owned */
	size_t program_len;   /* bytes of it that say which program it is: argv[0], or the part of
			       * a title in its place that has no arguments; and the script, if
			       * argv[0] is Ruby and argv[1] is no option */
	struct process_context context; /* control group, container, …, as far as readable; owned */
};

#define PROCESS_INIT                                                                               \
	{                                                                                          \
		.pidfd = -1, .context = PROCESS_CONTEXT_INIT                                       \
	}

/*
 * Open process @pid. A zombie or a kernel thread is no process here (-ESRCH).
 * Returns 0, -ESRCH or -ENOMEM.
 */
int process_open(pid_t pid, struct process *ret, struct err *err);
void process_close(struct process *p);

/*
 * Read p->cmdline again, which the process may have changed; *@changed says whether it has. It
 * stays where there is nothing to read, as of a process that ends. Returns 0 or -ENOMEM.
 */
int process_read_title(struct process *p, bool *changed);

/* The parent of @pid, as it is now, in *@ret. Returns 0 or -ESRCH: it is gone, or a zombie. */
int process_parent(pid_t pid, pid_t *ret);

/*
 * When @pid began, as in struct process: the cheapest way to see whether it is still the same.
 * Returns as process_parent().
 */
int process_start_ticks(pid_t pid, uint64_t *ret);

/*
 * Where its dynamic linker is mapped (AT_BASE). Returns 0, or -ENOENT if that cannot be read or it
 * has none.
 */
int process_linker_base(pid_t pid, uint64_t *ret);

/* The real user id of @pid; -1 if that cannot be read. */
uid_t process_uid(pid_t pid);

struct process_times {
	uint64_t age_ns; /* since it was started */
	uint64_t cpu_ns; /* of all its threads, also those that have ended */
};

/* Returns 0 or -ESRCH. */
int process_times(pid_t pid, struct process_times *ret);

/*
 * Where the stack of @pid's main thread ended when the program began: the arguments follow
 * (startstack in /proc/PID/stat). 0 if that is not known.
 */
uint64_t process_main_top(pid_t pid);

/* Whether it is still the same process, and not a zombie. */
bool process_alive(const struct process *p);

/*
 * Whether it has ended, as its pidfd tells without reading /proc: a zombie has. Without a pidfd one
 * that cannot be read has not.
 */
bool process_ended(const struct process *p);

/* The tids of @pid, ascending. *@ret is malloc'ed, owned by the caller. -ESRCH if it is gone. */
int process_threads(pid_t pid, pid_t **ret, size_t *n);

/* All pids of the system, ascending; *@ret is malloc'ed. */
int process_list(pid_t **ret, size_t *n, struct err *err);

/*
 * CPU time of one thread so far in ns, by the scheduler's account, which for a running thread may
 * be some ms old. -ESRCH if it is gone, or if the kernel has no such account.
 */
int thread_cpu_ns(pid_t tid, uint64_t *ret);

/* The name (comm) of a thread, into @out of 16 bytes. */
int thread_name(pid_t pid, pid_t tid, char out[16]);

/* The state letter of /proc/PID/task/TID/stat ('R', 'S', 'D', …), or 0 if gone. */
char thread_state(pid_t pid, pid_t tid);

/*
 * A thread at one moment. Between two of them that are equal and say that it does not run, it has
 * not run.
 */
struct thread_moment {
	char state;	   /* as thread_state() */
	uint64_t switches; /* how often it has left a CPU */
};

/* Returns 0 or -ESRCH: it is gone. */
int thread_look(pid_t pid, pid_t tid, struct thread_moment *ret);

/* The system call that a thread is in. */
struct thread_syscall {
	int64_t number; /* of this machine */
	uint64_t args[6];
};

/* Returns 0, or -ESRCH: it is in none or runs, it is gone, or the kernel does not tell. */
int thread_syscall(pid_t pid, pid_t tid, struct thread_syscall *ret);

#endif
