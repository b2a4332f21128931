/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Selects processes of the machine by command line, cgroup, container and user. A condition that is
 * not given matches all; those that are given must all match.
 */
#ifndef RBPF_TARGET_SELECTION_H
#define RBPF_TARGET_SELECTION_H

#include <regex.h>
#include <stdbool.h>
#include <sys/types.h>

struct err;
struct process;

struct selection {
	bool has_command;
	regex_t command; /* POSIX extended, somewhere in the command line or the comm */
	const char
		*cgroup; /* path of a cgroup, from the root of the hierarchy: it and those below */
	const char *container; /* the id's beginning, or an LXC or machine name */
	bool has_user;
	uid_t user; /* the real uid */
};

#define SELECTION_INIT                                                                             \
	{                                                                                          \
		0                                                                                  \
	}

/*
 * The selection of these options, each NULL if it was not given. @cgroup may begin with the place
 * where the hierarchy is mounted (/sys/fs/cgroup), @user is a name or a uid. The strings must
 * outlive it. Returns 0 or an error of usage.
 */
int selection_init(struct selection *sel, const char *command, const char *cgroup,
		   const char *container, const char *user, struct err *err);
void selection_deinit(struct selection *sel);

/* Whether it matches all processes. */
bool selection_is_all(const struct selection *sel);

/* Whether its control group is there now. True, too, if that cannot be told. */
bool selection_cgroup_exists(const struct selection *sel);

bool selection_has(const struct selection *sel, const struct process *process);

#endif
