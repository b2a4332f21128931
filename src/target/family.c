/* SPDX-License-Identifier: GPL-2.0-only */
#include "target/family.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "target/process.h"

/* A process of the machine, and its parent then. */
struct kinship {
	pid_t pid, parent;
	bool listed;
};

struct listing {
	struct kinship *all; /* by pid */
	size_t n;
	const pid_t *roots;
	size_t n_roots;
	struct family *family; /* has room for all, and for the roots besides */
};

static int read_kinships(struct kinship **ret, size_t *n, struct err *err)
{
	_cleanup_free_ struct kinship *all = NULL;
	_cleanup_free_ pid_t *pids = NULL;
	size_t i, n_pids;
	int r;

	r = process_list(&pids, &n_pids, err);
	if (r)
		return r;
	all = calloc(n_pids, sizeof(*all));
	if (!all)
		return err_oom(err);
	for (i = 0; i < n_pids; i++) {
		all[i].pid = pids[i];
		/* One that has ended meanwhile is nobody's child. */
		if (process_parent(pids[i], &all[i].parent))
			all[i].parent = 0;
	}
	*ret = take_ptr(all);
	*n = n_pids;
	return 0;
}

static bool is_root(const struct listing *l, pid_t pid)
{
	for (size_t i = 0; i < l->n_roots; i++)
		if (l->roots[i] == pid)
			return true;
	return false;
}

/* The first child of @parent from @from on that is not listed yet; l->n if there is none. */
static size_t next_child(const struct listing *l, pid_t parent, size_t from)
{
	size_t i;

	for (i = from; i < l->n; i++)
		if (l->all[i].parent == parent && !l->all[i].listed && l->all[i].pid != getpid())
			break;
	return i;
}

static size_t append(const struct listing *l, pid_t pid, size_t parent)
{
	l->family->v[l->family->n] = (struct family_member) {
		.pid = pid,
		.parent = parent,
		.root = is_root(l, pid),
	};
	return l->family->n++;
}

/*
 * List what descends from member @root. Up and down the tree without recursion, which a process
 * could make as deep as it likes: each process is listed once, so it ends, even if pids that are
 * used again made a circle of it.
 */
static void append_descendants(const struct listing *l, size_t root)
{
	size_t at = root, child;

	for (;;) {
		child = next_child(l, l->family->v[at].pid, 0);
		if (child < l->n) {
			l->all[child].listed = true;
			at = append(l, l->all[child].pid, at);
		} else if (at == root) {
			return;
		} else {
			at = l->family->v[at].parent;
		}
	}
}

/* List a root, if it is not listed yet, with what descends from it. */
static void append_root(const struct listing *l, pid_t pid)
{
	size_t i;

	for (i = 0; i < l->family->n; i++)
		if (l->family->v[i].pid == pid)
			return;
	for (i = 0; i < l->n; i++)
		l->all[i].listed |= l->all[i].pid == pid;
	append_descendants(l, append(l, pid, FAMILY_NONE));
}

/* A root below another one is listed there. */
static bool is_below_root(const struct listing *l, pid_t root)
{
	size_t i, generations;
	pid_t pid = root;

	for (generations = 0; generations < l->n; generations++) {
		for (i = 0; i < l->n && l->all[i].pid != pid; i++)
			;
		if (i == l->n || !l->all[i].parent)
			return false;
		pid = l->all[i].parent;
		if (is_root(l, pid))
			return pid != root;
	}
	return false;
}

int family_list(const pid_t *roots, size_t n, bool children, struct family *ret, struct err *err)
{
	struct family family _cleanup_(family_deinit) = { .n = 0 };
	_cleanup_free_ struct kinship *all = NULL;
	struct listing l = { .roots = roots, .n_roots = n, .family = &family };
	size_t i;
	int r;

	if (children) {
		r = read_kinships(&all, &l.n, err);
		if (r)
			return r;
		l.all = all;
	}
	family.v = calloc(l.n + n + 1, sizeof(*family.v));
	if (!family.v)
		return err_oom(err);
	for (i = 0; i < n; i++)
		if (!is_below_root(&l, roots[i]))
			append_root(&l, roots[i]);
	*ret = family;
	family = (struct family) { .n = 0 };
	return 0;
}

void family_deinit(struct family *f)
{
	free(f->v);
	*f = (struct family) { .n = 0 };
}

bool family_descends(const struct family *f, size_t i, size_t ancestor)
{
	while (i != ancestor && i != FAMILY_NONE)
		i = f->v[i].parent;
	return i == ancestor;
}
