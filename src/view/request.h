/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Kinds of requests (struct profile_request_kind) in views: their names, and the rows of a flat
 * profile by them. Kind 0 is that of samples of no request. The kind behind all others is that of
 * who ended a wait and is not recorded (profile_stack_not_recorded()).
 */
#ifndef RBPF_VIEW_REQUEST_H
#define RBPF_VIEW_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;
struct flat;
struct profile;
struct profile_aggregate;
struct view_selection;

/* Kinds are below this, but for that of who is not recorded, which is this. */
size_t request_kinds(const struct profile *p);

/* The kind that the samples of @a are shown as, of a profile that is by_request. */
uint32_t request_shown_of(const struct profile *p, const struct profile_aggregate *a);

/*
 * The name of a kind: "OrdersController#index", "[no request]", or "[unknown request]" if it could
 * not be told, or "[not a recorded thread]".
 */
const char *request_label(const struct profile *p, uint32_t kind);

/* The word for its framework: "rails"; "" if there is none. */
const char *request_framework(const struct profile *p, uint32_t kind);

/*
 * Whether a server alone tells requests of this kind, of those that src/request/rules.txt has.
 * Where a framework in it tells more, the time before and after that is of the server, and each of
 * the two is a request of its own.
 */
bool request_is_of_server(const struct profile *p, uint32_t kind);

/*
 * The place of each kind in the order of names: an array by kind. Returns 0 or -ENOMEM. *@ret:
 * free().
 */
int request_ranks(const struct profile *p, uint32_t **ret);

/*
 * Append a row for each kind that has selected samples to @flat, in no order. Returns 0, -ENOMEM,
 * or -EINVAL if @p is not by_request.
 */
int request_rows(const struct profile *p, const struct view_selection *sel, struct flat *flat);

#endif
