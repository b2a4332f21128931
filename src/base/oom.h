/* SPDX-License-Identifier: GPL-2.0-only */
#ifndef RBPF_BASE_OOM_H
#define RBPF_BASE_OOM_H

/*
 * Have the kernel end this process before all others if memory runs out, of the machine or of its
 * control group; else that may be the one that is recorded, which mostly is larger. Children
 * inherit it. Where /proc is not there, or not to be written, nothing changes.
 */
void oom_go_first(void);

#endif
