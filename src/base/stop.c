/* SPDX-License-Identifier: GPL-2.0-only */
#include "base/stop.h"

#include <signal.h>
#include <stddef.h>
#include <unistd.h>

#include "base/array.h"
#include "base/clock.h"

#define SIGNALS_TO_EXIT 3

/* Lock-free on the machines that rbpf runs on, so a handler may write it. */
static _Atomic uint64_t asked_ns;   /* CLOCK_MONOTONIC: by the first signal; 0: by none */
static _Atomic uint64_t counted_ns; /* CLOCK_MONOTONIC: of the last one that was counted */
static volatile sig_atomic_t signals;
static volatile sig_atomic_t last_signal;
static volatile sig_atomic_t sent_by_process;
static uint64_t until_ns; /* stop_at() */

static void handle(int sig, siginfo_t *info, void *context)
{
	const uint64_t now = clock_ns(CLOCK_MONOTONIC);
	const bool by_process = info->si_code <= 0;

	(void)context;
	if (by_process && signals && now - counted_ns < STOP_SAME_NS)
		return;
	last_signal = sig;
	sent_by_process = by_process;
	counted_ns = now;
	if (!asked_ns)
		asked_ns = now;
	if (++signals >= SIGNALS_TO_EXIT)
		_exit(130);
}

void stop_catch_signals(void)
{
	static const int caught[] = { SIGINT, SIGTERM, SIGHUP };
	struct sigaction sa = { .sa_sigaction = handle, .sa_flags = SA_SIGINFO }, old;
	size_t i;

	sigfillset(&sa.sa_mask);
	for (i = 0; i < ARRAY_SIZE(caught); i++)
		if (!sigaction(caught[i], NULL, &old) && old.sa_handler != SIG_IGN)
			sigaction(caught[i], &sa, NULL);
}

unsigned int stop_signals(void)
{
	return (unsigned int)signals;
}

int stop_signal(bool *by_process)
{
	*by_process = sent_by_process;
	return last_signal;
}

void stop_at(uint64_t ns)
{
	until_ns = ns;
}

bool stop_overdue(void)
{
	uint64_t asked = asked_ns, now;

	if (signals >= 2)
		return true;
	if (!asked && !until_ns)
		return false;
	now = clock_ns(CLOCK_MONOTONIC);
	return (asked && now >= asked + STOP_GRACE_NS) ||
	       (until_ns && now >= until_ns + STOP_GRACE_NS);
}
