/* SPDX-License-Identifier: GPL-2.0-only */
/* Many objects read at once: each is read as it would be alone, and never made of two. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "support/ruby_image.h"
#include "symbol/code_load.h"

#define FOO_PATH "/app/of/the/method/foo.rb"
#define BAR_PATH "/app/of/the/method/bar.rb"

struct change {
	uint64_t iseq, path;
	size_t left; /* pieces to be read before it */
};

/* The label and the path become those of another one, in the same places. */
static void change_on_read(struct ruby_image *img, uint64_t addr, size_t len)
{
	struct change *c = img->arg;

	(void)addr;
	(void)len;
	if (!c->left || --c->left)
		return;
	image_label_text(img, c->iseq, "bar");
	memcpy(image_at(img, c->path, strlen(BAR_PATH)), BAR_PATH, strlen(BAR_PATH));
}

static uint64_t path_text(struct ruby_image *img, uint64_t iseq)
{
	return image_get64(img, image_get64(img, image_body(img, iseq) + 64) + 24);
}

static uint64_t foo(struct ruby_image *img)
{
	return image_iseq(img, &(struct image_iseq) { .type = RUBY_ISEQ_METHOD,
						      .label = "foo",
						      .path = FOO_PATH });
}

Test(code_load, pieces_belong_together)
{
	FOR_EACH_IMAGE(unused)
	for (int together = 0; together < 2; together++) {
		size_t foos = 0, bars = 0, refused = 0;

		for (size_t left = 1; left < 60; left++) {
			struct ruby_image *img = image_new(unused->version);
			struct code_load *loads = calloc(2, sizeof(*loads));
			struct change c = { .iseq = foo(img), .left = left };

			c.path = path_text(img, c.iseq);
			loads[0].addr = c.iseq;
			loads[1].addr = foo(img);
			img->arg = &c;
			img->on_read = change_on_read;
			cr_assert_eq(code_load(&img->vm, loads, 2, 1 << 20, together, NULL, 0), 0);
			refused += loads[0].result != 0;
			if (!loads[0].result) {
				bool is_foo = !strcmp(loads[0].iseq.name, "foo");

				cr_expect_str_eq(loads[0].iseq.path, is_foo ? FOO_PATH : BAR_PATH,
						 "%s: %s", img->version, loads[0].iseq.name);
				foos += is_foo;
				bars += !is_foo;
			}
			cr_expect_eq(loads[1].result, 0);
			code_load_free(loads, 2);
			image_free(img);
		}
		cr_expect(foos && bars && refused, "%s: %zu, %zu, %zu", unused->version, foos, bars,
			  refused);
	}
}

Test(code_load, no_room)
{
	struct ruby_image *img = image_new("3.3");
	struct code_load *loads;
	uint64_t iseqs[20];
	size_t read;

	for (size_t i = 0; i < 20; i++)
		iseqs[i] = foo(img);
	for (size_t room = 0; room < 4096; room += 64) {
		loads = calloc(20, sizeof(*loads));
		for (size_t i = 0; i < 20; i++)
			loads[i].addr = iseqs[i];
		cr_assert_eq(code_load(&img->vm, loads, 20, room, true, NULL, 0), 0);
		read = 0;
		for (size_t i = 0; i < 20; i++) {
			cr_expect(loads[i].result == 0 || loads[i].result == -E2BIG);
			read += loads[i].result ? 0 : ruby_iseq_bytes(&loads[i].iseq);
		}
		cr_expect_leq(read, room);
		cr_expect(room < 1024 || read > 0, "%zu", room);
		code_load_free(loads, 20);
	}
	image_free(img);
}

/* What is no object, beside one that is. */
Test(code_load, garbage)
{
	struct ruby_image *img = image_new("3.3");
	struct code_load *loads = calloc(4, sizeof(*loads));

	loads[0].addr = 0x5000;
	loads[1].addr = img->object;
	loads[2].addr = foo(img);
	loads[3] = (struct code_load) { .addr = loads[2].addr, .is_method = true };
	cr_assert_eq(code_load(&img->vm, loads, 4, 1 << 20, true, NULL, 0), 0);
	cr_expect_eq(loads[0].result, -EFAULT);
	cr_expect_eq(loads[1].result, -EINVAL);
	cr_expect_eq(loads[2].result, 0);
	cr_expect_eq(loads[3].result, -EINVAL);
	code_load_free(loads, 4);
	image_free(img);
}
