/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A library that a Ruby loads to let who reads it wait for a file (fuse.c).
 *
 * hang(HOW, FILE):
 *	version		the version of the Ruby is in the file, read ahead: who waits can be killed
 *	random		the same, not read ahead: who waits cannot be killed
 *	lock		a thread waits for it and holds the lock of the process' map, which
 *			another one wants to change
 *	code		the file is mapped as code
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE 4096ul

static volatile char *page;

static void replace(uint64_t addr, int fd, int advice)
{
	page = mmap((void *)(addr & -PAGE), PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED,
		    fd, 0);
	madvise((void *)page, PAGE, advice);
}

static void *wait_for_page(void *arg)
{
	(void)*page;
	return arg;
}

static void *change_map(void *arg)
{
	usleep(300000);
	mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return arg;
}

void hang(const char *how, const char *path)
{
	const int fd = open(path, O_RDONLY | O_CLOEXEC);
	pthread_t thread;

	if (!strcmp(how, "version") || !strcmp(how, "random")) {
		replace((uint64_t)dlsym(RTLD_DEFAULT, "ruby_version"), fd,
			how[0] == 'r' ? MADV_RANDOM : MADV_NORMAL);
	} else if (!strcmp(how, "code")) {
		mmap(NULL, PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
	} else if (!strcmp(how, "lock")) {
		page = mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE, fd, 0);
		pthread_create(&thread, NULL, wait_for_page, NULL);
		pthread_create(&thread, NULL, change_map, NULL);
	}
}
