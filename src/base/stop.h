/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The request to stop, by a signal or because the time is up. Every loop whose length a target can
 * choose must check it.
 *
 * A signal handler gets no pointer, so this is state of the whole process. One
 * that is asked to stop may finish what it does for STOP_GRACE_NS more; from then on stop_overdue()
 * is true, and what is not known yet remains unknown: nothing is looked up, read or named any more.
 */
#ifndef RBPF_BASE_STOP_H
#define RBPF_BASE_STOP_H

#include <stdbool.h>
#include <stdint.h>

#define STOP_GRACE_NS 500000000ull

/*
 * A signal that a process sends so soon after another one is the same wish, and not counted:
 * timeout(1) sends its signal to its child, and then to the process group of both; systemd-logind
 * ends a session with SIGTERM and SIGHUP. What is typed at the terminal is always counted.
 */
#define STOP_SAME_NS  250000000ull

/*
 * Take SIGINT, SIGTERM and SIGHUP as the wish to stop. One that is ignored already stays so: that
 * is how nohup and a shell's background jobs ask for it. The third signal ends the process at once.
 */
void stop_catch_signals(void);

/* The number of signals so far that were counted. */
unsigned int stop_signals(void);

/* The last of them; 0 if none has come. *@by_process: it was sent, not typed at the terminal. */
int stop_signal(bool *by_process);

/* Act at @ns, CLOCK_MONOTONIC, as if a signal had come then. 0: cancel that. */
void stop_at(uint64_t ns);

/* Whether the process was asked to stop STOP_GRACE_NS ago, or twice by signals. */
bool stop_overdue(void);

#endif
