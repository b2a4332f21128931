/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * An extension of Ruby that uses CPU time in a function, in another one that it calls, and in a
 * third that is inlined into the second. Needs no headers of Ruby: gcc -O2 -g -fPIC -shared.
 */
typedef unsigned long VALUE;

extern void rb_define_global_function(const char *name, VALUE (*function)(), int argc);
extern VALUE rb_uint2big(unsigned long n);
extern unsigned long rb_num2ulong(VALUE n);

static unsigned long table[1024];

static inline __attribute__((always_inline)) unsigned long mix(unsigned long x, unsigned long i)
{
	x ^= table[(x >> 7) & 1023] + i;
	return x * 6364136223846793005ul + 1442695040888963407ul;
}

__attribute__((noinline)) unsigned long hot_inner(unsigned long n)
{
	unsigned long x = n;

	for (unsigned long i = 0; i < n; i++)
		x = mix(x, i);
	return x;
}

__attribute__((noinline)) unsigned long hot_outer(unsigned long n)
{
	unsigned long x = 0;

	for (int i = 0; i < 10; i++) {
		x += hot_inner(n);
		for (unsigned long k = 0; k < n; k++)
			x ^= x << (k & 7);
	}
	return x;
}

static VALUE hot_work(VALUE self, VALUE n)
{
	(void)self;
	return rb_uint2big(hot_outer(rb_num2ulong(n)));
}

void Init_hot(void)
{
	rb_define_global_function("hot_work", hot_work, 1);
}
