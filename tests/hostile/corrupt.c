/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A library that a Ruby 3.1 loads to change its own memory under who reads it. Whoever calls
 * corrupt() does not get back into Ruby, so nothing but rbpf looks at what is changed.
 *
 * What the offsets are of: rb_execution_context_t (vm_stack, vm_stack_size, cfp),
 * rb_control_frame_t (64 bytes), rb_iseq_t (flags, wrapper, body) and its body.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define MAX_ISEQS    32
#define ISEQ_ENTRIES 8000000

enum { CFP_PC, CFP_SP, CFP_ISEQ, CFP_SELF, CFP_EP, CFP_WORDS = 8 };
enum { EC_STACK, EC_SIZE, EC_CFP };

/* Of a body, in words. */
enum {
	BODY_ENCODED = 1,
	BODY_PATH = 8,
	BODY_BASE_LABEL,
	BODY_LABEL,
	BODY_LINE,
	BODY_INSNS = 15,
	BODY_POSITIONS,
	BODY_INSNS_SIZE,
	BODY_INDEX,
	BODY_PARENT = 21,
	BODY_LOCAL = 22,
	BODY_WORDS = 40
};

static uint64_t *ec;
static uint64_t *iseqs[MAX_ISEQS]; /* of the frames that run */
static uint64_t *frames[MAX_ISEQS];
static int n;

static void *space(size_t size)
{
	void *at = mmap(NULL, size, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	return at == MAP_FAILED ? NULL : at;
}

static uint64_t *body(uint64_t *iseq)
{
	return (uint64_t *)iseq[2];
}

static void find_frames(void)
{
	uint64_t *cfp = (uint64_t *)ec[EC_CFP], *end = (uint64_t *)ec[EC_STACK] + ec[EC_SIZE];

	for (; cfp + CFP_WORDS < end && n < MAX_ISEQS; cfp += CFP_WORDS) {
		if (!cfp[CFP_PC] || !cfp[CFP_ISEQ])
			continue;
		frames[n] = cfp;
		iseqs[n++] = (uint64_t *)cfp[CFP_ISEQ];
	}
}

/* A String with its bytes elsewhere. */
static uint64_t string(const char *bytes, uint64_t len)
{
	uint64_t *s = malloc(40);

	s[0] = 0x5 | 1 << 13; /* T_STRING, not embedded */
	s[1] = *(uint64_t *)body(iseqs[0])[BODY_LABEL] ? ((uint64_t *)body(iseqs[0])[BODY_LABEL])[1]
						       : 0;
	s[2] = len;
	s[3] = (uint64_t)bytes;
	s[4] = len;
	return (uint64_t)s;
}

static void change_large(void)
{
	uint64_t *entries = space((size_t)ISEQ_ENTRIES * 12),
		 *index = space((size_t)ISEQ_ENTRIES * 8);
	int i;

	memset(entries, 1, (size_t)ISEQ_ENTRIES * 12);
	for (i = 0; i < n; i++) {
		uint64_t *b = body(iseqs[i]);

		b[0] = (b[0] & 0xffffffff) | (uint64_t)ISEQ_ENTRIES << 32;
		b[BODY_INSNS] = (uint64_t)entries;
		b[BODY_INSNS_SIZE] = ISEQ_ENTRIES - (uint64_t)i;
		b[BODY_INDEX] = (uint64_t)index;
	}
}

static void change_own_parent(void)
{
	int i;

	for (i = 0; i < n; i++)
		body(iseqs[i])[BODY_PARENT] = body(iseqs[i])[BODY_LOCAL] = (uint64_t)iseqs[i];
}

/* A parent that has a parent that has a parent… */
static void change_parents(void)
{
	const size_t count = 500000;
	uint64_t *v = space(count * (3 + BODY_WORDS) * 8), *b = body(iseqs[0]);
	size_t i;

	for (i = 0; i < count; i++) {
		uint64_t *iseq = v + i * (3 + BODY_WORDS);

		iseq[0] = iseqs[0][0];
		iseq[2] = (uint64_t)(iseq + 3);
		memcpy(iseq + 3, b, BODY_WORDS * 8);
		iseq[3 + BODY_PARENT] = (uint64_t)(i + 1 < count ? iseq + 3 + BODY_WORDS : v);
		iseq[3 + BODY_LOCAL] = iseq[3 + BODY_PARENT];
	}
	for (i = 0; i < (size_t)n; i++)
		body(iseqs[i])[BODY_PARENT] = body(iseqs[i])[BODY_LOCAL] = (uint64_t)v;
}

static void change_labels(uint64_t len)
{
	char *text = space(5ull << 30);
	int i;

	memset(text, 'x', 1 << 20);
	for (i = 0; i < n; i++) {
		body(iseqs[i])[BODY_LABEL] = string(text + i, len);
		body(iseqs[i])[BODY_BASE_LABEL] = string(text + i, len);
		body(iseqs[i])[BODY_PATH] = string(text + i, len);
	}
}

/* Arrays of themselves. */
static void change_paths(void)
{
	int i;

	for (i = 0; i < n; i++) {
		uint64_t *a = malloc(40);

		a[0] = 0x7;
		a[1] = 0;
		a[2] = 1ull << 60;
		a[3] = 1ull << 60;
		a[4] = (uint64_t)&a[4];
		body(iseqs[i])[BODY_PATH] = (uint64_t)a;
		body(iseqs[i])[BODY_LABEL] = (uint64_t)a;
	}
}

static void change_stack(void)
{
	ec[EC_SIZE] = 1ull << 40;
	ec[EC_CFP] = ec[EC_STACK];
}

/* Frames to the end of 64 MB, each with another iseq. */
static void change_many_frames(void)
{
	const size_t size = 64 << 20, count = size / 64;
	uint64_t *stack = space(size), *v = space(count / 8 * (3 + BODY_WORDS) * 8);
	size_t i;

	for (i = 0; i < count; i++) {
		uint64_t *iseq = v + i / 8 * (3 + BODY_WORDS);

		if (i % 8 == 0) {
			memcpy(iseq, iseqs[0], 24);
			iseq[2] = (uint64_t)(iseq + 3);
			memcpy(iseq + 3, body(iseqs[0]), BODY_WORDS * 8);
		}
		memcpy(stack + i * 8, frames[0], 64);
		stack[i * 8 + CFP_ISEQ] = (uint64_t)iseq;
	}
	ec[EC_STACK] = (uint64_t)stack;
	ec[EC_SIZE] = size / 8;
	ec[EC_CFP] = (uint64_t)stack;
}

/* The outermost frame is at another place of its method each time. */
static void *advance(void *arg)
{
	uint64_t *frame = arg, pc = frame[CFP_PC];
	unsigned int i;

	for (i = 0;; i++) {
		frame[CFP_PC] = pc + i % 4096 * 8;
		usleep(500);
	}
	return arg;
}

/* Many frames, of which each sample sees others: no part of them was sent before. */
static void change_outermost(void)
{
	pthread_t t;

	change_many_frames();
	/* Behind it comes a place that is no frame. */
	pthread_create(&t, NULL, advance, (uint64_t *)ec[EC_STACK] + ec[EC_SIZE] - 2 * CFP_WORDS);
}

static void change_environments(void)
{
	int i;

	for (i = 0; i < n; i++) {
		uint64_t *ep = (uint64_t *)space(4096) + 16;

		ep[0] = 0;
		ep[-1] = (uint64_t)ep;
		ep[-2] = (uint64_t)ep;
		frames[i][CFP_EP] = (uint64_t)ep;
	}
}

/*
 * Frames of blocks in C, which are not shown and so not counted, each with its environment far from
 * that of the one before.
 */
static void change_far_environments(void)
{
	const size_t size = 8 << 20, count = 16000;
	uint64_t *stack = space(size), *cfp = stack + size / 8 - (count + 1) * CFP_WORDS;
	size_t i;

	memset(stack, 1, size); /* else it cannot be copied in a tick */
	for (i = 0; i < count; i++) {
		uint64_t *ep = stack + ((i & 1 ? 3 : 1) << 13);

		ep[0] = 0x66660081; /* IFUNC, CFRAME */
		memcpy(cfp + i * CFP_WORDS, frames[0], CFP_WORDS * 8);
		cfp[i * CFP_WORDS + CFP_EP] = (uint64_t)ep;
	}
	ec[EC_STACK] = (uint64_t)stack;
	ec[EC_SIZE] = size / 8;
	ec[EC_CFP] = (uint64_t)cfp;
}

/* Words of what a walk reads, each time others. */
static void *scribble(void *arg)
{
	unsigned int seed = (unsigned int)(uintptr_t)arg;

	for (;;) {
		int i = (int)(rand_r(&seed) % (unsigned int)n);
		unsigned int what = rand_r(&seed) % 4;
		uint64_t *at, kept;

		if (what == 0)
			at = frames[i] + rand_r(&seed) % CFP_WORDS;
		else if (what == 1)
			at = iseqs[i] + rand_r(&seed) % 3;
		else
			at = body(iseqs[i]) + rand_r(&seed) % BODY_WORDS;
		kept = *at;
		switch (rand_r(&seed) % 4) {
		case 0:
			*at = (uint64_t)rand_r(&seed) << 32 | rand_r(&seed);
			break;
		case 1:
			*at ^= 1ull << rand_r(&seed) % 64;
			break;
		case 2:
			*at = (uint64_t)iseqs[rand_r(&seed) % (unsigned int)n];
			break;
		case 3:
			*at = (uint64_t)-1 - rand_r(&seed) % 64;
			break;
		}
		usleep(rand_r(&seed) % 2000);
		*at = kept;
	}
	return arg;
}

static void change_all_the_while(void)
{
	pthread_t t;

	pthread_create(&t, NULL, scribble, (void *)(uintptr_t)7);
}

static void change_instructions(void)
{
	int i;

	for (i = 0; i < n; i++) {
		frames[i][CFP_PC] = body(iseqs[i])[BODY_ENCODED] - 1;
		body(iseqs[i])[BODY_INSNS_SIZE] = 0xffffffff;
		body(iseqs[i])[BODY_INDEX] = (uint64_t)-8;
		body(iseqs[i])[BODY_LINE] = (uint64_t)-1;
	}
}

void corrupt(const char *how, int after_ms)
{
	volatile unsigned int i = 0;

	ec = *(uint64_t **)dlsym(RTLD_DEFAULT, "ruby_current_ec");
	find_frames();
	if (after_ms)
		write(1, "{\"ready\":true}\n", 15);
	usleep((useconds_t)after_ms * 1000);
	if (!strcmp(how, "large"))
		change_large();
	else if (!strcmp(how, "own parent"))
		change_own_parent();
	else if (!strcmp(how, "parents"))
		change_parents();
	else if (!strcmp(how, "labels"))
		change_labels(1ull << 32);
	else if (!strcmp(how, "labels of 1 MB"))
		change_labels(1 << 20);
	else if (!strcmp(how, "paths"))
		change_paths();
	else if (!strcmp(how, "stack"))
		change_stack();
	else if (!strcmp(how, "frames"))
		change_many_frames();
	else if (!strcmp(how, "outermost frame"))
		change_outermost();
	else if (!strcmp(how, "environments"))
		change_environments();
	else if (!strcmp(how, "far environments"))
		change_far_environments();
	else if (!strcmp(how, "scribble"))
		change_all_the_while();
	else if (!strcmp(how, "instructions"))
		change_instructions();
	if (!after_ms)
		write(1, "{\"ready\":true}\n", 15);
	for (;;)
		i++;
}
