/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The paths that are met (with ID for 64 hex digits)
 *
 *	/docker/ID				Docker, cgroupfs driver
 *	/system.slice/docker-ID.scope		Docker, systemd driver
 *	/kubepods/burstable/podUID/ID		Kubernetes, cgroupfs driver
 *	/kubepods.slice/…/cri-containerd-ID.scope, crio-ID.scope, docker-ID.scope
 *	/…/kubepods-podUID.slice:cri-containerd:ID	containerd with the drivers mixed up
 *	/machine.slice/libpod-ID.scope/container	Podman; below user.slice, rootless
 *	/system.slice/web.service/libpod-payload-ID	Podman with --cgroups=split
 *	/ecs/TASK/ID				Amazon ECS
 *	/lxc.payload.NAME, /lxc.payload/NAME, /lxc/NAME
 *	/machine.slice/machine-NAME.scope/payload	systemd-nspawn
 *	/machine.slice/systemd-nspawn@NAME.service/payload
 *
 * Only the id is looked for where it is one, not the word before: each runtime and each Kubernetes
 * has its own, and nothing else is named by 64 hex digits. A pod of Podman is one
 * (libpod_pod_ID.slice), but of several containers, and is not taken since '_' stands before it.
 *
 * What runs in a container may make control groups of its own below (systemd does), and containers
 * may be nested, hence any component may name the container and the last that does is the
 * innermost.
 */
#include "target/container.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/parse.h"
#include "target/remote.h"

#define ID_LEN	 64
#define TEXT_MAX (256u << 10) /* a line is at most a page, and there are some 15 hierarchies */

/* A part of a string that is not ended by a NUL. */
struct span {
	const char *s;
	size_t len;
};

static bool span_is(struct span s, const char *what)
{
	return s.len == strlen(what) && !memcmp(s.s, what, s.len);
}

static bool ends_with(struct span s, const char *end)
{
	size_t n = strlen(end);

	return s.len >= n && !memcmp(s.s + s.len - n, end, n);
}

/* Take @prefix off @s, if something is left then. */
static bool cut_prefix(struct span *s, const char *prefix)
{
	size_t n = strlen(prefix);

	if (s->len <= n || memcmp(s->s, prefix, n))
		return false;
	*s = (struct span) { s->s + n, s->len - n };
	return true;
}

static bool cut_suffix(struct span *s, const char *suffix)
{
	size_t n = strlen(suffix);

	if (s->len <= n || !ends_with(*s, suffix))
		return false;
	s->len -= n;
	return true;
}

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* ---- the container of a path ---- */

/* "docker-ID.scope", "libpod-payload-ID", "…:cri-containerd:ID", "ID" */
static bool find_id(struct span component, struct span *ret)
{
	struct span before;

	cut_suffix(&component, ".scope");
	if (component.len < ID_LEN)
		return false;
	before = (struct span) { component.s, component.len - ID_LEN };
	for (size_t i = before.len; i < component.len; i++)
		if (hex_digit(component.s[i]) < 0)
			return false;
	if (before.len && !ends_with(before, "-") && !ends_with(before, ":"))
		return false;
	/* libpod-conmon-ID.scope, crio-conmon-ID.scope: who watches the container from outside */
	if (ends_with(before, "conmon-"))
		return false;
	*ret = (struct span) { component.s + before.len, ID_LEN };
	return true;
}

/* The name of a container of LXC or systemd-nspawn. @parent is the component before. */
static bool find_name(struct span component, struct span parent, struct span *ret)
{
	struct span name = component;

	if (span_is(parent, "lxc") || span_is(parent, "lxc.payload") ||
	    cut_prefix(&name, "lxc.payload.")) {
		*ret = name;
		return name.len > 0;
	}
	if (cut_prefix(&name, "machine-") && cut_suffix(&name, ".scope")) {
		*ret = name;
		return !cut_prefix(&name, "qemu\\x2d"); /* a virtual machine of libvirt */
	}
	name = component;
	if (cut_prefix(&name, "systemd-nspawn@") && cut_suffix(&name, ".service")) {
		*ret = name;
		return true;
	}
	return false;
}

static bool next_component(const char **path, struct span *ret)
{
	while (**path == '/')
		(*path)++;
	*ret = (struct span) { *path, strcspn(*path, "/") };
	*path += ret->len;
	return ret->len > 0;
}

static bool find_container(const char *path, struct span *ret)
{
	struct span component, parent = { "", 0 };
	bool found = false;

	for (; next_component(&path, &component); parent = component)
		if (find_id(component, ret) || find_name(component, parent, ret))
			found = true;
	return found;
}

/* Undo the escapes of unit names (systemd.unit(5)): "my\x2dweb" is "my-web". */
static void add_unescaped(struct span s, struct buf *out)
{
	for (size_t i = 0; i < s.len; i++) {
		int high = -1, low = -1;

		if (s.len - i >= 4 && s.s[i] == '\\' && s.s[i + 1] == 'x') {
			high = hex_digit(s.s[i + 2]);
			low = hex_digit(s.s[i + 3]);
		}
		if (high < 0 || low < 0 || !(high | low)) {
			buf_addch(out, s.s[i]);
			continue;
		}
		buf_addch(out, (char)(high << 4 | low));
		i += 3;
	}
}

void cgroup_container(const char *path, struct buf *out)
{
	struct span found;

	if (find_container(path, &found))
		add_unescaped(found, out);
}

/* ---- the path of a process ---- */

/* "HIERARCHY:CONTROLLERS:PATH", of which a path may have more colons. */
static bool parse_line(struct span line, struct span *controllers, struct span *path)
{
	const char *end = line.s + line.len, *first, *second;

	first = memchr(line.s, ':', line.len);
	if (!first || first == line.s || strspn(line.s, "0123456789") != (size_t)(first - line.s))
		return false;
	second = memchr(first + 1, ':', (size_t)(end - first - 1));
	if (!second || second + 1 == end || second[1] != '/')
		return false;
	*controllers = (struct span) { first + 1, (size_t)(second - first - 1) };
	*path = (struct span) { second + 1, (size_t)(end - second - 1) };
	cut_suffix(path, " (deleted)"); /* the group was removed, the process is about to end */
	return true;
}

/* How much the path of a line tells; of equal ones the longest tells most. */
enum rank { RANK_ROOT, RANK_OTHER, RANK_SYSTEMD, RANK_V2, RANK_CONTAINER };

static enum rank rank_of(struct span controllers, const char *path)
{
	struct span container;

	if (find_container(path, &container))
		return RANK_CONTAINER;
	if (!path[1])
		return RANK_ROOT;
	if (!controllers.len)
		return RANK_V2;
	return span_is(controllers, "name=systemd") ? RANK_SYSTEMD : RANK_OTHER;
}

void cgroup_path(const char *text, struct buf *out)
{
	_cleanup_buf_ struct buf best = BUF_INIT, path = BUF_INIT;
	enum rank best_rank = RANK_ROOT, rank;
	struct span line, controllers, found;

	for (; *text; text += line.len + (text[line.len] == '\n')) {
		line = (struct span) { text, strcspn(text, "\n") };
		if (!parse_line(line, &controllers, &found))
			continue;
		buf_reset(&path);
		buf_add(&path, found.s, found.len);
		rank = buf_failed(&path) ? RANK_ROOT : rank_of(controllers, buf_str(&path));
		if (best.len && (rank < best_rank || (rank == best_rank && path.len <= best.len)))
			continue;
		buf_reset(&best);
		buf_add(&best, found.s, found.len);
		best_rank = rank;
	}
	buf_addstr(out, buf_str(&best));
	out->failed |= buf_failed(&best) || buf_failed(&path);
}

/* ---- a process ---- */

/* The last (or first) number of the line of @text that starts with @key. */
static bool status_number(const char *text, const char *key, bool last, uint64_t max, uint64_t *ret)
{
	const char *line = text;
	char number[24];
	size_t len;
	bool found = false;

	while (line && strncmp(line, key, strlen(key))) {
		line = strchr(line, '\n');
		if (line)
			line++;
	}
	if (!line)
		return false;
	line += strlen(key);
	while ((last || !found) && *line == '\t') {
		len = strcspn(++line, "\t\n");
		if (len >= sizeof(number))
			return false;
		snprintf(number, sizeof(number), "%.*s", (int)len, line);
		if (parse_u64(number, key, 0, max, ret, NULL))
			return false;
		line += len;
		found = true;
	}
	return found;
}

void process_context_of_status(const char *text, struct process_context *ret)
{
	uint64_t v;

	/* The pid in each namespace, from that of /proc to its own (Linux 4.1, CONFIG_PID_NS). */
	if (status_number(text, "NSpid:", true, INT_MAX, &v))
		ret->ns_pid = (pid_t)v;
	/* Real, effective, saved, of the file system. */
	if (status_number(text, "Uid:", false, UINT32_MAX, &v))
		ret->uid = (uid_t)v;
}

/* Append a file of /proc/PID. Unreadable is empty; only -ENOMEM is an error. */
static int read_file(pid_t pid, const char *name, struct buf *text)
{
	int r = remote_read_file(pid, name, TEXT_MAX, text);

	return r == -ENOMEM ? r : 0;
}

int process_context_read(pid_t pid, struct process_context *ret)
{
	_cleanup_buf_ struct buf cgroup = BUF_INIT, status = BUF_INIT;
	_cleanup_buf_ struct buf path = BUF_INIT, container = BUF_INIT;
	struct process_context p = PROCESS_CONTEXT_INIT;

	if (read_file(pid, "cgroup", &cgroup) || read_file(pid, "status", &status))
		return -ENOMEM;
	cgroup_path(buf_str(&cgroup), &path);
	cgroup_container(buf_str(&path), &container);
	if (buf_failed(&path) || buf_failed(&container))
		return -ENOMEM;
	process_context_of_status(buf_str(&status), &p);
	p.cgroup = strdup(buf_str(&path));
	p.container = strdup(buf_str(&container));
	if (!p.cgroup || !p.container) {
		process_context_deinit(&p);
		return -ENOMEM;
	}
	*ret = p;
	return 0;
}

void process_context_deinit(struct process_context *p)
{
	free(p->cgroup);
	free(p->container);
	*p = (struct process_context)PROCESS_CONTEXT_INIT;
}
