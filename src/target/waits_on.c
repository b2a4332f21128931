/* SPDX-License-Identifier: GPL-2.0-only */
#include "target/waits_on.h"

#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/select.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/array.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/utf8.h"
#include "target/memory.h"
#include "target/process.h"
#include "target/remote.h"
#include "target/socket_peer.h"

/* How many descriptors of a poll() are looked at. */
#define MAX_POLLED    64

/* What /proc says of a socket, before its inode. */
#define SOCKET_PREFIX "socket:["

/* Those whose first argument is the descriptor that they wait for. */
static const long of_descriptor[] = {
	SYS_accept,	SYS_accept4, SYS_connect,  SYS_epoll_pwait, SYS_fcntl,
	SYS_fdatasync,	SYS_flock,   SYS_fsync,	   SYS_pread64,	    SYS_pwrite64,
	SYS_read,	SYS_readv,   SYS_recvfrom, SYS_recvmmsg,    SYS_recvmsg,
	SYS_sendmsg,	SYS_sendto,  SYS_write,	   SYS_writev,
#ifdef SYS_epoll_wait
	SYS_epoll_wait,
#endif
};

static bool is_call(int64_t number, const long *list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (list[i] == number)
			return true;
	return false;
}

/* The first descriptor of the struct pollfd[@n] at @fds. A negative one is not waited for. */
static void take_polled(const struct memory *mem, uint64_t fds, uint64_t n, struct waits_on *ret)
{
	struct pollfd polled[MAX_POLLED];
	size_t i, look = n < MAX_POLLED ? (size_t)n : MAX_POLLED, found = 0;

	if (!look || memory_read(mem, fds, polled, look * sizeof(*polled)))
		return;
	for (i = 0; i < look; i++) {
		if (polled[i].fd < 0)
			continue;
		if (!found++)
			ret->fd = polled[i].fd;
	}
	ret->n_more = found ? found - 1 + ((size_t)n - look) : 0;
}

/* The lowest descriptor of the three sets at @sets, of which only those below @n count. */
static void take_selected(const struct memory *mem, uint64_t n, const uint64_t sets[3],
			  struct waits_on *ret)
{
	const size_t bits = n < FD_SETSIZE ? (size_t)n : FD_SETSIZE;
	uint64_t words[FD_SETSIZE / 64];
	size_t set, fd, found = 0;

	for (set = 0; set < 3; set++) {
		if (!sets[set] || memory_read(mem, sets[set], words, (bits + 63) / 64 * 8))
			continue;
		for (fd = 0; fd < bits; fd++) {
			if (!(words[fd / 64] >> fd % 64 & 1))
				continue;
			if (!found++)
				ret->fd = ret->highest = (int)fd;
			if ((int)fd > ret->highest)
				ret->highest = (int)fd;
		}
	}
	ret->n_more = found ? found - 1 : 0;
}

/* @id as waitpid(2) has it. */
static pid_t child_of(int64_t id)
{
	return id > 0 && id <= INT_MAX ? (pid_t)id : -1;
}

static void take_peer(pid_t pid, struct waits_on *ret)
{
	struct rbpf_waits_on peer;
	uint64_t inode;

	if (sscanf(ret->file, SOCKET_PREFIX "%" SCNu64, &inode) == 1 &&
	    !socket_peer_read(pid, inode, &peer))
		ret->peer = peer;
}

static ssize_t read_descriptor(pid_t pid, int fd, char path[PATH_MAX])
{
	char name[32];

	snprintf(name, sizeof(name), "fd/%d", fd);
	return remote_read_link(pid, name, path, PATH_MAX);
}

static bool is_socket(const char *path, ssize_t n)
{
	return n > (ssize_t)strlen(SOCKET_PREFIX) &&
	       !memcmp(path, SOCKET_PREFIX, strlen(SOCKET_PREFIX));
}

/*
 * Of those of a select() it is the lowest one, or the highest if that is a socket: the main thread
 * also waits for an eventfd or a pipe of the VM, for signals, which mostly has a low number.
 */
static void take_file(pid_t pid, struct waits_on *ret)
{
	_cleanup_buf_ struct buf clean = BUF_INIT;
	char path[PATH_MAX], highest[PATH_MAX];
	ssize_t n = read_descriptor(pid, ret->fd, path), n_highest;

	if (ret->highest > ret->fd && !is_socket(path, n)) {
		n_highest = read_descriptor(pid, ret->highest, highest);
		if (is_socket(highest, n_highest)) {
			ret->fd = ret->highest;
			n = n_highest;
			memcpy(path, highest, (size_t)n);
		}
	}
	if (n <= 0)
		return;
	utf8_sanitise(&clean, path, (size_t)n);
	snprintf(ret->file, sizeof(ret->file), "%.*s",
		 (int)utf8_prefix(buf_str(&clean), WAITS_ON_FILE_CHARS), buf_str(&clean));
	if (waits_on_socket(ret))
		take_peer(pid, ret);
}

struct waits_on waits_on_read(const struct memory *mem, const struct thread_syscall *call)
{
	struct waits_on ret = WAITS_ON_NOTHING;
	const uint64_t *args = call->args;

	if (is_call(call->number, of_descriptor, ARRAY_SIZE(of_descriptor)))
		ret.fd = (int)args[0];
	else if (call->number == SYS_ppoll)
		take_polled(mem, args[0], (uint32_t)args[1], &ret);
	else if (call->number == SYS_pselect6)
		take_selected(mem, (uint32_t)args[0], &args[1], &ret);
#ifdef SYS_poll
	else if (call->number == SYS_poll)
		take_polled(mem, args[0], (uint32_t)args[1], &ret);
#endif
#ifdef SYS_select
	else if (call->number == SYS_select)
		take_selected(mem, (uint32_t)args[0], &args[1], &ret);
#endif
	else if (call->number == SYS_wait4)
		ret.child = child_of((int32_t)args[0]);
	else if (call->number == SYS_waitid)
		ret.child = args[0] == P_PID ? child_of((int32_t)args[1]) : -1;
	if (ret.fd >= 0)
		take_file(mem->pid, &ret);
	return ret;
}

bool waits_on_is_polled(const struct thread_syscall *call)
{
	static const long of_many[] = {
		SYS_ppoll,
		SYS_pselect6,
#ifdef SYS_poll
		SYS_poll,
#endif
#ifdef SYS_select
		SYS_select,
#endif
	};

	return is_call(call->number, of_many, ARRAY_SIZE(of_many));
}

bool waits_on_socket(const struct waits_on *w)
{
	return !strncmp(w->file, SOCKET_PREFIX, strlen(SOCKET_PREFIX));
}
