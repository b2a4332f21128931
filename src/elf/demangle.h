/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Names of C++ (Itanium ABI) and Rust (legacy and v0) as people write them. Thread-safe.
 *
 * There is no limit of time: libiberty counts the lifetimes of a Rust name up to the number of 64
 * bits that the name gives, and tells nothing meanwhile where it prints nothing. Who demangles what
 * strangers wrote does it in a worker, which has a limit.
 */
#ifndef RBPF_ELF_DEMANGLE_H
#define RBPF_ELF_DEMANGLE_H

#include <stdbool.h>

struct buf;

#define DEMANGLE_MAX_NAME   8192  /* bytes of a mangled name; longer ones are left alone */
#define DEMANGLE_MAX_OUTPUT 32768 /* a name that becomes longer is left alone */

/*
 * Append what @name stands for to @out. Returns false, and leaves @out alone, if it is not mangled.
 *
 * As in perf without -v, functions are without their parameters: a frame is to be recognised, and
 * overloads are told apart by their lines. The hash that ends a name of Rust is left out, and what
 * compilers append to a part or copy of a function (".cold", ".constprop.0") is kept as in C.
 */
bool demangle(const char *name, struct buf *out);

#endif
