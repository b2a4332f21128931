/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A program that is no Ruby, and runs one in its first thread or in another. Its two threads that
 * are none of Ruby's burn CPU all the while:
 *
 *	stranger	knows nothing of Ruby: it has no TLS of the libruby's
 *	visitor		has called a function of the libruby: it has that TLS, with nothing in it
 *
 *	embed {first|other} LIBRUBY RUBY-ARGUMENT...
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct arguments {
	int argc;
	char **argv; /* [0] is the libruby */
	void *ruby;
	int status;
};

static void *function(void *library, const char *name)
{
	void *p = dlsym(library, name);

	if (!p) {
		fprintf(stderr, "%s\n", dlerror());
		exit(1);
	}
	return p;
}

/* All that Ruby does is done below the frame of run_ruby(), in which the stack begins for it. */
__attribute__((noinline)) static int run_program(void *ruby, int argc, char **argv)
{
	void *(*options)(int, char **) = (void *(*)(int, char **))function(ruby, "ruby_options");
	int (*run_node)(void *) = (int (*)(void *))function(ruby, "ruby_run_node");

	((void (*)(void))function(ruby, "ruby_init"))();
	return run_node(options(argc, argv));
}

__attribute__((noinline)) static void *run_ruby(void *arg)
{
	struct arguments *a = arg;
	void *volatile here = NULL;

	((void (*)(int *, char ***))function(a->ruby, "ruby_sysinit"))(&a->argc, &a->argv);
	((void (*)(volatile void *))function(a->ruby, "ruby_init_stack"))(&here);
	a->status = run_program(a->ruby, a->argc, a->argv);
	return NULL;
}

/* Half of the time, because others need the machine. */
__attribute__((noinline)) static void burn(void)
{
	for (;;) {
		for (volatile unsigned long n = 0; n < 1000000; n++)
			;
		usleep(2000);
	}
}

static void *stranger(void *unused)
{
	(void)unused;
	pthread_setname_np(pthread_self(), "stranger");
	burn();
	return NULL;
}

static void *visitor(void *ruby)
{
	pthread_setname_np(pthread_self(), "visitor");
	/* What it says is of no interest: before Ruby has begun, 2.7 looks in another's place. */
	((int (*)(void))function(ruby, "ruby_native_thread_p"))();
	burn();
	return NULL;
}

int main(int argc, char **argv)
{
	struct arguments arguments = { argc - 2, argv + 2, NULL, 0 };
	pthread_attr_t attr;
	pthread_t thread;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 8 << 20);
	if (argc < 4 || pthread_create(&thread, &attr, stranger, NULL))
		return 1;
	arguments.ruby = dlopen(argv[2], RTLD_NOW | RTLD_GLOBAL);
	if (!arguments.ruby) {
		fprintf(stderr, "%s\n", dlerror());
		return 1;
	}
	if (pthread_create(&thread, &attr, visitor, arguments.ruby))
		return 1;
	if (!strcmp(argv[1], "first"))
		run_ruby(&arguments);
	else if (pthread_create(&thread, &attr, run_ruby, &arguments) || pthread_join(thread, NULL))
		return 1;
	exit(arguments.status);
}
