/* SPDX-License-Identifier: GPL-2.0-only */
#include "target/waited_for.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/io.h"
#include "base/utf8.h"
#include "rbpf_abi.h"

void waited_for_deinit(struct waited_for *w)
{
	intern_deinit(&w->known);
}

/*
 * The ports that the kernel gives to sockets that connect. A network namespace can have others than
 * rbpf's own; hardly any has.
 */
static void read_ports(struct waited_for *w)
{
	_cleanup_buf_ struct buf text = BUF_INIT;
	unsigned int first = 0, last = 0;

	if (io_read_file(AT_FDCWD, "/proc/sys/net/ipv4/ip_local_port_range", 64, &text) ||
	    sscanf(buf_str(&text), "%u %u", &first, &last) != 2 || !first || first > last ||
	    last > UINT16_MAX) {
		first = 32768; /* the kernel's default */
		last = 60999;
	}
	w->first_port = (uint16_t)first;
	w->last_port = (uint16_t)last;
}

static bool is_given(const struct waited_for *w, uint16_t port)
{
	return port >= w->first_port && port <= w->last_port;
}

/* Whether @on listens, or is connected to one that did: the other end's port was given to it. */
static bool is_server(const struct waited_for *w, const struct rbpf_waits_on *on)
{
	return !on->port || (is_given(w, on->port) && !is_given(w, on->own_port));
}

/* @on without what differs by connection; .kind is RBPF_ON_NOTHING if nothing is left. */
static struct rbpf_waits_on common_part(const struct waited_for *w, const struct rbpf_waits_on *on)
{
	struct rbpf_waits_on ret = { .kind = on->kind };

	switch (on->kind) {
	case RBPF_ON_INET:
	case RBPF_ON_INET6:
		if (!is_server(w, on)) {
			ret = *on;
			ret.own_port = 0;
		} else if (on->own_port) {
			ret.own_port = on->own_port;
		} else {
			ret.kind = RBPF_ON_NOTHING;
		}
		break;
	case RBPF_ON_UNIX:
	case RBPF_ON_UNIX_OWN:
	case RBPF_ON_FILE:
		ret = *on;
		if (!on->len)
			ret.kind = RBPF_ON_NOTHING;
		break;
	default:
		ret.kind = RBPF_ON_NOTHING;
	}
	return ret;
}

int waited_for_id(struct waited_for *w, const struct rbpf_waits_on *on, uint32_t *ret)
{
	struct rbpf_waits_on part;
	uint32_t id;
	int r;

	if (!w->first_port)
		read_ports(w);
	*ret = 0;
	part = common_part(w, on);
	if (part.kind == RBPF_ON_NOTHING)
		return 0;
	if (w->known.count >= WAITED_FOR_MOST && intern_find(&w->known, &part, sizeof(part), &id))
		return 0;
	r = intern_add(&w->known, &part, sizeof(part), &id, NULL);
	if (!r)
		*ret = id + 1;
	return r;
}

static void add_address(const struct rbpf_waits_on *on, struct buf *out)
{
	static const unsigned char mapped[12] = { [10] = 0xff, [11] = 0xff };
	char text[INET6_ADDRSTRLEN];

	if (on->kind == RBPF_ON_INET)
		inet_ntop(AF_INET, on->name, text, sizeof(text));
	else if (!memcmp(on->name, mapped, sizeof(mapped)))
		inet_ntop(AF_INET, on->name + sizeof(mapped), text, sizeof(text));
	else
		inet_ntop(AF_INET6, on->name, text, sizeof(text));
	buf_addf(out, strchr(text, ':') ? "[%s]:%u" : "%s:%u", text, on->port);
}

/* The path of a socket is kept from its end, which tells more; an abstract one begins with NUL. */
static void add_path(const struct rbpf_waits_on *on, struct buf *out)
{
	const char *name = on->name;
	size_t n = on->len < RBPF_ON_NAME ? on->len : RBPF_ON_NAME;

	if (on->len > RBPF_ON_NAME) {
		buf_addstr(out, "…");
	} else if (!*name) {
		buf_addstr(out, "@");
		name++;
		n--;
	}
	utf8_sanitise(out, name, n);
}

static void add_file(const struct rbpf_waits_on *on, struct buf *out)
{
	utf8_sanitise(out, on->name, on->len < RBPF_ON_NAME ? on->len : RBPF_ON_NAME);
	if (on->len > RBPF_ON_NAME)
		buf_addstr(out, "…");
}

void waited_for_add(const struct waited_for *w, uint32_t id, struct buf *out)
{
	const struct rbpf_waits_on *on = intern_get(&w->known, id - 1, NULL);

	switch (on->kind) {
	case RBPF_ON_INET:
	case RBPF_ON_INET6:
		if (on->port)
			add_address(on, out);
		else
			buf_addf(out, "clients of :%u", on->own_port);
		break;
	case RBPF_ON_UNIX:
		add_path(on, out);
		break;
	case RBPF_ON_UNIX_OWN:
		buf_addstr(out, "clients of ");
		add_path(on, out);
		break;
	default:
		add_file(on, out);
	}
}
