/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Numbers for people: the same text in every locale, thousands separated by commas. Machine output
 * must not use these.
 */
#ifndef RBPF_BASE_NUMBER_H
#define RBPF_BASE_NUMBER_H

#include <stdint.h>

/* A formatted number, by value: use as `num_count(n).s` within one expression. */
struct num_text {
	char s[64];
};

struct num_text num_count(uint64_t n);	   /* "11,876" */
struct num_text num_bytes(uint64_t bytes); /* "1.4 MB" (10^6), "512 B" */

/* "1 process", "4 processes": @plural is the whole word, of at most 28 bytes. */
struct num_text num_of(uint64_t n, const char *singular, const char *plural);

/* "99 Hz"; or "33 to 99 Hz", if it was not always @hz, and @lowest_hz is not 0. */
struct num_text num_frequency(uint64_t lowest_hz, uint64_t hz);

/* Durations: to be read among others, "30.0 s", "350 ms", "2.6 µs", "0 s" … */
struct num_text num_duration(uint64_t ns);
/* The same of a bound, which stays one in these digits: cut, and not below. */
struct num_text num_duration_at_least(uint64_t ns);
struct num_text num_duration_at_most(uint64_t ns);
/* … one alone, with three digits or more: "30.0 s", "8.02 s", "340 ms", "2.60 µs", "0 s" … */
struct num_text num_duration_fine(uint64_t ns);
struct num_text num_seconds(uint64_t ns); /* … in a column: "9.41s" */
struct num_text num_clock(uint64_t ns);	  /* … that runs: "00:12", "1:02:03" */

/* Shares: among others, "92.4%", and of 0 "0.0%" … */
struct num_text num_percent(uint64_t part, uint64_t whole);
/* … and one alone, however small: "12.3%", "0.04%", "<0.01%"; "0%" and "100%" are exact. */
struct num_text num_percent_fine(uint64_t part, uint64_t whole);

#endif
