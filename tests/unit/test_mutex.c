/* SPDX-License-Identifier: GPL-2.0-only */
/* Mutexes and Monitors as each version has them, and what only looks like one. */
#include <criterion/criterion.h>
#include <errno.h>

#include "ruby/mutex.h"
#include "support/ruby_image.h"

#define SERIAL 7

static bool is_version(const struct ruby_image *img, const char *minor)
{
	return !strncmp(img->version, minor, strlen(minor));
}

/* 4.0 on: the EC's number, then the thread. */
static bool has_serial(const struct ruby_image *img)
{
	return is_version(img, "4.");
}

/* A T_DATA of @data; 3.3 on it can stand in the object itself. */
static uint64_t wrap(struct ruby_image *img, const uint64_t *data, size_t n, bool embedded)
{
	uint64_t object = image_alloc(img, 32 + 8 * n), at = object + 32;

	image_put64(img, object, IMAGE_T_DATA);
	image_put64(img, object + 24,
		    has_serial(img) ? 0x7f0000001000ull + embedded : 1 + 2 * (uint64_t)embedded);
	if (!embedded) {
		at = image_alloc(img, 8 * n);
		image_put64(img, object + 32, at);
	}
	for (size_t i = 0; i < n; i++)
		image_put64(img, at + 8 * i, data[i]);
	return object;
}

static uint64_t mutex_of(struct ruby_image *img, const struct image_thread *owner, bool embedded)
{
	uint64_t words[4] = { 0, 0x7f0012345678ull, 0, 0 }; /* next_mutex or what is left of it */

	if (has_serial(img))
		words[0] = SERIAL, words[1] = owner->th;
	else
		words[0] = is_version(img, "2.7") ? owner->th : owner->fiber;
	return wrap(img, words, 4, embedded);
}

Test(mutex, who_holds_it)
{
	FOR_EACH_IMAGE(img)
	{
		struct image_thread a = image_thread(img, 64), b = image_thread(img, 64);

		for (int embedded = 0; embedded <= (img->facts.class_form == 3); embedded++) {
			uint64_t th = 0;

			cr_expect_eq(ruby_mutex_owner(&img->vm, mutex_of(img, &a, embedded), &th),
				     0, "%s", img->version);
			cr_expect_eq(th, a.th, "%s", img->version);
			cr_expect_eq(ruby_mutex_owner(&img->vm, mutex_of(img, &b, embedded), &th),
				     0, "%s", img->version);
			cr_expect_eq(th, b.th, "%s", img->version);
		}
	}
}

/* By a fiber that is not the one its thread began with. */
Test(mutex, held_by_a_fiber)
{
	FOR_EACH_IMAGE(img)
	{
		struct image_thread t = image_thread(img, 64), fiber = image_fiber(&t, 64);
		uint64_t th = 0;

		cr_expect_eq(ruby_mutex_owner(&img->vm, mutex_of(img, &fiber, false), &th), 0, "%s",
			     img->version);
		cr_expect_eq(th, t.th, "%s", img->version);
	}
}

Test(mutex, held_by_none)
{
	FOR_EACH_IMAGE(img)
	{
		struct image_thread t = image_thread(img, 64);
		/* 4.0 keeps the last thread. */
		const uint64_t words[] = { 0, t.th, 0, 0 };
		uint64_t th = 1;

		cr_expect_eq(ruby_mutex_owner(&img->vm, wrap(img, words, 4, false), &th), -ENOENT,
			     "%s", img->version);
		cr_expect_eq(th, 1, "left alone");
	}
}

Test(mutex, of_a_monitor)
{
	FOR_EACH_IMAGE(img)
	{
		struct image_thread t = image_thread(img, 64);
		uint64_t mutex = mutex_of(img, &t, false), found = 0;
		uint64_t words[] = { 3, 0x7f0000000008ull, mutex }; /* count, owner, mutex */

		cr_expect_eq(ruby_monitor_mutex(&img->vm, wrap(img, words, 3, false), &found), 0,
			     "%s", img->version);
		cr_expect_eq(found, mutex, "%s", img->version);
		words[2] = 8; /* nil */
		cr_expect_eq(ruby_monitor_mutex(&img->vm, wrap(img, words, 3, false), &found),
			     -EINVAL, "%s", img->version);
	}
}

Test(mutex, what_is_none)
{
	FOR_EACH_IMAGE(img)
	{
		const uint64_t junk[] = { 0x1235, 0x1235, 0, 0 };
		uint64_t th = 1, gone = 0x10000, string = image_string_embed(img, "text", 4);

		cr_expect_eq(ruby_mutex_owner(&img->vm, 8, &th), -EINVAL, "%s", img->version);
		cr_expect_eq(ruby_mutex_owner(&img->vm, gone, &th), -EFAULT, "%s", img->version);
		cr_expect_eq(ruby_mutex_owner(&img->vm, string, &th), -EINVAL, "%s", img->version);
		cr_expect_eq(ruby_monitor_mutex(&img->vm, string, &th), -EINVAL, "%s",
			     img->version);
		cr_expect_eq(ruby_mutex_owner(&img->vm, wrap(img, junk, 4, false), &th), -EINVAL,
			     "%s", img->version);
		cr_expect_eq(th, 1, "left alone");
	}
}

Test(mutex, self_of_the_innermost_frame)
{
	FOR_EACH_IMAGE(img)
	{
		struct image_thread t = image_thread(img, 64);
		uint64_t self = 0;

		image_push(&t, &(struct image_frame) { .flags = IMAGE_CFUNC_FRAME | IMAGE_CFRAME |
								IMAGE_LOCAL });
		image_put64(img, image_get64(img, t.ec + 16) + 24, 0x7f00000000f8);
		cr_expect_eq(ruby_innermost_self(&img->vm, t.ec, &self), 0, "%s", img->version);
		cr_expect_eq(self, 0x7f00000000f8, "%s", img->version);
		image_put64(img, t.ec + 16, 0);
		cr_expect_eq(ruby_innermost_self(&img->vm, t.ec, &self), -EFAULT, "%s",
			     img->version);
	}
}

/* ---- who waits for it ---- */

static void stands_in(struct ruby_image *img, struct image_thread *t, uint64_t self)
{
	image_push(t, &(struct image_frame) { .flags = IMAGE_CFUNC_FRAME | IMAGE_CFRAME |
						       IMAGE_LOCAL });
	image_put64(img, image_get64(img, t->ec + 16) + 24, self);
}

/* A Mutex that @owner holds, for which @waiter is in the queue with its head @head bytes into it.
 */
static uint64_t queued_for(struct ruby_image *img, const struct image_thread *owner,
			   const struct image_thread *waiter, uint64_t head)
{
	const uint64_t words[6] = { 0 };
	uint64_t object = wrap(img, words, 6, false), data = image_get64(img, object + 32);
	uint64_t held = image_get64(img, mutex_of(img, owner, false) + 32);
	uint64_t node = image_alloc(img, 40) + 24;

	image_put64(img, data, image_get64(img, held));
	image_put64(img, data + 8, image_get64(img, held + 8));
	image_put64(img, node - 16, waiter->th);
	for (uint64_t at = 0; at <= 8; at += 8) {
		image_put64(img, node + at, data + head);
		image_put64(img, data + head + at, node);
	}
	return object;
}

Test(mutex, who_waits_for_it)
{
	FOR_EACH_IMAGE(img)
	{
		for (uint64_t head = 16; head <= 24; head += 8) {
			struct image_thread a = image_thread(img, 64), b = image_thread(img, 64);
			const uint64_t object = queued_for(img, &a, &b, head);
			const uint64_t monitor[] = { 3, 0x7f0000000008ull, object };
			uint64_t mutex = 0, owner = 0;

			stands_in(img, &b, object);
			cr_expect_eq(ruby_mutex_waited_for(&img->vm, b.ec, b.th, &mutex, &owner), 0,
				     "%s", img->version);
			cr_expect_eq(mutex, image_get64(img, object + 32), "%s", img->version);
			cr_expect_eq(owner, a.th, "%s", img->version);
			stands_in(img, &b, wrap(img, monitor, 3, false));
			mutex = owner = 0;
			cr_expect_eq(ruby_mutex_waited_for(&img->vm, b.ec, b.th, &mutex, &owner), 0,
				     "%s", img->version);
			cr_expect_eq(mutex, image_get64(img, object + 32), "%s", img->version);
			cr_expect_eq(owner, a.th, "%s", img->version);
			/* As a ConditionVariable lets it sleep. */
			stands_in(img, &a, object);
			cr_expect_eq(ruby_mutex_waited_for(&img->vm, a.ec, a.th, &mutex, &owner),
				     -ENOENT, "%s", img->version);
		}
	}
}

/* What its memory says may lead anywhere. */
Test(mutex, queues_that_are_none)
{
	FOR_EACH_IMAGE(img)
	{
		struct image_thread a = image_thread(img, 64), b = image_thread(img, 64);
		const uint64_t object = queued_for(img, &a, &b, 16);
		const uint64_t data = image_get64(img, object + 32);
		uint64_t mutex = 1, owner = 1;

		stands_in(img, &b, object);
		image_put64(img, data + 24, 0x10000);
		cr_expect_eq(ruby_mutex_waited_for(&img->vm, b.ec, b.th, &mutex, &owner), -ENOENT);
		stands_in(img, &b, image_string_embed(img, "text", 4));
		cr_expect_eq(ruby_mutex_waited_for(&img->vm, b.ec, b.th, &mutex, &owner), -ENOENT);
		stands_in(img, &b, 0x10000);
		cr_expect_neq(ruby_mutex_waited_for(&img->vm, b.ec, b.th, &mutex, &owner), 0);
		cr_expect(mutex == 1 && owner == 1, "left alone");
	}
}
