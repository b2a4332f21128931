/* SPDX-License-Identifier: GPL-2.0-only */
#include "target/socket_peer.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "rbpf_abi.h"
#include "target/remote.h"

/* Of a table, which has 150 bytes for a socket: reading more takes tens of ms, for each thread. */
#define MAX_TABLE (4u << 20)

/*
 * "0100007F:10E1": an address is in words as they are in the memory of this machine, eight digits
 * each, a port as a number.
 */
static bool take_address(const char *digits, struct rbpf_waits_on *ret)
{
	const size_t words = strlen(digits) / 8;
	uint32_t word;

	if (words != 1 && words != 4)
		return false;
	ret->kind = words == 1 ? RBPF_ON_INET : RBPF_ON_INET6;
	ret->len = (uint8_t)(words * sizeof(word));
	for (size_t i = 0; i < words; i++) {
		if (sscanf(digits + 8 * i, "%8" SCNx32, &word) != 1)
			return false;
		memcpy(ret->name + i * sizeof(word), &word, sizeof(word));
	}
	return true;
}

/* A line of tcp, udp and the like. */
static bool take_inet(const char *line, uint64_t inode, struct rbpf_waits_on *ret)
{
	unsigned int own_port, port;
	char address[33];
	uint64_t is;

	if (sscanf(line, "%*u: %*[0-9A-F]:%x %32[0-9A-F]:%x %*s %*s %*s %*s %*u %*u %" SCNu64,
		   &own_port, address, &port, &is) != 4 ||
	    is != inode)
		return false;
	*ret = (struct rbpf_waits_on) { .port = (uint16_t)port, .own_port = (uint16_t)own_port };
	return take_address(address, ret);
}

/* A line of unix: its last field, if there is one, is the name, with '@' for a NUL. */
static bool take_unix(const char *line, uint64_t inode, struct rbpf_waits_on *ret)
{
	int name = 0;
	uint64_t is;
	size_t n;

	if (sscanf(line, "%*s %*s %*s %*s %*s %*s %" SCNu64 " %n", &is, &name) != 1 ||
	    is != inode || !name || !line[name])
		return false;
	line += name;
	n = strlen(line);
	*ret = (struct rbpf_waits_on) { .kind = RBPF_ON_UNIX_OWN,
					.len = n < UINT8_MAX ? (uint8_t)n : UINT8_MAX };
	if (n > RBPF_ON_NAME) {
		memcpy(ret->name, line + n - RBPF_ON_NAME, RBPF_ON_NAME);
		return true;
	}
	memcpy(ret->name, line, n);
	if (*line == '@')
		ret->name[0] = '\0';
	return true;
}

static const struct {
	const char *name;
	bool (*take)(const char *line, uint64_t inode, struct rbpf_waits_on *ret);
} tables[] = {
	{ "net/tcp", take_inet }, { "net/tcp6", take_inet }, { "net/unix", take_unix },
	{ "net/udp", take_inet }, { "net/udp6", take_inet },
};

int socket_peer_read(pid_t pid, uint64_t inode, struct rbpf_waits_on *ret)
{
	for (size_t i = 0; i < ARRAY_SIZE(tables); i++) {
		_cleanup_buf_ struct buf table = BUF_INIT;
		char *rest, *line;
		int r = remote_read_file(pid, tables[i].name, MAX_TABLE, &table);

		if (r == -ENOENT) /* a kernel without IPv6 */
			continue;
		if (r)
			return r;
		rest = (char *)buf_str(&table);
		while ((line = strsep(&rest, "\n")))
			if (tables[i].take(line, inode, ret))
				return 0;
	}
	return -ENOENT;
}
