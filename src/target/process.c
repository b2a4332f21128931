/* SPDX-License-Identifier: GPL-2.0-only */
#include "target/process.h"

#include <elf.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>

#include "base/array.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/fds.h"
#include "base/parse.h"
#include "target/remote.h"

#define STATUS_MAX 65536

struct stat_line {
	char state;
	pid_t ppid;
	unsigned int flags;
	uint64_t user_ticks, system_ticks;
	uint64_t start_ticks;
	uint64_t main_top;
};

#define PF_KTHREAD 0x00200000u /* linux/sched.h */

/* The comm in parentheses may hold anything, so the fields are counted from the last ')'. */
static int read_stat(pid_t pid, pid_t tid, struct stat_line *ret)
{
	struct buf text _cleanup_buf_ = BUF_INIT;
	struct stat_line s;
	char name[32] = "stat";
	const char *p;
	int r;

	if (tid)
		snprintf(name, sizeof(name), "task/%d/stat", (int)tid);
	r = remote_read_file(pid, name, 4096, &text);
	if (r)
		return r == -ENOENT ? -ESRCH : r;
	p = strrchr(buf_str(&text), ')');
	if (!p || sscanf(p,
			 ") %c %d %*d %*d %*d %*d %u %*u %*u %*u %*u %" SCNu64 " %" SCNu64
			 " %*d %*d %*d %*d %*d %*d %" SCNu64 " %*u %*d %*u %*u %*u %" SCNu64,
			 &s.state, &s.ppid, &s.flags, &s.user_ticks, &s.system_ticks,
			 &s.start_ticks, &s.main_top) != 7)
		return -ESRCH;
	*ret = s;
	return 0;
}

static char *read_exe(pid_t pid)
{
	char path[PATH_MAX];
	ssize_t n = remote_read_link(pid, "exe", path, sizeof(path) - 1);

	path[n > 0 ? n : 0] = '\0';
	return strdup(path);
}

/*
 * How much of a title of @len, which a process has given itself, names the program: a title may
 * have arguments in it, too. Bundler's begins with the path of the program.
 */
static size_t name_in_title(const char *title, size_t len)
{
	const char *end = title[0] == '/' ? memchr(title, ' ', len) : memmem(title, len, " -", 2);

	return end ? (size_t)(end - title) : len;
}

static bool is_ruby(const char *path, size_t len)
{
	const char *slash = memrchr(path, '/', len);
	const char *name = slash ? slash + 1 : path;

	return (size_t)(path + len - name) >= 4 && !strncmp(name, "ruby", 4);
}

/* What program_len is of @len bytes of arguments, each but the last of which ends in NUL. */
static size_t program_in(const char *text, size_t len)
{
	const size_t first = strnlen(text, len), second = first + 1;

	if (memchr(text, ' ', first))
		return name_in_title(text, first);
	if (second >= len || text[second] == '-' || !is_ruby(text, first))
		return first;
	return second + strnlen(text + second, len - second);
}

/* Returns how many bytes of @text there are, and in *@program_len what struct process has. */
static size_t read_arguments(pid_t pid, char text[static PROCESS_CMDLINE_MAX], size_t *program_len)
{
	ssize_t n = remote_read_first(pid, "cmdline", text, PROCESS_CMDLINE_MAX);
	size_t len = n > 0 ? (size_t)n : 0, i;

	while (len && text[len - 1] == '\0')
		len--;
	*program_len = program_in(text, len);
	for (i = 0; i < len; i++)
		if (text[i] == '\0')
			text[i] = ' ';
	return len;
}

static char *read_cmdline(pid_t pid, size_t *program_len)
{
	char text[PROCESS_CMDLINE_MAX], comm[16];
	size_t len = read_arguments(pid, text, program_len);

	if (!len && !thread_name(pid, pid, comm))
		len = *program_len = (size_t)snprintf(text, sizeof(text), "[%s]", comm);
	return strndup(text, len);
}

uid_t process_uid(pid_t pid)
{
	struct process_context context = PROCESS_CONTEXT_INIT;
	struct buf text _cleanup_buf_ = BUF_INIT;

	if (!remote_read_file(pid, "status", STATUS_MAX, &text))
		process_context_of_status(buf_str(&text), &context);
	return context.uid;
}

/* Of a process that has not ended. Returns 0 or -ESRCH. */
static int read_living(pid_t pid, struct stat_line *ret)
{
	return read_stat(pid, 0, ret) || ret->state == 'Z' || ret->state == 'X' ? -ESRCH : 0;
}

int process_parent(pid_t pid, pid_t *ret)
{
	struct stat_line stat;

	if (read_living(pid, &stat))
		return -ESRCH;
	*ret = stat.ppid;
	return 0;
}

int process_start_ticks(pid_t pid, uint64_t *ret)
{
	struct stat_line stat;

	if (read_living(pid, &stat))
		return -ESRCH;
	*ret = stat.start_ticks;
	return 0;
}

uint64_t process_main_top(pid_t pid)
{
	struct stat_line stat;

	return read_stat(pid, 0, &stat) ? 0 : stat.main_top;
}

int process_times(pid_t pid, struct process_times *ret)
{
	const uint64_t now = clock_ns(CLOCK_BOOTTIME);
	uint64_t tick = NSEC_PER_SEC / (uint64_t)sysconf(_SC_CLK_TCK), started;
	struct stat_line stat;

	if (read_stat(pid, 0, &stat))
		return -ESRCH;
	started = stat.start_ticks * tick;
	ret->age_ns = now > started ? now - started : 0;
	ret->cpu_ns = (stat.user_ticks + stat.system_ticks) * tick;
	return 0;
}

int process_open(pid_t pid, struct process *ret, struct err *err)
{
	struct process p = PROCESS_INIT;
	struct stat_line stat;
	int r;

	p.pid = pid;
	/* The pidfd first: what is read afterwards is of that process, or of none. */
	p.pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	if (p.pidfd >= 0 && !fds_may_keep(p.pidfd)) {
		close(p.pidfd);
		p.pidfd = -1;
		errno = EMFILE;
	}
	/* EINVAL, from 6.13 on ENOENT: a thread that is not its process' first. */
	if (p.pidfd < 0 && (errno == EINVAL || errno == ENOENT))
		return err_set(err, -ESRCH, ERR_TARGET,
			       "%d is the id of a thread, not of a process", (int)pid);
	r = read_stat(pid, 0, &stat);
	if (r == -ETIMEDOUT) {
		process_close(&p);
		return err_set(err, -ESRCH, ERR_TARGET, "pid %d cannot be read: " REMOTE_HANGS,
			       (int)pid);
	}
	if (r || stat.state == 'Z' || stat.state == 'X') {
		process_close(&p);
		return err_set(err, -ESRCH, ERR_TARGET, "no process with pid %d", (int)pid);
	}
	if (stat.flags & PF_KTHREAD) {
		process_close(&p);
		return err_set(err, -ESRCH, ERR_TARGET, "pid %d is a kernel thread", (int)pid);
	}
	p.ppid = stat.ppid;
	p.start_ticks = stat.start_ticks;
	p.main_top = stat.main_top;
	p.exe = read_exe(pid);
	p.cmdline = read_cmdline(pid, &p.program_len);
	if (!p.exe || !p.cmdline || process_context_read(pid, &p.context)) {
		process_close(&p);
		return err_oom(err);
	}
	*ret = p;
	return 0;
}

void process_close(struct process *p)
{
	if (p->pidfd >= 0)
		close(p->pidfd);
	free(p->exe);
	free(p->cmdline);
	process_context_deinit(&p->context);
	*p = (struct process)PROCESS_INIT;
}

int process_read_title(struct process *p, bool *changed)
{
	char text[PROCESS_CMDLINE_MAX], *cmdline;
	size_t program_len, len = read_arguments(p->pid, text, &program_len);

	*changed = false;
	if (!len || !process_alive(p))
		return 0;
	cmdline = strndup(text, len);
	if (!cmdline)
		return -ENOMEM;
	*changed = strcmp(cmdline, p->cmdline) != 0;
	free(*changed ? p->cmdline : cmdline);
	if (*changed) {
		p->cmdline = cmdline;
		p->program_len = program_len;
	}
	return 0;
}

bool process_alive(const struct process *p)
{
	struct stat_line stat;

	return !read_stat(p->pid, 0, &stat) && stat.start_ticks == p->start_ticks &&
	       stat.state != 'Z' && stat.state != 'X';
}

bool process_ended(const struct process *p)
{
	struct pollfd pfd = { .fd = p->pidfd, .events = POLLIN };
	struct stat_line stat;
	int r;

	if (p->pidfd >= 0)
		return poll(&pfd, 1, 0) == 1;
	r = read_stat(p->pid, 0, &stat);
	/* One that cannot be read, as of a user who keeps us waiting, may well live. */
	if (r)
		return r == -ESRCH;
	return stat.state == 'Z' || stat.state == 'X' ||
	       (p->start_ticks && stat.start_ticks != p->start_ticks);
}

static int compare_pids(const void *a, const void *b)
{
	pid_t x = *(const pid_t *)a, y = *(const pid_t *)b;

	return (x > y) - (x < y);
}

/* The entries of a directory of /proc that are numbers. */
static int list_numbers(const char *path, pid_t **ret, size_t *n)
{
	_cleanup_closedir_ DIR *dir = opendir(path);
	_cleanup_free_ pid_t *v = NULL;
	size_t count = 0, cap = 0;
	struct dirent *d;
	uint64_t id;

	if (!dir)
		return errno == ENOENT ? -ESRCH : -errno;
	while ((d = readdir(dir))) {
		if (d->d_name[0] < '0' || d->d_name[0] > '9')
			continue;
		if (parse_u64(d->d_name, "pid", 1, INT_MAX, &id, NULL))
			continue;
		if (array_reserve(v, cap, count + 1))
			return -ENOMEM;
		v[count++] = (pid_t)id;
	}
	if (!count)
		return -ESRCH;
	qsort(v, count, sizeof(*v), compare_pids);
	*ret = take_ptr(v);
	*n = count;
	return 0;
}

int process_threads(pid_t pid, pid_t **ret, size_t *n)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	return list_numbers(path, ret, n);
}

int process_list(pid_t **ret, size_t *n, struct err *err)
{
	int r = list_numbers("/proc", ret, n);

	return r ? err_set(err, r, ERR_ENV, "cannot list /proc: %s", strerror(-r)) : 0;
}

int process_linker_base(pid_t pid, uint64_t *ret)
{
	Elf64_auxv_t auxv[64];
	ssize_t n = remote_read_first(pid, "auxv", (char *)auxv, sizeof(auxv));

	for (size_t i = 0; n > 0 && i < (size_t)n / sizeof(auxv[0]); i++)
		if (auxv[i].a_type == AT_BASE && auxv[i].a_un.a_val) {
			*ret = auxv[i].a_un.a_val;
			return 0;
		}
	return -ENOENT;
}

int thread_cpu_ns(pid_t tid, uint64_t *ret)
{
	struct buf text _cleanup_buf_ = BUF_INIT;

	if (remote_read_file(tid, "schedstat", 256, &text) ||
	    sscanf(buf_str(&text), "%" SCNu64, ret) != 1)
		return -ESRCH;
	return 0;
}

int thread_name(pid_t pid, pid_t tid, char out[16])
{
	struct buf text _cleanup_buf_ = BUF_INIT;
	char name[32];
	int r;

	snprintf(name, sizeof(name), "task/%d/comm", (int)tid);
	r = remote_read_file(pid, name, 64, &text);
	if (r)
		return r;
	/* The kernel ends it with a newline. What a program calls a thread may have others. */
	if (text.len && text.data[text.len - 1] == '\n')
		buf_truncate(&text, text.len - 1);
	snprintf(out, 16, "%s", buf_str(&text));
	return 0;
}

char thread_state(pid_t pid, pid_t tid)
{
	struct stat_line stat;

	return read_stat(pid, tid, &stat) ? 0 : stat.state;
}

/* The number behind @key of /proc/PID/status; 0 if it is not there. */
static uint64_t status_number(const char *status, const char *key)
{
	const char *line = strstr(status, key);
	uint64_t n;

	return line && sscanf(line + strlen(key), "%" SCNu64, &n) == 1 ? n : 0;
}

int thread_look(pid_t pid, pid_t tid, struct thread_moment *ret)
{
	struct buf text _cleanup_buf_ = BUF_INIT;
	const char *state;
	char name[32];

	snprintf(name, sizeof(name), "task/%d/status", (int)tid);
	if (remote_read_file(pid, name, STATUS_MAX, &text))
		return -ESRCH;
	/* The name of the thread comes first; it has no newline that is not escaped. */
	state = strstr(buf_str(&text), "\nState:\t");
	if (!state)
		return -ESRCH;
	*ret = (struct thread_moment) {
		.state = state[strlen("\nState:\t")],
		.switches = status_number(buf_str(&text), "\nvoluntary_ctxt_switches:") +
			    status_number(buf_str(&text), "\nnonvoluntary_ctxt_switches:"),
	};
	return 0;
}

int thread_syscall(pid_t pid, pid_t tid, struct thread_syscall *ret)
{
	struct buf text _cleanup_buf_ = BUF_INIT;
	struct thread_syscall s = { 0 };
	char name[32];

	snprintf(name, sizeof(name), "task/%d/syscall", (int)tid);
	/* "running", or the number and its arguments; -1: it waits, but in no system call. */
	if (remote_read_file(pid, name, 512, &text) ||
	    sscanf(buf_str(&text),
		   "%" SCNd64 " %" SCNx64 " %" SCNx64 " %" SCNx64 " %" SCNx64 " %" SCNx64
		   " %" SCNx64,
		   &s.number, &s.args[0], &s.args[1], &s.args[2], &s.args[3], &s.args[4],
		   &s.args[5]) != 7)
		return -ESRCH;
	*ret = s;
	return 0;
}
