/* SPDX-License-Identifier: GPL-2.0-only */
/* What is behind the descriptors that threads wait for, in words; and where /proc tells it. */
#include <arpa/inet.h>
#include <criterion/criterion.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "rbpf_abi.h"
#include "target/socket_peer.h"
#include "target/waited_for.h"

#define CLIENT 40000 /* a port that the kernel gives */

static struct waited_for table = { .first_port = 32768, .last_port = 60999 };

static void teardown(void)
{
	waited_for_deinit(&table);
}

TestSuite(waited_for, .fini = teardown);

static uint32_t id_of(const struct rbpf_waits_on *on)
{
	uint32_t id;

	cr_assert_eq(waited_for_id(&table, on, &id), 0);
	return id;
}

static void expect_words(const struct rbpf_waits_on *on, const char *words)
{
	_cleanup_buf_ struct buf got = BUF_INIT;
	uint32_t id = id_of(on);

	if (id)
		waited_for_add(&table, id, &got);
	cr_expect_str_eq(buf_str(&got), words);
}

static struct rbpf_waits_on of_name(enum rbpf_waits_on_kind kind, const char *name, size_t len)
{
	struct rbpf_waits_on on = { .kind = (uint8_t)kind, .len = (uint8_t)len };

	memcpy(on.name, name, len < RBPF_ON_NAME ? len : RBPF_ON_NAME);
	return on;
}

static struct rbpf_waits_on of_inet(const char *address, uint16_t port, uint16_t own_port)
{
	const bool v6 = strchr(address, ':');
	struct rbpf_waits_on on = { .kind = v6 ? RBPF_ON_INET6 : RBPF_ON_INET,
				    .len = v6 ? 16 : 4,
				    .port = port,
				    .own_port = own_port };

	cr_assert_eq(inet_pton(v6 ? AF_INET6 : AF_INET, address, on.name), 1);
	return on;
}

Test(waited_for, addresses)
{
	struct rbpf_waits_on on = of_inet("10.0.0.5", 5432, CLIENT);

	expect_words(&on, "10.0.0.5:5432");
	on = of_inet("2001:db8::1", 443, CLIENT);
	expect_words(&on, "[2001:db8::1]:443");
	on = of_inet("::ffff:10.0.0.5", 5432, CLIENT);
	expect_words(&on, "10.0.0.5:5432");
}

Test(waited_for, clients_are_one_whoever_they_are)
{
	struct rbpf_waits_on one = of_inet("10.0.0.5", CLIENT, 3000);
	struct rbpf_waits_on other = of_inet("10.0.0.6", CLIENT + 1, 3000);
	struct rbpf_waits_on listens = { .kind = RBPF_ON_INET, .own_port = 3000 };

	expect_words(&one, "clients of :3000");
	cr_expect_eq(id_of(&one), id_of(&other));
	cr_expect_eq(id_of(&one), id_of(&listens));
}

Test(waited_for, connections_to_one_server_are_one)
{
	struct rbpf_waits_on one = of_inet("10.0.0.5", 5432, CLIENT);
	struct rbpf_waits_on other = of_inet("10.0.0.5", 5432, CLIENT + 1);
	struct rbpf_waits_on another = of_inet("10.0.0.5", 5433, CLIENT);

	cr_expect_eq(id_of(&one), id_of(&other));
	cr_expect_neq(id_of(&one), id_of(&another));
	/* Where both ports are given, or neither is, nothing tells who was first there. */
	one = of_inet("10.0.0.5", CLIENT, CLIENT + 1);
	expect_words(&one, "10.0.0.5:40000");
	one = of_inet("10.0.0.5", 3000, 4000);
	expect_words(&one, "10.0.0.5:3000");
}

Test(waited_for, names)
{
	static const char path[] = "/srv/shop/current/tmp/sockets/puma-production.sock";
	struct rbpf_waits_on on = of_name(RBPF_ON_UNIX, "/run/redis.sock", 15);

	expect_words(&on, "/run/redis.sock");
	on = of_name(RBPF_ON_UNIX, "\0bus", 4);
	expect_words(&on, "@bus");
	on = of_name(RBPF_ON_UNIX_OWN, path + sizeof(path) - 1 - RBPF_ON_NAME, RBPF_ON_NAME);
	on.len = sizeof(path) - 1;
	expect_words(&on, "clients of …hop/current/tmp/sockets/puma-production.sock");
	on = of_name(RBPF_ON_FILE, "production.log", 14);
	expect_words(&on, "production.log");
	on = of_name(RBPF_ON_FILE, "0123456789012345678901234567890123456789012345", 46);
	expect_words(&on, "01234567890123456789012345678901234567890123…");
	on = of_name(RBPF_ON_FILE, "a\xff\nb", 4);
	expect_words(&on, "a\xef\xbf\xbd\xef\xbf\xbd"
			  "b");
}

Test(waited_for, nothing_is_known)
{
	struct rbpf_waits_on on = { .kind = RBPF_ON_NOTHING };

	expect_words(&on, "");
	on = (struct rbpf_waits_on) { .kind = RBPF_ON_INET }; /* UDP, before it is used */
	expect_words(&on, "");
	on = (struct rbpf_waits_on) { .kind = RBPF_ON_UNIX };
	expect_words(&on, "");
	on = (struct rbpf_waits_on) { .kind = 200 };
	expect_words(&on, "");
}

Test(waited_for, those_beyond_the_limit_are_not_told)
{
	struct rbpf_waits_on on = of_inet("10.0.0.5", 1, CLIENT), first = on;
	uint32_t id = id_of(&on);

	for (on.port = 2; on.port <= WAITED_FOR_MOST; on.port++)
		cr_assert_neq(id_of(&on), 0);
	cr_expect_eq(id_of(&on), 0);
	cr_expect_eq(id_of(&first), id, "one that is known stays so");
}

/* ---- /proc/PID/net; the oracle is getpeername(2) ---- */

static uint64_t inode_of(int fd)
{
	struct stat st;

	cr_assert_eq(fstat(fd, &st), 0);
	return st.st_ino;
}

/* A listening socket on a port of 127.0.0.1 or ::1 that the kernel gives, stored in *@port. */
static int listen_at(int family, struct sockaddr_storage *at, socklen_t *len, uint16_t *port)
{
	struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)at;
	struct sockaddr_in *v4 = (struct sockaddr_in *)at;
	int fd = socket(family, SOCK_STREAM, 0);

	memset(at, 0, sizeof(*at));
	at->ss_family = (sa_family_t)family;
	*len = family == AF_INET ? sizeof(*v4) : sizeof(*v6);
	if (family == AF_INET)
		v4->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	else
		v6->sin6_addr = in6addr_loopback;
	if (fd < 0 || bind(fd, (struct sockaddr *)at, *len) || listen(fd, 1) ||
	    getsockname(fd, (struct sockaddr *)at, len))
		return -1;
	*port = ntohs(family == AF_INET ? v4->sin_port : v6->sin6_port);
	return fd;
}

static void expect_connection(int family, enum rbpf_waits_on_kind kind, const void *address,
			      size_t n)
{
	struct sockaddr_storage at;
	struct rbpf_waits_on on;
	socklen_t len;
	uint16_t port;
	int listens = listen_at(family, &at, &len, &port), fd = socket(family, SOCK_STREAM, 0);

	cr_assert_geq(listens, 0);
	cr_assert_eq(connect(fd, (struct sockaddr *)&at, len), 0);
	cr_assert_eq(socket_peer_read(getpid(), inode_of(fd), &on), 0);
	cr_expect_eq(on.kind, kind);
	cr_expect_eq(on.port, port);
	cr_expect_eq(on.len, n);
	cr_expect(!memcmp(on.name, address, n));
	cr_assert_eq(socket_peer_read(getpid(), inode_of(listens), &on), 0);
	cr_expect_eq(on.port, 0);
	cr_expect_eq(on.own_port, port);
}

Test(socket_peer, tcp)
{
	const uint32_t loopback = htonl(INADDR_LOOPBACK);

	expect_connection(AF_INET, RBPF_ON_INET, &loopback, sizeof(loopback));
}

Test(socket_peer, tcp_over_ipv6)
{
	if (access("/proc/net/if_inet6", F_OK))
		return; /* this machine has none */
	expect_connection(AF_INET6, RBPF_ON_INET6, &in6addr_loopback, sizeof(in6addr_loopback));
}

Test(socket_peer, unix_sockets)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX, .sun_path = "\0rbpf test" };
	int fd = socket(AF_UNIX, SOCK_STREAM, 0), pair[2];
	struct rbpf_waits_on on;

	cr_assert_eq(bind(fd, (struct sockaddr *)&at, sizeof(at.sun_family) + 10), 0);
	cr_assert_eq(socket_peer_read(getpid(), inode_of(fd), &on), 0);
	cr_expect_eq(on.kind, RBPF_ON_UNIX_OWN);
	cr_expect_eq(on.len, 10);
	cr_expect(!memcmp(on.name, at.sun_path, 10));
	cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	cr_expect_eq(socket_peer_read(getpid(), inode_of(pair[0]), &on), -ENOENT, "has no name");
	cr_expect_eq(socket_peer_read(getpid(), UINT64_MAX, &on), -ENOENT);
}
