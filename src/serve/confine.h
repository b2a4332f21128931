/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Which system calls the serving process and its renders may make, and how much memory and how many
 * files they may have. Whatever a client or a recording makes of them, they open no file, execute
 * nothing, make no socket and connect to nobody.
 *
 * A forbidden call ends the process by SIGSYS; opening a file fails with EACCES, for the C library
 * tries. A build with Address Sanitizer allows all calls. There is no way back. Errors are fatal to
 * the caller: it must end then.
 */
#ifndef RBPF_SERVE_CONFINE_H
#define RBPF_SERVE_CONFINE_H

/*
 * In the serving process, without privileges (worker/sandbox.h), when it listens and before anybody
 * is answered. What it still may: accept connections, and start, end and await renders, which
 * inherit this. Their memory is limited here, too: how much there is now is read from a file.
 * Returns 0 or -errno.
 */
int serve_confine(void);

/*
 * In a render, when its files are where it wants them: limit what it takes, and allow only to read
 * what is open, to write to it, to allocate memory and to start threads. Returns 0 or -errno.
 */
int serve_confine_render(void);

#endif
