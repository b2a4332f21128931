/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A Ruby frame as the ring buffer has it: in two to four words instead of the four of struct
 * rbpf_frame. Addresses of a process are multiples of 8 below 2^48, and an iseq and its method
 * entry are both on Ruby's heap, mostly less than 2^34 bytes apart.
 *
 *   word 0   bits 3 to 47 an address, bits 1 and 2 enum rbpf_frame_form, bit 0: a check is the last
 * word word 1   bits 0 to 47 pc
 *
 * RBPF_FRAME_NEAR has in the upper 16 bits of words 0 and 1 the lower and the upper half of the
 * distance from the iseq to the method entry, in units of 8 bytes. A frame whose words are not such
 * addresses is sent without its check: RBPF_FRAME_RAW, then iseq, pc and me.
 */
#ifndef RBPF_FRAME_WORDS_H
#define RBPF_FRAME_WORDS_H

#include "rbpf_abi.h"

#define RBPF_FRAME_WORDS   4 /* of one frame, at most: as many as struct rbpf_frame has */

#define RBPF_FRAME_RAW	   (~0ull)
#define RBPF_FRAME_CHECK   1ull
#define RBPF_FRAME_ADDRESS 0xfffffffffff8ull
#define RBPF_FRAME_PC	   0xffffffffffffull

enum rbpf_frame_form {
	RBPF_FRAME_NEAR = 0,  /* word 0 has the iseq, and there is a method entry */
	RBPF_FRAME_NO_ME = 1, /* word 0 has the iseq, and there is none */
	RBPF_FRAME_FAR = 2,   /* the same, and the method entry is word 2 */
	RBPF_FRAME_C = 3,     /* word 0 has the method entry, or 0; there is no iseq */
};

/*
 * Write @f to the first words of @words, and return how many these are; what the others are is
 * open.
 */
static RBPF_INLINE __u32 rbpf_frame_pack(const struct rbpf_frame *f, __u64 words[RBPF_FRAME_WORDS])
{
	const __u64 iseq = f->iseq, pc = f->pc, me = f->me, check = f->check;
	const __s64 distance = (__s64)(me - iseq) >> 3;
	__u64 form = RBPF_FRAME_NEAR, upper = 0, lower = 0;

	if ((iseq | me) & ~RBPF_FRAME_ADDRESS || pc & ~RBPF_FRAME_PC) {
		words[0] = RBPF_FRAME_RAW;
		words[1] = iseq;
		words[2] = pc;
		words[3] = me;
		return 4;
	}
	if (!iseq) {
		form = RBPF_FRAME_C;
	} else if (!me) {
		form = RBPF_FRAME_NO_ME;
	} else if (distance != (__s32)distance) {
		form = RBPF_FRAME_FAR;
	} else {
		lower = (__u64)distance & 0xffff;
		upper = (__u64)distance >> 16 & 0xffff;
	}
	words[0] = (iseq ? iseq : me) | form << 1 | (check ? RBPF_FRAME_CHECK : 0) | lower << 48;
	words[1] = pc | upper << 48;
	words[2] = form == RBPF_FRAME_FAR ? me : check;
	words[3] = check;
	return 2 + (form == RBPF_FRAME_FAR) + (check != 0);
}

/*
 * The opposite, of the first of @n words into *@f. Returns how many it took; 0: there are too few.
 */
static RBPF_INLINE __u32 rbpf_frame_unpack(const __u64 *words, __u64 n, struct rbpf_frame *f)
{
	__u64 form, address;
	__u32 used = 2;

	if (n < 2)
		return 0;
	if (words[0] == RBPF_FRAME_RAW) {
		if (n < 4)
			return 0;
		f->iseq = words[1];
		f->pc = words[2];
		f->me = words[3];
		f->check = 0;
		return 4;
	}
	form = words[0] >> 1 & 3;
	address = words[0] & RBPF_FRAME_ADDRESS;
	if (n < 2 + (form == RBPF_FRAME_FAR) + (words[0] & RBPF_FRAME_CHECK))
		return 0;
	f->iseq = form == RBPF_FRAME_C ? 0 : address;
	f->pc = words[1] & RBPF_FRAME_PC;
	f->me = 0;
	if (form == RBPF_FRAME_C)
		f->me = address;
	else if (form == RBPF_FRAME_FAR)
		f->me = words[used++];
	else if (form == RBPF_FRAME_NEAR)
		f->me = address +
			(__u64)((__s64)(__s32)(words[0] >> 48 | words[1] >> 48 << 16) * 8);
	f->check = words[0] & RBPF_FRAME_CHECK ? words[used++] : 0;
	return used;
}

#endif
