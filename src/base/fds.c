/* SPDX-License-Identifier: GPL-2.0-only */
#include "base/fds.h"

#include <fcntl.h>
#include <string.h>
#include <sys/resource.h>

#include "base/buf.h"
#include "base/io.h"
#include "base/parse.h"

/* fs.nr_open, at most FDS_MAX; 0 if it cannot be read. */
static rlim_t kernel_limit(void)
{
	struct buf text _cleanup_buf_ = BUF_INIT;
	uint64_t limit;

	if (io_read_file(AT_FDCWD, "/proc/sys/fs/nr_open", 64, &text) || !text.len)
		return 0;
	text.data[strcspn(text.data, "\n")] = '\0';
	if (parse_u64(text.data, "fs.nr_open", 0, UINT64_MAX, &limit, NULL))
		return 0;
	return limit < FDS_MAX ? limit : FDS_MAX;
}

static struct rlimit before; /* of fds_raise_limit(); rlim_max 0: it has not been called */

static void raise_limit(struct rlimit lim)
{
	const rlim_t most = kernel_limit();
	const struct rlimit more = { .rlim_cur = most, .rlim_max = most };

	if (lim.rlim_max < most && !setrlimit(RLIMIT_NOFILE, &more))
		return;
	lim.rlim_cur = lim.rlim_max;
	setrlimit(RLIMIT_NOFILE, &lim);
}

size_t fds_raise_limit(void)
{
	struct rlimit lim;

	if (getrlimit(RLIMIT_NOFILE, &lim))
		return FDS_MAX;
	if (!before.rlim_max)
		before = lim;
	raise_limit(lim);
	return getrlimit(RLIMIT_NOFILE, &lim) ? FDS_MAX : lim.rlim_cur;
}

void fds_restore_limit(void)
{
	if (before.rlim_max)
		setrlimit(RLIMIT_NOFILE, &before);
}

bool fds_may_keep(int fd)
{
	struct rlimit lim;

	return getrlimit(RLIMIT_NOFILE, &lim) || (rlim_t)fd + FDS_RESERVE < lim.rlim_cur;
}

size_t fds_share(size_t want)
{
	struct rlimit lim;

	if (getrlimit(RLIMIT_NOFILE, &lim) || lim.rlim_cur / 16 >= want)
		return want;
	return lim.rlim_cur < 16 ? 1 : (size_t)lim.rlim_cur / 16;
}
