/* SPDX-License-Identifier: GPL-2.0-only */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "profile/counters.h"
#include "native/native_stacks.h"
#include "support/test_worker.h"
#include "symbol/native_names.h"
#include "support/test_worker.h"
#include "target/container.h"

/* This process, in whose memory there is code of no file. */
struct fixture {
	struct native *native;
	struct native_process *process;
	struct process_context context;
	char *code;
	char path[64];
};

static void setup(struct fixture *f)
{
	*f = (struct fixture) { .context = { .ns_pid = getpid() } };
	f->code = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	cr_assert_neq(f->code, MAP_FAILED);
	snprintf(f->path, sizeof(f->path), "/tmp/perf-%d.map", (int)getpid());
	unlink(f->path); /* of another process that had this pid */
	cr_assert_eq(native_new(NULL, test_worker(), false, NULL, NULL, &f->native), 0);
	cr_assert_eq(native_process_new(f->native, getpid(), &f->context, &f->process), 0);
	cr_assert_eq(native_process_read_map(f->process, NULL), 0);
}

static void teardown(struct fixture *f)
{
	native_process_free(f->process);
	native_free(f->native);
	munmap(f->code, 4096);
	unlink(f->path);
}

static void put_map(const struct fixture *f, mode_t mode)
{
	char line[64];
	int fd = open(f->path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	cr_assert_geq(fd, 0, "%s: %s", f->path, strerror(errno));
	snprintf(line, sizeof(line), "%lx 100 compiled\n", (unsigned long)f->code);
	cr_assert_eq(write(fd, line, strlen(line)), (ssize_t)strlen(line));
	cr_assert_eq(fchmod(fd, mode), 0);
	close(fd);
}

static const char *name_of_code(struct fixture *f)
{
	const uint64_t word = (uint64_t)(uintptr_t)f->code + 8;
	struct native_frames frames = { 0 };
	const char *name = "none";

	cr_assert_eq(native_frames(f->native, f->process, false, &word, 1, &frames), 0);
	if (frames.n)
		name = native_frame_name(f->native, frames.v[0].name)->name;
	free(frames.v);
	return name;
}

static uint64_t count(const struct fixture *f, int counter)
{
	uint64_t counters[COUNTER_COUNT] = { 0 };

	native_count(f->native, counters);
	return counters[counter];
}

Test(native, perf_map)
{
	struct fixture f;

	setup(&f);
	put_map(&f, 0644);
	cr_expect_str_eq(name_of_code(&f), "compiled");
	cr_expect_eq(count(&f, COUNTER_PERF_MAPS_REFUSED), 0);
	cr_expect_eq(count(&f, COUNTER_PERF_MAPS_CUT), 0);
	cr_expect_eq(count(&f, COUNTER_CODE_LEFT_OUT), 0);
	teardown(&f);
}

Test(native, perf_map_that_everybody_may_write)
{
	struct fixture f;

	setup(&f);
	put_map(&f, 0666);
	cr_expect_str_neq(name_of_code(&f), "compiled");
	cr_expect_eq(count(&f, COUNTER_PERF_MAPS_REFUSED), 1);
	teardown(&f);
}

/* A link to a file of this user's: it may lead to anybody's. */
Test(native, perf_map_that_is_a_link)
{
	char other[80];
	struct fixture f;

	setup(&f);
	put_map(&f, 0644);
	snprintf(other, sizeof(other), "%s.other", f.path);
	cr_assert_eq(rename(f.path, other), 0);
	cr_assert_eq(symlink(other, f.path), 0);
	cr_expect_str_neq(name_of_code(&f), "compiled");
	unlink(other);
	teardown(&f);
}

/* Each counted once, however often it is looked at. */
Test(native, more_code_than_is_read)
{
	const size_t size = 4096, n = 10000;
	struct fixture f;
	char *code;

	setup(&f);
	code = mmap(NULL, n * size, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	cr_assert_neq(code, MAP_FAILED);
	for (size_t i = 0; i < n; i += 2)
		cr_assert_eq(mprotect(code + i * size, size, PROT_READ | PROT_EXEC), 0);
	cr_assert_eq(native_process_read_map(f.process, NULL), 0);
	cr_assert_eq(native_process_read_map(f.process, NULL), 0);
	cr_expect_eq(count(&f, COUNTER_CODE_LEFT_OUT), 1);
	munmap(code, n * size);
	teardown(&f);
}
