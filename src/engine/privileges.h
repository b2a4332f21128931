/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The capabilities of rbpf itself, once it is set up: loading BPF programs and entering the machine's
 * accounting take more than recording does.
 */
#ifndef RBPF_ENGINE_PRIVILEGES_H
#define RBPF_ENGINE_PRIVILEGES_H

/*
 * Give up the capabilities that are not needed any more, for good, but for those of programs that are
 * executed later on. Where that is refused nothing changes: it is no failure to have more.
 */
void privileges_reduce(void);

#endif
