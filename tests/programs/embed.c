/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A program that is no Ruby, and runs one: its second thread loads a libruby and a program in it,
 * while the first burns CPU in C. So the execution context is in TLS that is allocated dynamically,
 * and Ruby's main thread is not the process's.
 *
 *	embed LIBRUBY RUBY-ARGUMENT...
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

struct arguments {
	int argc;
	char **argv; /* [0] is the libruby */
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

static void *run_ruby(void *arg)
{
	const struct arguments *a = arg;
	void *ruby = dlopen(a->argv[0], RTLD_NOW | RTLD_GLOBAL);
	int argc = a->argc;
	char **argv = a->argv;
	void *here = NULL;
	void *(*options)(int, char **);
	int (*run_node)(void *);

	if (!ruby) {
		fprintf(stderr, "%s\n", dlerror());
		exit(1);
	}
	options = (void *(*)(int, char **))function(ruby, "ruby_options");
	run_node = (int (*)(void *))function(ruby, "ruby_run_node");
	((void (*)(int *, char ***))function(ruby, "ruby_sysinit"))(&argc, &argv);
	((void (*)(void *))function(ruby, "ruby_init_stack"))(&here);
	((void (*)(void))function(ruby, "ruby_init"))();
	exit(run_node(options(argc, argv)));
}

__attribute__((noinline)) static void burn(void)
{
	volatile unsigned long n = 0;

	for (;;)
		n++;
}

int main(int argc, char **argv)
{
	struct arguments arguments = { argc - 1, argv + 1 };
	pthread_attr_t attr;
	pthread_t thread;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 8 << 20);
	if (argc < 2 || pthread_create(&thread, &attr, run_ruby, &arguments))
		return 1;
	burn();
	return 0;
}
