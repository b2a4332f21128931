/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Growing plain arrays: `struct x *v; size_t n, cap;` stay visible in the owner's struct.
 */
#ifndef RBPF_BASE_ARRAY_H
#define RBPF_BASE_ARRAY_H

#include <stddef.h>

#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

/*
 * Make room for @want elements of @elem bytes in *@ptr, at least doubling. The new room is zeroed,
 * but what was recycled is not.
 * @elem is not 0. Returns 0, or -ENOMEM (also when the size overflows), leaving all as it was.
 */
int array_reserve_raw(void **ptr, size_t *cap, size_t want, size_t elem);

/*
 * The same, but the new room is not zeroed, nor even touched: for elements that are written as a
 * whole before they are read.
 */
int array_room_raw(void **ptr, size_t *cap, size_t want, size_t elem);

/*
 * The array is to be filled anew: keep its room, which would cost page faults again, unless the
 * @used elements that it had were less than a quarter of it. Then it is freed.
 */
void array_recycle_raw(void **ptr, size_t *cap, size_t used);

#define array_recycle(v, cap, used) array_recycle_raw((void **)&(v), &(cap), (used))
/* Mostly there is room: to call a function that says so took 5 % of rbpf's time as it records. */
static inline int array_reserve_fast(void **ptr, size_t *cap, size_t want, size_t elem)
{
	return want <= *cap ? 0 : array_reserve_raw(ptr, cap, want, elem);
}

static inline int array_room_fast(void **ptr, size_t *cap, size_t want, size_t elem)
{
	return want <= *cap ? 0 : array_room_raw(ptr, cap, want, elem);
}

#define array_reserve(v, cap, want) array_reserve_fast((void **)&(v), &(cap), (want), sizeof(*(v)))
#define array_room(v, cap, want)    array_room_fast((void **)&(v), &(cap), (want), sizeof(*(v)))

#endif
