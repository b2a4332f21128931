/* SPDX-License-Identifier: GPL-2.0-only */
#include "target/selection.h"

#include <errno.h>
#include <limits.h>
#include <pwd.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/parse.h"
#include "target/process.h"

#define CGROUP_MOUNT "/sys/fs/cgroup"

static int set_command(struct selection *sel, const char *pattern, struct err *err)
{
	char why[160];
	int r = regcomp(&sel->command, pattern, REG_EXTENDED | REG_NOSUB);

	sel->has_command = !r;
	if (!r)
		return 0;
	regerror(r, &sel->command, why, sizeof(why));
	return err_set(err, -EINVAL, ERR_USAGE, "--comm '%s' is no regular expression: %s", pattern,
		       why);
}

static int set_user(struct selection *sel, const char *user, struct err *err)
{
	const struct passwd *pw = getpwnam(user);
	uint64_t uid;

	sel->has_user = true;
	if (pw)
		sel->user = pw->pw_uid;
	else if (!parse_u64(user, "user", 0, UINT_MAX - 1, &uid, NULL))
		sel->user = (uid_t)uid;
	else
		return err_set(err, -EINVAL, ERR_USAGE, "no user '%s'", user);
	return 0;
}

int selection_init(struct selection *sel, const char *command, const char *cgroup,
		   const char *container, const char *user, struct err *err)
{
	size_t mount = strlen(CGROUP_MOUNT);
	int r = 0;

	*sel = (struct selection)SELECTION_INIT;
	if (cgroup && !strncmp(cgroup, CGROUP_MOUNT "/", mount + 1))
		cgroup += mount;
	if (cgroup && cgroup[0] != '/')
		return err_set(err, -EINVAL, ERR_USAGE,
			       "--cgroup takes a path that begins with '/', not '%s'", cgroup);
	sel->cgroup = cgroup;
	sel->container = container;
	if (command)
		r = set_command(sel, command, err);
	if (!r && user)
		r = set_user(sel, user, err);
	return r;
}

void selection_deinit(struct selection *sel)
{
	if (sel->has_command)
		regfree(&sel->command);
	*sel = (struct selection)SELECTION_INIT;
}

static bool below(const char *path, const char *dir)
{
	size_t len = strlen(dir);

	while (len && dir[len - 1] == '/')
		len--;
	return !strncmp(path, dir, len) && (path[len] == '/' || !path[len]);
}

bool selection_is_all(const struct selection *sel)
{
	return !sel->has_command && !sel->cgroup && !sel->container && !sel->has_user;
}

bool selection_cgroup_exists(const struct selection *sel)
{
	char path[PATH_MAX];

	/* Those of version 1 have a hierarchy for each controller. */
	if (!sel->cgroup || access(CGROUP_MOUNT "/cgroup.controllers", F_OK))
		return true;
	snprintf(path, sizeof(path), "%s%s", CGROUP_MOUNT, sel->cgroup);
	return !access(path, F_OK) || errno != ENOENT;
}

bool selection_has(const struct selection *sel, const struct process *process)
{
	char comm[16];

	if (sel->has_user && process->context.uid != sel->user)
		return false;
	if (sel->cgroup && !below(process->context.cgroup, sel->cgroup))
		return false;
	if (sel->container &&
	    (!process->context.container[0] ||
	     strncmp(process->context.container, sel->container, strlen(sel->container))))
		return false;
	if (!sel->has_command || !regexec(&sel->command, process->cmdline, 0, NULL, 0))
		return true;
	return !thread_name(process->pid, process->pid, comm) &&
	       !regexec(&sel->command, comm, 0, NULL, 0);
}
