/* SPDX-License-Identifier: GPL-2.0-only */
#include "base/thread.h"

#include <signal.h>

bool thread_begin(pthread_t *ret, void *(*run)(void *), void *arg)
{
	sigset_t all, before;
	bool begun;

	sigfillset(&all);
	if (pthread_sigmask(SIG_SETMASK, &all, &before))
		return false;
	begun = !pthread_create(ret, NULL, run, arg);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return begun;
}
