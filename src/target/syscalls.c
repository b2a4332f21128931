/* SPDX-License-Identifier: GPL-2.0-only */
#include "target/syscalls.h"

#include <stddef.h>
#include <sys/syscall.h>

#include "base/array.h"

/* arm64 has only the newer one of some pairs. */
static const struct {
	long number;
	const char *name;
} names[] = {
#define CALL(name)                                                                                 \
	{                                                                                          \
		SYS_##name, #name                                                                  \
	}
	CALL(accept),
	CALL(accept4),
	CALL(clock_nanosleep),
	CALL(connect),
	CALL(copy_file_range),
	CALL(epoll_pwait),
	CALL(fallocate),
	CALL(fcntl),
	CALL(fdatasync),
	CALL(flock),
	CALL(fsync),
	CALL(futex),
	CALL(getdents64),
	CALL(io_getevents),
	CALL(io_uring_enter),
	CALL(mq_timedreceive),
	CALL(mq_timedsend),
	CALL(msgrcv),
	CALL(msgsnd),
	CALL(nanosleep),
	CALL(openat),
	CALL(ppoll),
	CALL(pread64),
	CALL(pselect6),
	CALL(pwrite64),
	CALL(read),
	CALL(readv),
	CALL(recvfrom),
	CALL(recvmmsg),
	CALL(recvmsg),
	CALL(rt_sigsuspend),
	CALL(rt_sigtimedwait),
	CALL(semop),
	CALL(semtimedop),
	CALL(sendfile),
	CALL(sendmmsg),
	CALL(sendmsg),
	CALL(sendto),
	CALL(splice),
	CALL(sync),
	CALL(sync_file_range),
	CALL(wait4),
	CALL(waitid),
	CALL(write),
	CALL(writev),
#ifdef SYS_epoll_wait
	CALL(epoll_wait),
#endif
#ifdef SYS_pause
	CALL(pause),
#endif
#ifdef SYS_poll
	CALL(poll),
#endif
#ifdef SYS_select
	CALL(select),
#endif
#undef CALL
};

const char *syscall_name(int64_t number)
{
	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (names[i].number == number)
			return names[i].name;
	return NULL;
}
