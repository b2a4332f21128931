/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Who may ask the server: who knows the token, and names this machine as one that no stranger's
 * page can name.
 *
 * The token keeps other users of the machine out. The name in the Host header keeps out pages whose
 * host name resolves to this machine (DNS rebinding): a browser sends the name of that page.
 */
#ifndef RBPF_SERVE_GUARD_H
#define RBPF_SERVE_GUARD_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>

struct err;

#define SERVE_TOKEN_BITS 192
#define SERVE_TOKEN_LEN	 (SERVE_TOKEN_BITS / 4) /* hexadecimal digits */

struct serve_token {
	char s[SERVE_TOKEN_LEN + 1];
};

/* A new one, of the kernel's random numbers. Returns 0 or -errno. */
int serve_token_make(struct serve_token *ret);

/*
 * The rest of @path behind "/TOKEN/", or NULL if it does not begin so. The time it takes depends on
 * the length of @path only, not on how much of the token is right.
 */
const char *serve_token_check(const struct serve_token *token, const char *path);

/*
 * Whether @host, the value of a Host header (NULL: none), names this machine: "localhost" or an
 * address of the loopback, with any port, for a tunnel has a port of its own. With @anywhere, which
 * is for a server that does not listen on the loopback, also any address, and @name (may be NULL)
 * without regard to case.
 */
bool serve_host_is_ours(const char *host, bool anywhere, const char *name);

/* An address to listen on. */
struct serve_address {
	union {
		struct sockaddr sa;
		struct sockaddr_in in;
		struct sockaddr_in6 in6;
	};
	socklen_t len;
};

/*
 * "127.0.0.1:0", "[::1]:8080", "8080" (of 127.0.0.1): a numeric address and a port from 0 to 65535.
 * ERR_USAGE, -EINVAL or -ERANGE otherwise.
 */
int serve_address_parse(const char *s, struct serve_address *ret, struct err *err);

bool serve_address_is_loopback(const struct serve_address *a);
bool serve_address_is_any(const struct serve_address *a); /* all addresses of the machine */
unsigned int serve_address_port(const struct serve_address *a);

/* "127.0.0.1:8080", "[::1]:8080". */
#define SERVE_ADDRESS_TEXT (INET6_ADDRSTRLEN + sizeof("[]:65535"))
void serve_address_text(const struct serve_address *a, char ret[SERVE_ADDRESS_TEXT]);

#endif
