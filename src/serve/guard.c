/* SPDX-License-Identifier: GPL-2.0-only */
#include "serve/guard.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>

#include "base/err.h"
#include "base/hex.h"
#include "base/parse.h"

/* Of an address or a host name (RFC 1035), without its port. */
#define MAX_HOST 255

int serve_token_make(struct serve_token *ret)
{
	uint8_t bytes[SERVE_TOKEN_BITS / 8];
	struct serve_token token;

	/* So few come whole, or not at all. */
	if (getrandom(bytes, sizeof(bytes), 0) != (ssize_t)sizeof(bytes))
		return errno ? -errno : -EIO;
	hex_of_bytes(bytes, sizeof(bytes), token.s);
	*ret = token;
	return 0;
}

const char *serve_token_check(const struct serve_token *token, const char *path)
{
	const size_t len = strlen(path);
	unsigned char differ = 0;

	if (len < SERVE_TOKEN_LEN + 2)
		return NULL;
	for (size_t i = 0; i < SERVE_TOKEN_LEN; i++)
		differ |= (unsigned char)(path[i + 1] ^ token->s[i]);
	differ |= (unsigned char)(path[0] ^ '/');
	differ |= (unsigned char)(path[SERVE_TOKEN_LEN + 1] ^ '/');
	return differ ? NULL : path + SERVE_TOKEN_LEN + 2;
}

/* ---- hosts ---- */

static bool is_port(const char *s)
{
	size_t n = strspn(s, "0123456789");

	return n && n <= 5 && !s[n];
}

/* Take @host apart: its name without brackets and without port. */
static bool split_host(const char *host, char name[MAX_HOST + 1], bool *bracketed)
{
	const char *end;
	size_t len;

	*bracketed = *host == '[';
	host += *bracketed;
	end = *bracketed ? strchr(host, ']') : host + strcspn(host, ":");
	if (!end || end == host)
		return false;
	len = (size_t)(end - host);
	end += *bracketed;
	if (len > MAX_HOST || (*end && (*end != ':' || !is_port(end + 1))))
		return false;
	memcpy(name, host, len);
	name[len] = '\0';
	return true;
}

bool serve_host_is_ours(const char *host, bool anywhere, const char *own)
{
	char name[MAX_HOST + 1];
	struct in6_addr in6;
	struct in_addr in;
	bool bracketed;

	if (!host || !split_host(host, name, &bracketed))
		return false;
	if (bracketed)
		return inet_pton(AF_INET6, name, &in6) == 1 &&
		       (anywhere || IN6_IS_ADDR_LOOPBACK(&in6));
	if (inet_pton(AF_INET, name, &in) == 1)
		return anywhere || ntohl(in.s_addr) >> 24 == IN_LOOPBACKNET;
	return !strcasecmp(name, "localhost") || (anywhere && own && !strcasecmp(name, own));
}

/* ---- addresses ---- */

static int refuse_address(const char *s, struct err *err)
{
	err_set(err, -EINVAL, ERR_USAGE, "invalid address '%.100s' for --listen", s);
	err_hint(err, "--listen takes ADDRESS:PORT, such as 127.0.0.1:8080 or [::1]:0");
	return -EINVAL;
}

int serve_address_parse(const char *s, struct serve_address *ret, struct err *err)
{
	struct serve_address a = { .len = 0 };
	const char *colon = strrchr(s, ':'), *port = colon ? colon + 1 : s;
	char host[INET6_ADDRSTRLEN + 2] = "127.0.0.1";
	size_t len = colon ? (size_t)(colon - s) : 0;
	uint64_t number;
	int r;

	if (colon && (!len || len >= sizeof(host)))
		return refuse_address(s, err);
	if (colon) {
		memcpy(host, s, len);
		host[len] = '\0';
	}
	if (!*port || port[strspn(port, "0123456789")])
		return refuse_address(s, err);
	r = parse_u64(port, "the port of --listen", 0, UINT16_MAX, &number, err);
	if (r)
		return r;
	if (host[0] == '[' && host[len - 1] == ']') {
		host[len - 1] = '\0';
		a.in6.sin6_family = AF_INET6;
		a.in6.sin6_port = htons((uint16_t)number);
		a.len = sizeof(a.in6);
		if (inet_pton(AF_INET6, host + 1, &a.in6.sin6_addr) != 1)
			return refuse_address(s, err);
	} else {
		a.in.sin_family = AF_INET;
		a.in.sin_port = htons((uint16_t)number);
		a.len = sizeof(a.in);
		if (inet_pton(AF_INET, host, &a.in.sin_addr) != 1)
			return refuse_address(s, err);
	}
	*ret = a;
	return 0;
}

bool serve_address_is_loopback(const struct serve_address *a)
{
	if (a->sa.sa_family == AF_INET6)
		return IN6_IS_ADDR_LOOPBACK(&a->in6.sin6_addr);
	return ntohl(a->in.sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
}

bool serve_address_is_any(const struct serve_address *a)
{
	if (a->sa.sa_family == AF_INET6)
		return IN6_IS_ADDR_UNSPECIFIED(&a->in6.sin6_addr);
	return a->in.sin_addr.s_addr == htonl(INADDR_ANY);
}

unsigned int serve_address_port(const struct serve_address *a)
{
	return ntohs(a->sa.sa_family == AF_INET6 ? a->in6.sin6_port : a->in.sin_port);
}

void serve_address_text(const struct serve_address *a, char ret[SERVE_ADDRESS_TEXT])
{
	const bool six = a->sa.sa_family == AF_INET6;
	const void *address = six ? (const void *)&a->in6.sin6_addr : &a->in.sin_addr;
	char text[INET6_ADDRSTRLEN] = "?";

	inet_ntop(a->sa.sa_family, address, text, sizeof(text));
	snprintf(ret, SERVE_ADDRESS_TEXT, six ? "[%s]:%u" : "%s:%u", text, serve_address_port(a));
}
