/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What formats that know functions and threads say of them.
 */
#ifndef RBPF_EXPORT_FUNCTION_H
#define RBPF_EXPORT_FUNCTION_H

#include <stdint.h>

struct buf;
struct err;
struct profile;

/* The strings are the profile's. */
struct function {
	const char *name; /* never empty */
	const char *file; /* source file; of native functions the module; "" if there is none, as of
			   * methods in C, whose frames have their callers' file */
	uint32_t line;	  /* of the definition; 0 if it is not known */
};

/* The name of a function that stands for the stack of a sample that has none. */
#define FUNCTION_NONE "[no stack]"

/* The function of a frame: the same of all frames of one group (GROUP_BY_FUNCTION). */
void function_of_frame(const struct profile *p, uint32_t frame, struct function *ret);

/* Append the title of a thread: "puma: puma srv tp 001 (pid 4242, tid 4250)". */
void function_thread_title(const struct profile *p, uint32_t thread, struct buf *out);

/* @r, with the words for it in @err if there are none yet (tree_error()). */
int export_error(int r, struct err *err);

#endif
