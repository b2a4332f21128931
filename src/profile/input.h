/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Opens a recording for reading, so that nothing that somebody may have left for us is opened: a
 * FIFO or a device may do something then.
 *
 * It decides what may be opened; the contents are the reader's business (reader.h).
 */
#ifndef RBPF_PROFILE_INPUT_H
#define RBPF_PROFILE_INPUT_H

struct err;

/*
 * Open the recording @path (not stdin), as profile_read() does; its contents are not looked at.
 * "/dev/fd/N" is also a descriptor of a file that this process may not open: then *@ret shares its
 * offset, which is set to its start. *@ret is the caller's. Fails as profile_read() does.
 */
int input_open(const char *path, int *ret, struct err *err);

/* Say in @err that @name cannot be read, since @code, a negative errno. Returns that. */
int input_cannot_read(const char *name, int code, struct err *err);

#endif
