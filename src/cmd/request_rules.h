/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef RBPF_CMD_REQUEST_RULES_H
#define RBPF_CMD_REQUEST_RULES_H

#include <stdbool.h>

struct err;
struct request_rules;

/*
 * The rules that are built in and, after them, those of the file @path (NULL: none), into @ret:
 * request_rules_deinit(). Without @paths those that read paths are left out. Returns 0, or with
 * ERR_USAGE that the file cannot be read, or which line of it is wrong; or -ENOMEM.
 */
int cmd_request_rules(const char *path, bool paths, struct request_rules *ret, struct err *err);

#endif
