/* SPDX-License-Identifier: GPL-2.0-only */
#include "target/remote.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/stop.h"
#include "base/utf8.h"
#include "target/debts.h"
#include "target/memory.h"
#include "target/memory_files.h"
#include "target/proxy.h"
#include "target/users.h"

#define STATUS_PART   1024u /* of /proc/PID/status: the user comes before the groups */
#define USERS_CACHED  64u
#define CACHED_FOR_NS 1000000000ull

struct cached_user {
	pid_t pid;
	uid_t uid;
	uint64_t at_ns;
};

static struct remote {
	struct proxy proxy;
	/* Says who a process is that is being waited for, or was. */
	struct proxy clerk;
	struct debts debts;
	struct remote_losses losses;
	struct cached_user users[USERS_CACHED];
	struct memory_files files;
	bool direct;
} remote;

/* ---- who it is ---- */

static uint64_t no_patience(void *arg, pid_t pid)
{
	(void)arg;
	(void)pid;
	return DEBTS_LEAST_NS;
}

/* The beginning of a file of /proc that takes no lock of the process; "" if it cannot be read. */
static void read_fact(pid_t pid, const char *name, char *text, size_t size)
{
	struct proxy_request *req = proxy_prepare(&remote.clerk);
	uint64_t slept;
	pid_t left;

	text[0] = '\0';
	if (!req)
		return;
	req->op = PROXY_OPEN;
	req->pid = pid;
	req->len = (uint32_t)size - 1;
	snprintf(req->name, sizeof(req->name), "%s", name);
	if (!proxy_run(&remote.clerk, no_patience, NULL, &slept, &left)) {
		if (req->result < 0)
			return;
		memcpy(text, req->bytes, (size_t)req->result);
		text[req->result] = '\0';
	} else if (left) {
		debts_leave(&remote.debts, left, (uid_t)-1);
	}
}

/*
 * The user who answers for @pid, as users_account() has it: in a user namespace, of what its root
 * is mapped to. -1: unknown.
 */
static uid_t find_user(pid_t pid)
{
	unsigned int inside, outside, count, uid;
	char text[STATUS_PART];
	const char *line;

	read_fact(pid, "uid_map", text, sizeof(text));
	if (sscanf(text, "%u %u %u", &inside, &outside, &count) == 3 && count != UINT32_MAX) {
		uid = outside;
	} else {
		read_fact(pid, "status", text, sizeof(text));
		line = strstr(text, "\nUid:");
		if (!line || sscanf(line, " Uid: %u", &uid) != 1)
			return (uid_t)-1;
	}
	return users_account(uid);
}

static uid_t user_of(pid_t pid)
{
	const uint64_t now = clock_ns(CLOCK_MONOTONIC);
	struct cached_user *u = &remote.users[(unsigned int)pid % USERS_CACHED];

	if (u->pid != pid || now - u->at_ns > CACHED_FOR_NS)
		*u = (struct cached_user) { .pid = pid, .uid = find_user(pid), .at_ns = now };
	return u->uid;
}

static uint64_t patience(void *arg, pid_t pid)
{
	(void)arg;
	return debts_patience(&remote.debts, user_of(pid), clock_ns(CLOCK_MONOTONIC));
}

/* ---- asking ---- */

static void give_up(pid_t pid)
{
	struct remote_losses *l = &remote.losses;
	struct buf clean _cleanup_buf_ = BUF_INIT;
	char comm[32];

	debts_give_up(&remote.debts, pid);
	l->processes++;
	if (l->n_names == REMOTE_NAMES)
		return;
	read_fact(pid, "comm", comm, sizeof(comm));
	utf8_sanitise(&clean, comm, strcspn(comm, "\n"));
	snprintf(l->names[l->n_names++], REMOTE_NAME_SIZE, "%d (%s)", (int)pid, buf_str(&clean));
}

static bool is_refused(pid_t pid)
{
	return debts_gave_up(&remote.debts, pid) ||
	       (debts_refuse_some(&remote.debts) && debts_refuse(&remote.debts, user_of(pid)));
}

/* NULL: -ETIMEDOUT, it was given up, or no process can be made. */
static struct proxy_request *prepare(enum proxy_op op, pid_t pid)
{
	struct proxy_request *req = is_refused(pid) ? NULL : proxy_prepare(&remote.proxy);

	if (req) {
		req->op = op;
		req->pid = pid;
	}
	return req;
}

void remote_note_wait(pid_t pid, uint64_t slept_ns, pid_t left, bool give_it_up)
{
	uid_t uid;

	if (!slept_ns && !left)
		return;
	uid = user_of(pid);
	if (slept_ns)
		debts_add(&remote.debts, uid, slept_ns, clock_ns(CLOCK_MONOTONIC));
	if (left)
		debts_leave(&remote.debts, left, uid);
	if (give_it_up)
		give_up(pid);
}

uint64_t remote_patience(pid_t pid)
{
	return is_refused(pid) ? 0 : patience(NULL, pid);
}

static int run(pid_t pid)
{
	uint64_t slept;
	pid_t left;
	int r;

	r = proxy_run(&remote.proxy, patience, NULL, &slept, &left);
	remote_note_wait(pid, slept, left, r == -ETIMEDOUT);
	return r;
}

/* ---- memory ---- */

/* One that does not fit into an answer. */
static bool read_large(pid_t pid, uint64_t program, const struct memory_span *span)
{
	struct proxy_request *req;
	size_t done, len;

	for (done = 0; done < span->len; done += len) {
		req = prepare(PROXY_MEMORY, pid);
		if (!req)
			return false;
		len = span->len - done < PROXY_MAX_BYTES ? span->len - done : PROXY_MAX_BYTES;
		req->program = program;
		req->n = 1;
		req->spans[0] = (struct proxy_span) { span->addr + done, (uint32_t)len, 0 };
		if (run(pid) || !req->spans[0].ok)
			return false;
		memcpy((char *)span->dst + done, req->bytes, len);
	}
	return true;
}

/* As many as fit, at least one. Returns how many that are. */
static size_t read_batch(pid_t pid, uint64_t program, struct memory_span *spans, size_t n)
{
	struct proxy_request *req;
	size_t i, at = 0;

	if (spans[0].len > PROXY_MAX_BYTES) {
		spans[0].ok = read_large(pid, program, &spans[0]);
		return 1;
	}
	req = prepare(PROXY_MEMORY, pid);
	if (!req)
		return n;
	for (i = 0; i < n && i < PROXY_MAX_SPANS && spans[i].len <= PROXY_MAX_BYTES - at; i++) {
		req->spans[i] = (struct proxy_span) { spans[i].addr, (uint32_t)spans[i].len, 0 };
		at += spans[i].len;
	}
	req->program = program;
	req->n = (uint32_t)i;
	if (run(pid))
		return n;
	for (i = at = 0; i < req->n; at += spans[i++].len) {
		spans[i].ok = req->spans[i].ok;
		if (spans[i].ok)
			memcpy(spans[i].dst, req->bytes + at, spans[i].len);
	}
	return i;
}

void remote_set_direct(bool direct)
{
	remote.direct = direct;
}

void remote_read_memory(pid_t pid, uint64_t program, struct memory_span *spans, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++)
		spans[i].ok = false;
	if (remote.direct && !stop_overdue())
		memory_files_read(&remote.files, pid, program, spans, n);
	for (i = 0; !remote.direct && i < n && !stop_overdue();)
		i += read_batch(pid, program, spans + i, n - i);
}

/* ---- files ---- */

static ssize_t read_text(enum proxy_op op, pid_t pid, const char *name, char *to, size_t size)
{
	struct proxy_request *req = prepare(op, pid);
	int r;

	if (!req)
		return -ETIMEDOUT;
	req->len = size < PROXY_MAX_BYTES ? (uint32_t)size : PROXY_MAX_BYTES;
	snprintf(req->name, sizeof(req->name), "%s", name);
	r = run(pid);
	if (r || req->result < 0)
		return r ? r : req->result;
	memcpy(to, req->bytes, (size_t)req->result);
	return req->result;
}

ssize_t remote_read_first(pid_t pid, const char *name, char *to, size_t size)
{
	return read_text(PROXY_OPEN, pid, name, to, size);
}

ssize_t remote_read_next(pid_t pid, char *to, size_t size)
{
	return read_text(PROXY_READ, pid, "", to, size);
}

ssize_t remote_read_link(pid_t pid, const char *name, char *to, size_t size)
{
	return read_text(PROXY_LINK, pid, name, to, size);
}

int remote_read_file(pid_t pid, const char *name, size_t max, struct buf *buf)
{
	const size_t before = buf->len;
	char piece[16384];
	ssize_t n;

	n = remote_read_first(pid, name, piece, sizeof(piece));
	while (n > 0) {
		if ((size_t)n > max - (buf->len - before)) {
			n = -EFBIG;
			break;
		}
		buf_add(buf, piece, (size_t)n);
		if (buf_failed(buf))
			n = -ENOMEM;
		else if ((size_t)n < sizeof(piece)) /* the end */
			n = 0;
		else
			n = remote_read_next(pid, piece, sizeof(piece));
	}
	if (n < 0) {
		buf->len = before;
		if (buf->data)
			buf->data[before] = '\0';
	}
	return (int)n;
}

uint64_t remote_cpu_ns(void)
{
	return proxy_cpu_ns(&remote.proxy) + proxy_cpu_ns(&remote.clerk);
}

void remote_prepare(void)
{
	proxy_prepare(&remote.proxy);
	proxy_prepare(&remote.clerk);
}

const struct remote_losses *remote_losses(void)
{
	return &remote.losses;
}

void remote_reset(void)
{
	proxy_deinit(&remote.proxy);
	proxy_deinit(&remote.clerk);
	debts_deinit(&remote.debts);
	memory_files_deinit(&remote.files);
	memset(&remote, 0, sizeof(remote));
}
