/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Names of functions in the file of the VM that tell what a native frame is for. (For the two that
 * interpret Ruby code see interpreter.h: they are found where they have no name, too.)
 */
#ifndef RBPF_RUBY_FUNCTIONS_H
#define RBPF_RUBY_FUNCTIONS_H

#include <stdbool.h>

/* Whether a function of this name only calls methods and blocks (glue). */
bool ruby_function_is_glue(const char *name);

/* Whether a function of this name is an entry point of the garbage collector. */
bool ruby_function_is_collection(const char *name);

/*
 * Whether the name tells that a function allocates: it may begin a collection, but none calls it.
 * These are the ones that a stripped build has names of, too.
 */
bool ruby_function_allocates(const char *name);

#endif
