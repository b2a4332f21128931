/* SPDX-License-Identifier: GPL-2.0-only */
#include <criterion/criterion.h>

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/write_behind.h"

#define MAX_BYTES 200

/* What a slow file got. */
struct file {
	struct buf got;
	size_t calls, fail_at; /* the call that fails, counted from 1; 0 for none */
	useconds_t slow;
	pthread_t writer;
	sigset_t blocked; /* in the writer */
};

static int write_file(void *arg, const void *data, size_t len)
{
	struct file *f = arg;

	if (f->slow)
		usleep(f->slow);
	f->writer = pthread_self();
	pthread_sigmask(SIG_SETMASK, NULL, &f->blocked);
	if (++f->calls == f->fail_at)
		return -ENOSPC;
	buf_add(&f->got, data, len);
	return 0;
}

static void add_number(struct buf *expected, struct write_behind *w, unsigned int i)
{
	struct buf text = BUF_INIT;

	/* Of growing length, so that pieces that are used again have to grow. */
	buf_addf(&text, "%0*u;", (int)(i % 97) + 1, i);
	buf_add(expected, text.data, text.len);
	cr_assert_eq(write_behind_add(w, text.data, text.len), 0);
	/* It is a copy. */
	memset(text.data, 'x', text.len);
	buf_deinit(&text);
}

static void expect_all_in_order(struct file *f)
{
	struct buf expected = BUF_INIT;
	struct write_behind *w;

	cr_assert_eq(write_behind_new(write_file, f, MAX_BYTES, &w), 0);
	for (unsigned int i = 0; i < 500; i++)
		add_number(&expected, w, i);
	cr_expect_eq(write_behind_end(w), 0);
	cr_expect_eq(f->calls, 500);
	cr_assert_eq(f->got.len, expected.len);
	cr_expect_arr_eq(f->got.data, expected.data, expected.len);
	buf_deinit(&f->got);
	buf_deinit(&expected);
}

Test(write_behind, writes_all_in_order)
{
	struct file f = { 0 };

	expect_all_in_order(&f);
}

Test(write_behind, a_slow_file_is_waited_for)
{
	struct file f = { .slow = 500 };

	expect_all_in_order(&f);
}

Test(write_behind, another_thread_writes_and_gets_no_signals)
{
	struct file f = { 0 };
	struct write_behind *w;

	cr_assert_eq(write_behind_new(write_file, &f, MAX_BYTES, &w), 0);
	cr_expect_eq(write_behind_add(w, "a", 1), 0);
	cr_expect_eq(write_behind_end(w), 0);
	cr_expect_not(pthread_equal(f.writer, pthread_self()));
	cr_expect(sigismember(&f.blocked, SIGINT) && sigismember(&f.blocked, SIGTERM));
	pthread_sigmask(SIG_SETMASK, NULL, &f.blocked);
	cr_expect_not(sigismember(&f.blocked, SIGINT), "the caller's signals are as before");
	buf_deinit(&f.got);
}

Test(write_behind, a_failure_is_told_and_ends_the_writing)
{
	struct file f = { .fail_at = 3 };
	struct write_behind *w;
	int r = 0;
	size_t n = 0;

	cr_assert_eq(write_behind_new(write_file, &f, MAX_BYTES, &w), 0);
	while (!r && n++ < 100)
		r = write_behind_add(w, "abc", 3);
	cr_expect_eq(r, -ENOSPC);
	cr_expect_leq(n, 3 + MAX_BYTES / 3 + 1);
	cr_expect_eq(write_behind_add(w, "abc", 3), -ENOSPC);
	cr_expect_eq(write_behind_end(w), -ENOSPC);
	cr_expect_eq(f.calls, 3);
	cr_expect_str_eq(buf_str(&f.got), "abcabc");
	buf_deinit(&f.got);
}

Test(write_behind, a_failure_of_the_last_is_told_at_the_end)
{
	struct file f = { .fail_at = 1, .slow = 1000 };
	struct write_behind *w;

	cr_assert_eq(write_behind_new(write_file, &f, MAX_BYTES, &w), 0);
	cr_expect_eq(write_behind_add(w, "abc", 3), 0);
	cr_expect_eq(write_behind_end(w), -ENOSPC);
	buf_deinit(&f.got);
}

Test(write_behind, nothing_is_nothing)
{
	struct file f = { 0 };
	struct write_behind *w;

	cr_assert_eq(write_behind_new(write_file, &f, MAX_BYTES, &w), 0);
	cr_expect_eq(write_behind_end(w), 0);
	cr_expect_eq(write_behind_end(NULL), 0);
	cr_expect_eq(f.calls, 0);
}

struct gate {
	pthread_mutex_t lock;
	size_t got;
};

static int write_when_open(void *arg, const void *data, size_t len)
{
	struct gate *g = arg;

	(void)data;
	pthread_mutex_lock(&g->lock);
	g->got += len;
	pthread_mutex_unlock(&g->lock);
	return 0;
}

/* Nothing waits for a file that takes nothing for a while, as long as there is room. */
Test(write_behind, goes_on_while_the_file_hangs)
{
	struct gate g = { .lock = PTHREAD_MUTEX_INITIALIZER };
	char piece[MAX_BYTES / 10] = { 0 };
	const struct iovec iov[] = { { piece, 1 }, { piece, sizeof(piece) - 1 } };
	struct write_behind *w;

	cr_assert_eq(write_behind_new(write_when_open, &g, MAX_BYTES, &w), 0);
	pthread_mutex_lock(&g.lock);
	alarm(20);
	for (int i = 0; i < 10; i++)
		cr_assert_eq(write_behind_addv(w, iov, 2), 0);
	cr_expect_eq(g.got, 0);
	pthread_mutex_unlock(&g.lock);
	cr_expect_eq(write_behind_end(w), 0);
	cr_expect_eq(g.got, MAX_BYTES);
}

/* What is larger than all that is to be kept goes alone. */
Test(write_behind, one_piece_may_be_larger)
{
	static char large[3 * MAX_BYTES];
	struct file f = { .slow = 100 };
	struct write_behind *w;

	cr_assert_eq(write_behind_new(write_file, &f, MAX_BYTES, &w), 0);
	for (int i = 0; i < 3; i++)
		cr_assert_eq(write_behind_add(w, large, sizeof(large)), 0);
	cr_expect_eq(write_behind_end(w), 0);
	cr_expect_eq(f.got.len, 3 * sizeof(large));
	buf_deinit(&f.got);
}
