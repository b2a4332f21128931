/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Processes and threads that do what few honest ones do.
 *
 *	puppet crowd N FILE	N processes that map FILE as code, and sleep
 *	puppet storm N		N mappings, with 100 more each second, while it spins
 *	puppet long N DIR FILE	N mappings of FILE, as code, by the longest name it can have in DIR
 *	puppet forks N		N processes that end at once, at most 50 at a time, again and again
 *	puppet execs FILE ARG	executes FILE, which executes this again
 *	puppet threads N	N threads that end at once, at most 50 at a time, again and again
 *	puppet named N		N threads that sleep and give themselves other names all the while
 *	puppet vfork		its parent is held for as long as it is there
 *	puppet leader		the first thread has ended, another one spins
 *	puppet remap FILE	FILE is mapped as code, here and there, while it runs it
 *	puppet hidden		spins, not dumpable
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static void ready(void)
{
	printf("{\"ready\":true}\n");
	fflush(stdout);
}

static void *map_code(const char *file, size_t len)
{
	int fd = open(file, O_RDONLY);
	void *at = mmap(NULL, len, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);

	close(fd);
	if (at == MAP_FAILED)
		_exit(1);
	return at;
}

static void spin(void)
{
	volatile unsigned int i = 0;

	for (;;)
		i++;
}

static int crowd(int n, const char *file)
{
	int i;

	map_code(file, 0x2000);
	for (i = 0; i < n; i++) {
		if (fork())
			continue;
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			pause();
	}
	ready();
	for (;;)
		pause();
}

static int storm(int n)
{
	int i, fd = open("/proc/self/exe", O_RDONLY);

	/* Neighbours of different kinds, so that they stay apart. */
	for (i = 0; i < n; i++)
		mmap(NULL, 0x1000, i % 2 ? PROT_READ | PROT_EXEC : PROT_READ, MAP_PRIVATE, fd, 0);
	ready();
	for (i = 0;; i++) {
		void *at = mmap(NULL, 0x1000, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
		volatile int k = 0;

		while (k < 5000000)
			k++;
		munmap(at, 0x1000);
	}
}

/* A path of PATH_MAX, which is made a directory at a time. */
static int longest(int n, const char *dir, const char *file)
{
	char name[251];
	int from = open(file, O_RDONLY), to, i;
	char buf[65536];
	ssize_t got;

	memset(name, 'x', 250);
	name[250] = 0;
	if (chdir(dir))
		return 1;
	for (i = 0; i < 15; i++) {
		mkdir(name, 0755);
		if (chdir(name))
			return 1;
	}
	to = open("libruby", O_RDWR | O_CREAT, 0755);
	while ((got = read(from, buf, sizeof(buf))) > 0)
		write(to, buf, (size_t)got);
	for (i = 0; i < n; i++)
		if (mmap(NULL, 0x1000, i % 2 ? PROT_READ : PROT_READ | PROT_EXEC, MAP_PRIVATE, to,
			 0) == MAP_FAILED)
			return 1;
	return 0;
}

static int forks(int n)
{
	int i, living = 0;

	ready();
	for (;;) {
		for (i = 0; i < n; i++) {
			if (!fork())
				_exit(0);
			if (++living < 50)
				continue;
			while (waitpid(-1, NULL, 0) > 0)
				living--;
			usleep(20000);
		}
	}
}

static void *nothing(void *arg)
{
	return arg;
}

static int threads(int n)
{
	pthread_t t[50];
	int i, k;

	ready();
	for (;;)
		for (i = 0; i < n; i += 50) {
			for (k = 0; k < 50; k++)
				pthread_create(&t[k], NULL, nothing, NULL);
			for (k = 0; k < 50; k++)
				pthread_join(t[k], NULL);
		}
}

static void *renames(void *arg)
{
	static const char *const names[] = { "\033[31mred\033[0m",
					     "\xe2\x80\xaegnp.exe",
					     "\x9b"
					     "31m",
					     "a\nb\rc\td",
					     "\xff\xfe\xfd",
					     "\xc2\x9b"
					     "2J",
					     ")) R 1 1 (",
					     "%s%n%s%n" };
	unsigned long i = (unsigned long)arg;
	volatile int k;

	for (;; i++) {
		prctl(PR_SET_NAME, names[i % 8]);
		for (k = 0; k < 30000; k++)
			;
		usleep(100000 + (useconds_t)(i % 1000) * 100);
	}
	return NULL;
}

static int named(int n)
{
	pthread_attr_t attr;
	pthread_t t;
	long i;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 16384);
	for (i = 0; i < n; i++)
		if (pthread_create(&t, &attr, renames, (void *)i))
			break;
	ready();
	for (;;)
		pause();
}

static int held(void)
{
	ready();
	if (!vfork())
		for (;;)
			pause();
	return 0;
}

static void *spins(void *arg)
{
	ready();
	spin();
	return arg;
}

static int leader(void)
{
	pthread_t t;

	pthread_create(&t, NULL, spins, NULL);
	pthread_exit(NULL);
}

static int remap(const char *file)
{
	char *place = mmap(NULL, 64 * 0x2000, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	int fd = open(file, O_RDONLY), i;

	ready();
	for (i = 0;; i++) {
		char *at = place + (i % 64) * 0x2000;

		mmap(at, 0x2000, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED, fd, 0);
		((int (*)(void))(at + 0x1000))();
		mmap(at, 0x2000, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	}
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	int n = argc > 2 ? atoi(argv[2]) : 0;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (!strcmp(what, "crowd"))
		return crowd(n, argv[3]);
	if (!strcmp(what, "storm")) {
		if (argc > 3)
			map_code(argv[3], 0x2000);
		return storm(n);
	}
	if (!strcmp(what, "forks")) {
		map_code(argv[3], 0x2000);
		return forks(n);
	}
	if (!strcmp(what, "execs")) {
		map_code(argv[2], 0x2000);
		if (!getenv("SAID"))
			ready();
		setenv("SAID", "1", 1);
		execl("/proc/self/exe", argv[0], argv[1], argv[2], NULL);
		return 1;
	}
	if (!strcmp(what, "threads")) {
		map_code(argv[3], 0x2000);
		return threads(n);
	}
	if (!strcmp(what, "named")) {
		map_code(argv[3], 0x2000);
		return named(n);
	}
	if (!strcmp(what, "vfork")) {
		map_code(argv[2], 0x2000);
		return held();
	}
	if (!strcmp(what, "leader")) {
		map_code(argv[2], 0x2000);
		return leader();
	}
	if (!strcmp(what, "remap"))
		return remap(argv[2]);
	if (!strcmp(what, "hidden")) {
		map_code(argv[2], 0x2000);
		prctl(PR_SET_DUMPABLE, 0);
		ready();
		spin();
	}
	if (!strcmp(what, "long")) {
		if (longest(n, argv[3], argv[4]))
			return 1;
		/*
		 * And then a Ruby, which has none of them: that is done in the Ruby, by this as a
		 * library.
		 */
		ready();
		spin();
	}
	return 2;
}
