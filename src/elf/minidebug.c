/* SPDX-License-Identifier: GPL-2.0-only */
#include "elf/minidebug.h"

#include <errno.h>
#include <lzma.h>
#include <stdint.h>

#include "base/buf.h"

static int error_of(lzma_ret ret)
{
	switch (ret) {
	case LZMA_MEM_ERROR:
		return -ENOMEM;
	case LZMA_MEMLIMIT_ERROR:
		return -E2BIG;
	default:
		return -EBADMSG;
	}
}

int minidebug_uncompress(const void *data, size_t size, struct buf *out)
{
	lzma_stream stream = LZMA_STREAM_INIT;
	uint8_t chunk[16384];
	lzma_ret ret;
	int r = 0;

	if (size > MINIDEBUG_MAX_BYTES)
		return -E2BIG;
	ret = lzma_stream_decoder(&stream, MINIDEBUG_MAX_MEMORY, 0);
	stream.next_in = data;
	stream.avail_in = size;
	while (ret == LZMA_OK && !r) {
		stream.next_out = chunk;
		stream.avail_out = sizeof(chunk);
		ret = lzma_code(&stream, LZMA_FINISH);
		buf_add(out, chunk, sizeof(chunk) - stream.avail_out);
		if (stream.total_out > MINIDEBUG_MAX_BYTES)
			r = -E2BIG;
		else if (buf_failed(out))
			r = -ENOMEM;
	}
	lzma_end(&stream);
	return r || ret == LZMA_STREAM_END ? r : error_of(ret);
}
