/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Compression is zlib's level 1, about 200 ns a sample. Much of a sample is the low bits of its
 * time and its weight, which no level can press: on synthetic recordings (1 and 8 threads, 99 and
 * 999 Hz, dithered period; bytes a sample 14.4 raw, 10.9 at level 1) level 3 saves 1 to 3 % more of
 * the file for up to 1.2 times the CPU time, level 6 saves 2 to 6 % for up to 2.6 times.
 */
#include "profile/chunk_writer.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/array.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/write_behind.h"
#include "profile/chunk.h"
#include "profile/output.h"

static int fail(struct chunk_writer *w, int code, const char *what)
{
	return err_set(&w->err, code, ERR_RUNTIME, "cannot %s %s: %s", what, w->name,
		       strerror(-code));
}

/* The same from the thread that writes. */
static int fail_written(struct chunk_writer *w, const struct err *err)
{
	pthread_mutex_lock(&w->written.lock);
	w->written.err = *err;
	pthread_mutex_unlock(&w->written.lock);
	return err->code;
}

static int cannot_write(const struct chunk_writer *w, int code, struct err *err)
{
	return err_set(err, code, ERR_RUNTIME, "cannot write %s: %s", w->name, strerror(-code));
}

int chunk_writer_oom(struct chunk_writer *w)
{
	return err_oom(&w->err);
}

/* Drop @n bytes from the front of @iov. */
static void iov_advance(struct iovec **iov, int *cnt, size_t n)
{
	while (*cnt && n >= (*iov)->iov_len) {
		n -= (*iov)->iov_len;
		(*iov)++;
		(*cnt)--;
	}
	if (*cnt) {
		(*iov)->iov_base = (char *)(*iov)->iov_base + n;
		(*iov)->iov_len -= n;
	}
}

static int writev_full(int fd, struct iovec *iov, int cnt, uint64_t *done)
{
	while (cnt) {
		ssize_t n = writev(fd, iov, cnt);

		if (n > 0) {
			*done += (uint64_t)n;
			iov_advance(&iov, &cnt, (size_t)n);
		} else if (n == 0) {
			return -EIO;
		} else if (errno == EAGAIN) {
			/* Standard output may be a pipe that somebody made non-blocking. */
			struct pollfd pfd = { .fd = fd, .events = POLLOUT };

			(void)poll(&pfd, 1, -1);
		} else if (errno != EINTR) {
			return -errno;
		}
	}
	return 0;
}

/*
 * Sync what was written, unless more is to be written at once: a disk that is behind would not
 * catch up.
 */
static int sync_written(struct chunk_writer *w, bool more)
{
	const uint64_t now = clock_ns(CLOCK_MONOTONIC);

	if (!w->sync || (more && now - w->synced_ns < RBPF_FILE_CHUNK_AGE_NS))
		return 0;
	w->synced_ns = now;
	/* Pipes and some devices cannot be synced, and need not be. */
	return fdatasync(w->out.fd) && errno != EINVAL && errno != EROFS ? -errno : 0;
}

/* Write @len bytes, those of the @n of @iov. In the thread that writes, if there is one. */
static int write_out(struct chunk_writer *w, struct iovec *iov, int n, size_t len)
{
	struct chunk_written *written = &w->written;
	uint64_t left, free, done = 0;
	struct err err = { 0 };
	bool has_samples;
	int r;

	r = writev_full(w->out.fd, iov, n, &done);
	pthread_mutex_lock(&written->lock);
	written->bytes += done;
	left = written->left -= len;
	has_samples = written->sampled && written->bytes >= written->sampled;
	pthread_mutex_unlock(&written->lock);
	/* Before it is synced, so that its name survives a power loss, too. */
	if (!r && has_samples && output_take_name(&w->out, &err))
		return fail_written(w, &err);
	if (!r)
		r = sync_written(w, left);
	if (r) {
		cannot_write(w, r, &err);
		return fail_written(w, &err);
	}
	free = file_limit_free(&w->limit, w->out.fd);
	if (free != UINT64_MAX)
		free = free > left ? free - left : 0;
	pthread_mutex_lock(&written->lock);
	written->free = free;
	if (!written->full.code)
		(void)file_limit_space(&w->limit, free, w->name, &written->full);
	pthread_mutex_unlock(&written->lock);
	return 0;
}

static int write_piece(void *arg, const void *data, size_t len)
{
	struct iovec iov = { (void *)data, len };

	return write_out(arg, &iov, 1, len);
}

int chunk_writer_poll(struct chunk_writer *w)
{
	pthread_mutex_lock(&w->written.lock);
	if (!w->err.code && w->written.err.code) {
		w->err = w->written.err;
		w->bytes = w->written.bytes;
	}
	if (!w->full.code)
		w->full = w->written.full;
	pthread_mutex_unlock(&w->written.lock);
	return w->err.code;
}

int chunk_writer_write_behind(struct chunk_writer *w)
{
	return write_behind_new(write_piece, w, CHUNK_WRITER_BEHIND, &w->behind)
		       ? chunk_writer_oom(w)
		       : 0;
}

/* Have the bytes of the @n of @iov written. */
static int put(struct chunk_writer *w, struct iovec *iov, int n, bool has_samples)
{
	size_t len = 0;
	int r;

	for (int i = 0; i < n; i++)
		len += iov[i].iov_len;
	w->bytes += len;
	pthread_mutex_lock(&w->written.lock);
	w->written.left += len;
	if (has_samples && !w->written.sampled)
		w->written.sampled = w->bytes;
	pthread_mutex_unlock(&w->written.lock);
	if (w->behind)
		r = write_behind_addv(w->behind, iov, n);
	else
		r = write_out(w, iov, n, len);
	return r == -ENOMEM ? chunk_writer_oom(w) : chunk_writer_poll(w);
}

/*
 * Compress @raw into w->stored if that makes it smaller. *@len is the length of the result, 0 if
 * @raw is to be stored as it is.
 */
static int compress_chunk(struct chunk_writer *w, const struct buf *raw, uint32_t *len)
{
	z_stream *z = &w->zlib;

	*len = 0;
	if (!w->zlib_ready)
		return 0;
	if (array_reserve(w->stored, w->cap_stored, raw->len))
		return -ENOMEM;
	if (deflateReset(z) != Z_OK)
		return -EINVAL;
	z->next_in = (Bytef *)raw->data;
	z->avail_in = (uInt)raw->len;
	z->next_out = w->stored;
	z->avail_out = (uInt)raw->len;
	/* It did not fit if this is not the end: then it is not smaller either. */
	if (deflate(z, Z_FINISH) == Z_STREAM_END)
		*len = (uint32_t)z->total_out;
	return 0;
}

int chunk_writer_write(struct chunk_writer *w, enum rbpf_chunk_type type, const struct buf *raw,
		       bool has_samples)
{
	static const uint8_t zeros[RBPF_CHUNK_ALIGN];
	uint8_t header[sizeof(struct rbpf_chunk_header)];
	const void *payload = raw->data;
	struct iovec iov[3];
	uint32_t len = 0;
	uint8_t flags = 0;
	int r;

	r = compress_chunk(w, raw, &len);
	if (r)
		return fail(w, r, "compress");
	if (len) {
		payload = w->stored;
		flags |= RBPF_CHUNK_ZLIB;
	} else {
		len = (uint32_t)raw->len;
	}
	if (type == RBPF_CHUNK_SOURCE)
		flags |= RBPF_CHUNK_IGNORABLE;
	chunk_header_pack(type, flags, payload, len, (uint32_t)raw->len, header);

	iov[0] = (struct iovec) { header, sizeof(header) };
	iov[1] = (struct iovec) { (void *)payload, len };
	iov[2] = (struct iovec) { (void *)zeros, chunk_padding(len) };
	r = put(w, iov, ARRAY_SIZE(iov), has_samples);
	if (!r && !w->full.code)
		(void)file_limit_size(&w->limit, w->bytes, &w->full);
	return r;
}

static int write_header(struct chunk_writer *w, uint16_t major, uint64_t start_realtime_ns,
			uint64_t start_monotonic_ns)
{
	uint8_t header[sizeof(struct rbpf_file_header)];
	struct iovec iov = { header, sizeof(header) };

	file_header_pack(major, start_realtime_ns, start_monotonic_ns, header);
	return put(w, &iov, 1, false);
}

static int open_output(struct chunk_writer *w, const struct chunk_output *out)
{
	int r;

	if (!out->path) {
		w->out.fd = fcntl(out->memory, F_DUPFD_CLOEXEC, 0);
		return w->out.fd < 0 ? fail(w, -errno, "write") : 0;
	}
	r = output_open(out->path, out->force, &w->out, &w->err);
	if (!r)
		file_limit_init(&w->limit, w->out.fd, out->max_bytes);
	return r;
}

int chunk_writer_init(struct chunk_writer *w, const struct chunk_output *out, uint16_t major,
		      uint64_t start_realtime_ns, uint64_t start_monotonic_ns)
{
	int r;

	*w = (struct chunk_writer) { .out = OUTPUT_INIT,
				     .sync = out->sync,
				     .written.lock = PTHREAD_MUTEX_INITIALIZER,
				     .written.free = UINT64_MAX };
	/* All that needs memory, before a file is touched. */
	w->name = strdup(out->path ? output_name(out->path) : "memory");
	if (!w->name || (out->path && deflateInit(&w->zlib, Z_BEST_SPEED) != Z_OK))
		return chunk_writer_oom(w);
	w->zlib_ready = out->path;
	r = open_output(w, out);
	return r ? r : write_header(w, major, start_realtime_ns, start_monotonic_ns);
}

void chunk_writer_deinit(struct chunk_writer *w)
{
	write_behind_end(w->behind);
	output_close(&w->out);
	if (w->zlib_ready)
		deflateEnd(&w->zlib);
	free(w->name);
	free(w->stored);
	*w = (struct chunk_writer) { .out = OUTPUT_INIT };
}

bool chunk_writer_has_room(struct chunk_writer *w, uint64_t bytes)
{
	uint64_t free;

	pthread_mutex_lock(&w->written.lock);
	free = w->written.free;
	pthread_mutex_unlock(&w->written.lock);
	return file_limit_has_room(&w->limit, free, bytes);
}

int chunk_writer_close(struct chunk_writer *w, bool complete)
{
	int r;

	write_behind_end(w->behind);
	w->behind = NULL;
	chunk_writer_poll(w);
	if (complete && !w->err.code)
		output_take_name(&w->out, &w->err);
	/* A network file system may report a full disk only now. */
	r = output_close(&w->out);
	if (r && r != -EINTR && !w->err.code)
		return fail(w, r, "write");
	return w->err.code;
}
