/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef RBPF_REQUEST_BUILTIN_H
#define RBPF_REQUEST_BUILTIN_H

/* rules.txt. */
extern const char request_builtin_rules[];

#endif
