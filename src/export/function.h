/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * What formats that know functions and threads say of them.
 */
#ifndef RBPF_EXPORT_FUNCTION_H
#define RBPF_EXPORT_FUNCTION_H

#include <stdbool.h>
#include <stdint.h>

struct buf;
struct err;
struct profile;

/* The strings are the profile's. */
struct function {
	const char *name;   /* never empty */
	const char *file;   /* source file; "" if there is none, as of methods in C, whose frames
			     * have their callers' file */
	const char *module; /* path of the program or library that it is in; "" if not native */
	uint32_t line;	    /* of the definition; 0 if it is not known */
};

#define FUNCTION_INIT(name_)                                                                       \
	{                                                                                          \
		.name = (name_), .file = "", .module = ""                                          \
	}

/* The name of a function that stands for the stack of a sample that has none. */
#define FUNCTION_NONE "[no stack]"

/*
 * Where a function is, for formats that show one place, whatever it is: its source file, else its
 * module, else "". Not for what readers open as source: pprof -list prints the bytes of a module.
 */
const char *function_place(const struct function *f);

/* The function of a frame: the same of all frames of one group (GROUP_BY_FUNCTION). */
void function_of_frame(const struct profile *p, uint32_t frame, struct function *ret);

/*
 * Append the title of a thread: "puma: puma srv tp 001 (pid 4242, tid 4250)"; of the index behind
 * all threads that of who is not recorded (view/owner.h).
 */
void function_thread_title(const struct profile *p, uint32_t thread, struct buf *out);

/*
 * The first process of which a thread is in @threads (by thread id), PROFILE_NONE if there is none;
 * *@several is set to whether there are more.
 */
uint32_t function_process(const struct profile *p, const bool *threads, bool *several);

/* @r, with the words for it in @err if there are none yet (tree_error()). */
int export_error(int r, struct err *err);

#endif
