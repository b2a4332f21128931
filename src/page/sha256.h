/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * SHA-256 (FIPS 180-4), for the hashes by which a page's Content-Security-Policy names its own
 * script and styles.
 */
#ifndef RBPF_PAGE_SHA256_H
#define RBPF_PAGE_SHA256_H

#include <stddef.h>
#include <stdint.h>

#define SHA256_BYTES 32

void sha256(const void *data, size_t len, uint8_t ret[SHA256_BYTES]);

#endif
