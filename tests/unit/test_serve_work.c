/* SPDX-License-Identifier: GPL-2.0-only */
/* What becomes of requests whose seconds cannot be had. */
#include <criterion/criterion.h>
#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/err.h"
#include "serve/link.h"
#include "serve/query.h"
#include "serve/work.h"
#include "worker/channel.h"

#define NOW 1000

static struct serve_work work;
static int samples; /* the end of the channel of who has them */

static void setup(void)
{
	int socks[2];

	cr_assert_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, socks), 0);
	samples = socks[0];
	work = (struct serve_work) { .live = true, .channel = socks[1], .to = 10 };
}

static void teardown(void)
{
	close(samples);
	close(work.channel);
}

TestSuite(serve_work, .init = setup, .fini = teardown);

/* A request for all seconds is answered with @result: what becomes of it. Returns whether it asked.
 */
static bool answered(int result, unsigned int *status)
{
	struct serve_request rq = { 0 };
	struct serve_told told = { .says = SERVE_SNAPSHOT, .result = result };
	const struct channel_part part = { &told, sizeof(told) };
	struct err err = { 0 };
	size_t len, n = 0;
	int fds[CHANNEL_MAX_FDS];
	bool asked;

	cr_assert_eq(serve_query_parse("flame.svg", NULL, 0, &rq.query, &err), 0, "%s", err.msg);
	serve_work_add(&work, &rq, NOW);
	asked = !channel_receive(samples, &told.asked, sizeof(told.asked), &len, fds, &n, 0);
	if (asked) {
		cr_assert_eq(len, sizeof(told.asked));
		cr_assert_eq(channel_send(samples, &part, 1, NULL, 0), 0);
		cr_assert_eq(serve_work_advance(&work, NOW), 0);
	}
	cr_assert_eq(rq.stage, SERVE_DONE);
	*status = rq.status;
	serve_work_drop(&work, &rq);
	return asked;
}

/* It may have been for lack of memory, or of time. */
Test(serve_work, what_failed_is_asked_for_again)
{
	unsigned int status;

	for (int i = 0; i < 3; i++) {
		cr_expect(answered(-ENOMEM, &status), "%d", i);
		cr_expect_eq(status, 503);
	}
}

Test(serve_work, what_has_no_samples_is_not_asked_for_again)
{
	unsigned int status;

	for (int i = 0; i < 3; i++) {
		cr_expect_eq(answered(-ENODATA, &status), i == 0, "%d", i);
		cr_expect_eq(status, 404);
	}
}
