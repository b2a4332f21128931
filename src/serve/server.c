/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A connection has a clock: until a request has come, and until its answer has gone. Timeouts of
 * the library only count from the last byte, so a client that sends or takes a byte now and then
 * would keep its connection for ever.
 *
 * A request that something must be made for is suspended in the library, and resumed when it is
 * done; its handler is then called again.
 */
#include "serve/server.h"

#include <errno.h>
#if !__has_include(<microhttpd.h>)
#error "libmicrohttpd is missing: install libmicrohttpd-dev (Debian) or libmicrohttpd-devel (Fedora)"
#endif
#include <microhttpd.h>
#include <poll.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/io.h"
#include "base/json.h"
#include "page/assets.h"
#include "page/html.h"
#include "serve/assets.h"
#include "serve/confine.h"
#include "serve/query.h"
#include "serve/work.h"
#include "worker/sandbox.h"

#define TICK_MS 1000 /* how often clocks are looked at */

struct connection {
	int fd;		      /* the library's */
	uint64_t deadline_ns; /* CLOCK_MONOTONIC; 0: none, it waits for us */
	struct connection *next;
};

struct http_server {
	const struct serve_options *opts;
	struct MHD_Daemon *daemon;
	struct serve_work work;
	struct connection *connections;
	struct buf page;
	uint64_t now; /* CLOCK_MONOTONIC */
};

/* ---- the page ---- */

static void serve_page(const struct serve_options *opts, struct buf *out)
{
	_cleanup_buf_ struct buf css = BUF_INIT, js = BUF_INIT, about = BUF_INIT;
	struct json j = JSON_INIT(&about);

	buf_addf(&css, "%s%s", page_css, serve_css);
	buf_addf(&js, "%s%s", page_js, serve_js);
	json_object_begin(&j, NULL);
	json_str(&j, "title", opts->title);
	json_str(&j, "generator", "rbpf " RBPF_VERSION);
	json_str(&j, "event", opts->event);
	json_bool(&j, "waits", opts->waits);
	json_object_end(&j);
	html_begin_with(out, opts->title, buf_str(&css), buf_str(&js),
			"; connect-src 'self'; frame-src 'self'");
	html_add_json(out, "about", &about);
	html_end(out, buf_str(&js));
	out->failed |= css.failed || js.failed;
}

static void state_json(const struct http_server *s, struct buf *out)
{
	struct json j = JSON_INIT(out);

	json_object_begin(&j, NULL);
	json_str(&j, "version", RBPF_VERSION);
	json_str(&j, "title", s->opts->title);
	json_bool(&j, "live", s->work.live && !s->work.ended);
	json_u64(&j, "from", s->work.from);
	json_u64(&j, "to", s->work.to);
	json_object_end(&j);
}

/* ---- answers ---- */

static void set_deadline(struct connection *c, uint64_t ns)
{
	if (c)
		c->deadline_ns = ns;
}

static struct connection *connection_of(struct MHD_Connection *mhd)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_SOCKET_CONTEXT);

	return info ? info->socket_context : NULL;
}

/*
 * The path has the token, so it must not go on as a Referer. Nothing here is for other sites, but
 * what one view gives to the one origin that it names.
 */
static void add_headers(const struct http_server *s, const struct serve_view *view,
			const char *type, const char *origin, struct MHD_Response *response)
{
	const bool shared = view && view->origin && origin && !strcmp(origin, view->origin);

	MHD_add_response_header(response, "Content-Type", type);
	MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
	MHD_add_response_header(response, "Referrer-Policy", "no-referrer");
	MHD_add_response_header(response, "Cache-Control", "no-store");
	MHD_add_response_header(response, "X-Frame-Options", "SAMEORIGIN");
	MHD_add_response_header(response, "Cross-Origin-Opener-Policy", "same-origin");
	MHD_add_response_header(response, "Cross-Origin-Resource-Policy",
				shared ? "cross-origin" : "same-origin");
	if (shared)
		MHD_add_response_header(response, "Access-Control-Allow-Origin", view->origin);
	if (view && view->origin)
		MHD_add_response_header(response, "Vary", "Origin");
	/* Pages name their scripts themselves. */
	MHD_add_response_header(response, "Content-Security-Policy",
				!strcmp(type, "image/svg+xml") ? s->opts->svg_policy
				: !strncmp(type, "text/html", 9)
					? "frame-ancestors 'self'"
					: "default-src 'none'; frame-ancestors 'none'");
}

static enum MHD_Result answer(const struct http_server *s, struct MHD_Connection *mhd,
			      const struct serve_view *view, unsigned int status, const char *type,
			      struct MHD_Response *response, uint64_t size)
{
	const char *origin = MHD_lookup_connection_value(mhd, MHD_HEADER_KIND, "Origin");
	enum MHD_Result r;

	if (!response)
		return MHD_NO;
	add_headers(s, view, type, origin, response);
	if (status == MHD_HTTP_METHOD_NOT_ALLOWED)
		MHD_add_response_header(response, "Allow", "GET, HEAD");
	set_deadline(connection_of(mhd), s->now + SERVE_REQUEST_S * NSEC_PER_SEC +
						 size / SERVE_ANSWER_BYTES_PER_S * NSEC_PER_SEC);
	r = MHD_queue_response(mhd, status, response);
	MHD_destroy_response(response);
	return r;
}

static enum MHD_Result answer_bytes(const struct http_server *s, struct MHD_Connection *mhd,
				    const struct serve_view *view, unsigned int status,
				    const char *type, const void *data, size_t len)
{
	return answer(s, mhd, view, status, type,
		      MHD_create_response_from_buffer(len, (void *)data, MHD_RESPMEM_MUST_COPY),
		      len);
}

static enum MHD_Result refuse(const struct http_server *s, struct MHD_Connection *mhd,
			      unsigned int status, const char *text)
{
	return answer_bytes(s, mhd, NULL, status, "text/plain; charset=utf-8", text, strlen(text));
}

static enum MHD_Result answer_done(const struct http_server *s, struct MHD_Connection *mhd,
				   struct serve_request *rq)
{
	const struct serve_view *view = rq->query.view;
	struct MHD_Response *response;
	struct statx st;

	if (rq->body < 0 || io_stat(rq->body, &st))
		return answer_bytes(s, mhd, view, rq->status, "text/plain; charset=utf-8", rq->text,
				    strlen(rq->text));
	response = MHD_create_response_from_fd_at_offset64((uint64_t)st.stx_size, rq->body, 0);
	if (response)
		rq->body = -1; /* the response's now */
	return answer(s, mhd, view, rq->status, view->type, response, (uint64_t)st.stx_size);
}

/* ---- requests ---- */

struct parameter_list {
	struct serve_parameter v[SERVE_MAX_PARAMETERS + 1];
	size_t n;
};

static enum MHD_Result add_parameter(void *arg, enum MHD_ValueKind kind, const char *name,
				     const char *value)
{
	struct parameter_list *list = arg;

	(void)kind;
	if (list->n == ARRAY_SIZE(list->v))
		return MHD_NO;
	list->v[list->n++] = (struct serve_parameter) { name, value };
	return MHD_YES;
}

static bool has_body(struct MHD_Connection *mhd)
{
	const char *len = MHD_lookup_connection_value(mhd, MHD_HEADER_KIND, "Content-Length");

	return (len && strcmp(len, "0") != 0) ||
	       MHD_lookup_connection_value(mhd, MHD_HEADER_KIND, "Transfer-Encoding");
}

/* Begin to make what @q asks for; @q is taken. */
static enum MHD_Result begin(struct http_server *s, struct MHD_Connection *mhd,
			     struct serve_query *q, void **state)
{
	struct serve_request *rq = calloc(1, sizeof(*rq));

	if (!rq) {
		serve_query_deinit(q);
		return MHD_NO;
	}
	rq->query = *q;
	*state = rq;
	set_deadline(connection_of(mhd), 0);
	serve_work_add(&s->work, rq, s->now);
	if (rq->stage == SERVE_DONE)
		return answer_done(s, mhd, rq);
	rq->connection = mhd;
	MHD_suspend_connection(mhd);
	return MHD_YES;
}

static enum MHD_Result serve_path(struct http_server *s, struct MHD_Connection *mhd,
				  const char *path, void **state)
{
	_cleanup_buf_ struct buf text = BUF_INIT;
	struct parameter_list list = { .n = 0 };
	struct serve_query q;
	struct err err = { 0 };
	int r;

	MHD_get_connection_values(mhd, MHD_GET_ARGUMENT_KIND, add_parameter, &list);
	r = serve_query_parse(path, list.v, list.n, &q, &err);
	if (r == -ENOENT)
		return refuse(s, mhd, MHD_HTTP_NOT_FOUND, "there is no such page\n");
	if (r) {
		buf_addf(&text, "%s\n", err.msg);
		return refuse(s, mhd, MHD_HTTP_BAD_REQUEST, buf_str(&text));
	}
	if (q.view->kind == SERVE_COMMAND || q.view->kind == SERVE_RECORDING)
		return begin(s, mhd, &q, state);
	serve_query_deinit(&q);
	if (!*path)
		return answer_bytes(s, mhd, NULL, MHD_HTTP_OK, "text/html; charset=utf-8",
				    buf_str(&s->page), s->page.len);
	state_json(s, &text);
	return answer_bytes(s, mhd, NULL, MHD_HTTP_OK, "application/json", buf_str(&text),
			    text.len);
}

static enum MHD_Result handle(void *arg, struct MHD_Connection *mhd, const char *path,
			      const char *method, const char *version, const char *data,
			      size_t *data_size, void **state)
{
	struct http_server *s = arg;

	(void)version;
	(void)data;
	(void)data_size;
	/* A refusal comes before what else the client sends, and closes the connection. */
	if (*state == s)
		return serve_path(s, mhd, serve_token_check(&s->opts->token, path), state);
	if (*state)
		return answer_done(s, mhd, *state);
	if (strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0)
		return refuse(s, mhd, MHD_HTTP_METHOD_NOT_ALLOWED, "GET and HEAD only\n");
	if (has_body(mhd))
		return refuse(s, mhd, MHD_HTTP_CONTENT_TOO_LARGE, "no request has a body here\n");
	if (!serve_host_is_ours(MHD_lookup_connection_value(mhd, MHD_HEADER_KIND, "Host"),
				s->opts->anywhere, s->opts->name))
		return refuse(s, mhd, MHD_HTTP_MISDIRECTED_REQUEST, "the Host is not this one\n");
	if (!serve_token_check(&s->opts->token, path))
		return refuse(s, mhd, MHD_HTTP_NOT_FOUND, "there is no such page\n");
	*state = s; /* called again when the request is whole */
	return MHD_YES;
}

static void completed(void *arg, struct MHD_Connection *mhd, void **state,
		      enum MHD_RequestTerminationCode why)
{
	struct http_server *s = arg;
	struct serve_request *rq = *state;

	(void)why;
	if (rq && *state != s) {
		serve_work_drop(&s->work, rq);
		free(rq);
	}
	*state = NULL;
	set_deadline(connection_of(mhd), s->now + SERVE_REQUEST_S * NSEC_PER_SEC);
}

/* ---- connections ---- */

static void connection_changed(void *arg, struct MHD_Connection *mhd, void **context,
			       enum MHD_ConnectionNotificationCode code)
{
	struct http_server *s = arg;
	struct connection **at = &s->connections, *c = *context;

	if (code == MHD_CONNECTION_NOTIFY_STARTED) {
		c = calloc(1, sizeof(*c));
		*context = c;
		if (!c)
			return;
		c->fd = MHD_get_connection_info(mhd, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;
		c->deadline_ns = s->now + SERVE_REQUEST_S * NSEC_PER_SEC;
		c->next = s->connections;
		s->connections = c;
		return;
	}
	while (*at && *at != c)
		at = &(*at)->next;
	if (*at)
		*at = c->next;
	free(c);
	*context = NULL;
}

/* Shut down what is overdue; the library sees that, and closes it. */
static void end_overdue(struct http_server *s)
{
	for (struct connection *c = s->connections; c; c = c->next) {
		if (!c->deadline_ns || s->now < c->deadline_ns)
			continue;
		shutdown(c->fd, SHUT_RDWR);
		c->deadline_ns = 0;
	}
}

static void resume_done(struct http_server *s)
{
	for (struct serve_request *rq = s->work.first; rq; rq = rq->next) {
		if (rq->stage != SERVE_DONE || !rq->connection)
			continue;
		MHD_resume_connection(rq->connection);
		rq->connection = NULL;
	}
}

/* ---- the process ---- */

static void wait_for_events(struct http_server *s)
{
	struct pollfd fds[SERVE_RENDERS + 2];
	size_t n = serve_work_poll(&s->work, fds);
	MHD_UNSIGNED_LONG_LONG ms;
	int timeout = TICK_MS;

	fds[n++] = (struct pollfd) {
		.fd = MHD_get_daemon_info(s->daemon, MHD_DAEMON_INFO_EPOLL_FD)->listen_fd,
		.events = POLLIN,
	};
	if (MHD_get_timeout(s->daemon, &ms) == MHD_YES && ms < TICK_MS)
		timeout = (int)ms;
	poll(fds, n, timeout);
	s->now = clock_ns(CLOCK_MONOTONIC);
}

/* What goes wrong with a client is not worth a message. */
static void no_log(void *arg, const char *fmt, va_list ap)
{
	(void)arg;
	(void)fmt;
	(void)ap;
}

/* %00 would end a string: as another control character it is in no name and no value. */
static size_t unescape(void *arg, struct MHD_Connection *mhd, char *s)
{
	const size_t len = MHD_http_unescape(s);

	(void)arg;
	(void)mhd;
	for (size_t i = 0; i < len; i++)
		if (!s[i])
			s[i] = '\1';
	return len;
}

static struct MHD_Daemon *start_daemon(struct http_server *s)
{
	return MHD_start_daemon(
		MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ERROR_LOG, 0, NULL, NULL, handle,
		s, MHD_OPTION_EXTERNAL_LOGGER, no_log, NULL, MHD_OPTION_LISTEN_SOCKET,
		s->opts->listen, MHD_OPTION_CONNECTION_LIMIT, (unsigned int)SERVE_CONNECTIONS,
		MHD_OPTION_PER_IP_CONNECTION_LIMIT, (unsigned int)SERVE_CONNECTIONS_OF_ONE,
		MHD_OPTION_CONNECTION_TIMEOUT, (unsigned int)SERVE_IDLE_S,
		MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)SERVE_HEADER_BYTES,
		MHD_OPTION_STRICT_FOR_CLIENT, 1, MHD_OPTION_UNESCAPE_CALLBACK, unescape, NULL,
		MHD_OPTION_NOTIFY_COMPLETED, completed, s, MHD_OPTION_NOTIFY_CONNECTION,
		connection_changed, s, MHD_OPTION_END);
}

static int serve(const struct serve_options *opts)
{
	struct http_server s = { .opts = opts, .now = clock_ns(CLOCK_MONOTONIC) };

	s.work.run = opts->run;
	s.work.run_arg = opts->run_arg;
	s.work.live = opts->channel >= 0;
	s.work.channel = opts->channel;
	if (!s.work.live)
		serve_work_set_file(&s.work, opts->files, opts->seconds);
	serve_page(opts, &s.page);
	s.daemon = start_daemon(&s);
	if (buf_failed(&s.page) || !s.daemon || serve_confine())
		return 1;
	for (;;) {
		wait_for_events(&s);
		if (serve_work_advance(&s.work, s.now))
			return 0;
		end_overdue(&s);
		resume_done(&s);
		MHD_run(s.daemon);
	}
}

static void add_kept(int *keep, size_t *n, int fd)
{
	size_t i = *n;

	if (fd < 0)
		return;
	for (; i && keep[i - 1] > fd; i--)
		keep[i] = keep[i - 1];
	keep[i] = fd;
	++*n;
}

int serve_start(const struct serve_options *opts, pid_t *ret)
{
	int keep[2 + SERVE_RENDERS];
	size_t n = 0;
	pid_t pid;

	add_kept(keep, &n, opts->listen);
	add_kept(keep, &n, opts->channel);
	for (size_t i = 0; opts->channel < 0 && i < SERVE_RENDERS; i++)
		add_kept(keep, &n, opts->files[i]);
	pid = fork();
	if (pid < 0)
		return -errno;
	if (!pid) {
		prctl(PR_SET_NAME, "rbpf-serve", 0, 0, 0);
		_exit(sandbox_drop_privileges(keep, n) ? 1 : serve(opts));
	}
	*ret = pid;
	return 0;
}
