/* SPDX-License-Identifier: GPL-2.0-only */
#include "dump/waits_on.h"

#include <string.h>

#include "base/array.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "dump/doing.h"
#include "target/waited_for.h"
#include "target/waits_on.h"

bool dump_waits_on_counts(const struct dump_doing *doing)
{
	static const char *const kept_by_vm[] = { "Thread", "Monitor", "Ractor" };

	if (doing->sleeps || doing->waits_for_gvl)
		return false;
	for (size_t i = 0; doing->method && i < ARRAY_SIZE(kept_by_vm); i++)
		if (!strncmp(doing->method, kept_by_vm[i], strlen(kept_by_vm[i])))
			return false;
	return true;
}

/* What is behind a descriptor, in words: "pipe:[1234]" is a pipe. */
static const char *kind_of(const char *file)
{
	static const struct {
		const char *prefix, *words;
	} kinds[] = {
		{ "socket:[", "a socket" },
		{ "pipe:[", "a pipe" },
		{ "anon_inode:[eventpoll]", "epoll" },
		{ "anon_inode:[eventfd]", "an eventfd" },
		{ "anon_inode:inotify", "inotify" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++)
		if (!strncmp(file, kinds[i].prefix, strlen(kinds[i].prefix)))
			return kinds[i].words;
	return file;
}

void dump_peer_add(struct buf *out, const struct waits_on *w)
{
	struct waited_for words = { 0 };
	uint32_t id;

	if (w->peer.kind != RBPF_ON_NOTHING && !waited_for_id(&words, &w->peer, &id) && id)
		waited_for_add(&words, id, out);
	waited_for_deinit(&words);
}

void dump_waits_on_add(struct buf *out, const struct waits_on *w)
{
	_cleanup_buf_ struct buf peer = BUF_INIT;

	if (w->fd >= 0) {
		buf_addf(out, "descriptor %d", w->fd);
		if (w->file[0])
			buf_addf(out, ", %s", kind_of(w->file));
		dump_peer_add(&peer, w);
		if (peer.len)
			buf_addf(out, " (%s)", buf_str(&peer));
		if (w->n_more)
			buf_addf(out, ", and %zu other%s", w->n_more, w->n_more == 1 ? "" : "s");
	} else if (w->child > 0) {
		buf_addf(out, "child %d", (int)w->child);
	} else if (w->child < 0) {
		buf_addstr(out, "any child");
	}
}
