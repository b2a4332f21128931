/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Starting a program that is to be recorded from its first instruction: the child exists, with its
 * final identity, and waits before exec until it is told to go.
 */
#ifndef RBPF_TARGET_LAUNCH_H
#define RBPF_TARGET_LAUNCH_H

#include <stdbool.h>
#include <sys/types.h>

struct err;

struct launch {
	pid_t pid;
	int go_fd; /* a byte written lets the child execute its program; closed, it ends; owned */
	int result_fd; /* the errno of a failed exec comes from it; owned */
};

#define LAUNCH_INIT                                                                                \
	{                                                                                          \
		.pid = -1, .go_fd = -1, .result_fd = -1                                            \
	}

/*
 * Fork a child that will execute @argv. Under sudo it becomes the invoking user (with that user's
 * groups and HOME, USER, LOGNAME), unless @as_root.
 */
int launch_prepare(char *const *argv, bool as_root, struct launch *ret, struct err *err);

/* Let it go. Fails with ERR_TARGET if the program cannot be executed. */
int launch_go(struct launch *l, const char *program, struct err *err);

/* True if it has ended; *@status is as of wait(2). Does not block unless @block. */
bool launch_ended(struct launch *l, bool block, int *status);

/* A child that was never let go ends without executing anything. */
void launch_deinit(struct launch *l);

#endif
