/* SPDX-License-Identifier: GPL-2.0-only */
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#include "ruby/method.h"
#include "support/ruby_image.h"

static void assert_sane_method(const struct ruby_method *m, uint64_t addr, bool with_name)
{
	cr_assert_eq(m->addr, addr);
	cr_assert_not_null(m->prefix);
	cr_assert_eq(m->name != NULL, with_name);
}

/* Read again what ruby_method_check() looks at, as the resolver does. */
static bool still_there(struct ruby_image *img, const struct ruby_method *m)
{
	struct memory_span spans[RUBY_METHOD_SPANS];
	struct ruby_method_id fresh;

	ruby_method_check_spans(&img->vm, m, &fresh, spans);
	memory_read_spans(&img->vm.mem, spans, RUBY_METHOD_SPANS);
	return spans[0].ok && spans[1].ok && spans[2].ok && ruby_method_check(&img->vm, m, &fresh);
}

static void expect_none(struct ruby_image *img, uint64_t addr, int why)
{
	struct ruby_method m = { .addr = 77 };

	cr_expect_eq(ruby_method_read(&img->vm, addr, true, &m), why, "%s: %d expected",
		     img->version, why);
	cr_expect(m.addr == 77 && !m.prefix && !m.name, "untouched");
}

Test(method, names)
{
	FOR_EACH_IMAGE(img)
	{
		uint64_t foo = image_class(img, "Foo"), anon = image_class(img, NULL);
		const struct {
			uint64_t owner;
			const char *prefix;
		} owners[] = {
			{ foo, "Foo#" },
			{ image_module(img, "Kernel"), "Kernel#" },
			{ image_singleton(img, foo), "Foo." },
			{ anon, "" },
		};

		for (size_t i = 0; i < sizeof(owners) / sizeof(owners[0]); i++) {
			uint64_t me = image_ment(img, owners[i].owner, "each_pair", IMAGE_CFUNC);
			struct ruby_method m;

			cr_assert_eq(ruby_method_read(&img->vm, me, true, &m), 0);
			assert_sane_method(&m, me, true);
			cr_expect_str_eq(m.prefix, owners[i].prefix);
			cr_expect_str_eq(m.name, "each_pair");
			cr_expect(still_there(img, &m));
			ruby_method_deinit(&m);
			cr_expect_null(m.prefix);
			ruby_method_deinit(&m);
		}
	}
}

/* A Ruby method's name is its iseq's: no symbol table is needed for its class. */
Test(method, without_a_name)
{
	FOR_EACH_IMAGE(img)
	{
		uint64_t me = image_ment(img, img->object, NULL, IMAGE_ISEQ);
		struct ruby_method m;

		expect_none(img, me, -EINVAL);
		img->vm.symbols = 0;
		expect_none(img, me, -ENOENT);
		cr_assert_eq(ruby_method_read(&img->vm, me, false, &m), 0);
		assert_sane_method(&m, me, false);
		cr_expect_str_eq(m.prefix, "Object#");
		ruby_method_deinit(&m);
	}
}

/* An alias has an entry of its own and the definition of the original, whose name Ruby shows. */
Test(method, original_name)
{
	FOR_EACH_IMAGE(img)
	{
		uint64_t me = image_ment(img, img->object, "collect", IMAGE_CFUNC);
		struct ruby_method m;

		image_put64(img, me + 24, image_id(img, "map"));
		cr_assert_eq(ruby_method_read(&img->vm, me, true, &m), 0);
		cr_expect_str_eq(m.name, "collect");
		ruby_method_deinit(&m);
	}
}

Test(method, no_method_entry)
{
	FOR_EACH_IMAGE(img)
	{
		uint64_t me = image_ment(img, img->object, "foo", IMAGE_CFUNC);
		uint64_t flags = image_get64(img, me), def = image_get64(img, me + 16), owner;

		for (uint64_t type = 0; type < 16; type++) {
			if (type == IMAGE_MENT)
				continue;
			image_put64(img, me, IMAGE_IMEMO(type));
			expect_none(img, me, -EINVAL);
		}
		image_put64(img, me, 0); /* freed */
		expect_none(img, me, -EINVAL);
		image_put64(img, me, IMAGE_T_STRING | IMAGE_MENT << 12);
		expect_none(img, me, -EINVAL);
		image_put64(img, me, flags);

		image_put64(img, me + 16, 0x5000);
		expect_none(img, me, -EFAULT);
		image_put64(img, me + 16, def);
		owner = image_class(img, "Gone");
		image_put64(img, me + 32, owner);
		image_put64(img, owner, 0);
		expect_none(img, me, -EINVAL);
		image_put64(img, me + 32, 0);
		expect_none(img, me, -EFAULT);
		expect_none(img, me + 1, -EFAULT);
		expect_none(img, 0, -EFAULT);
		expect_none(img, 0x5000, -EFAULT);
		expect_none(img, ~7ull, -EFAULT);
	}
}

/* Where a class has its name, or what leads to it. */
static uint64_t way_to_name(const struct ruby_image *img)
{
	static const uint16_t forms[] = { [IMAGE_CLASS_IV_TBL] = 24, [IMAGE_CLASS_IV_PTR] = 32 };

	return img->facts.class_form == IMAGE_CLASS_CLASSEXT ? img->facts.class_path
							     : forms[img->facts.class_form];
}

Test(method, what_makes_it_another_one)
{
	FOR_EACH_IMAGE(img)
	{
		uint64_t foo = image_class(img, "Foo"), bar = image_class(img, "Bar");
		uint64_t me = image_ment(img, foo, "foo", IMAGE_CFUNC);
		uint64_t other = image_ment(img, bar, "bar", IMAGE_CFUNC);
		uint64_t def = image_get64(img, me + 16), flags = image_get64(img, foo);
		uint64_t name_at, name;
		struct ruby_method m;

		cr_assert_eq(ruby_method_read(&img->vm, me, true, &m), 0);
		cr_assert(still_there(img, &m));

		image_put64(img, me, 0);
		cr_expect_not(still_there(img, &m), "freed");
		image_put64(img, me, IMAGE_IMEMO(IMAGE_MENT) | 1 << 5);
		cr_expect(still_there(img, &m), "a GC bit");
		image_put64(img, me + 16, image_get64(img, other + 16));
		cr_expect_not(still_there(img, &m), "another definition");
		image_put64(img, me + 16, def);
		image_put64(img, me + 32, bar);
		cr_expect_not(still_there(img, &m), "another owner");
		image_put64(img, me + 32, foo);
		image_put64(img, def + 32, image_id(img, "baz"));
		cr_expect_not(still_there(img, &m), "another name");
		image_put64(img, def + 32, m.id.def[4]);
		image_put64(img, me + 24, m.id.me[3] + 16);
		cr_expect_not(still_there(img, &m), "called by another name: of that is its check");
		image_put64(img, me + 24, m.id.me[3]);
		image_put64(img, foo, IMAGE_T_STRING);
		cr_expect_not(still_there(img, &m), "an owner that is no class now");
		image_put64(img, foo, flags);

		/* Where the owner's name is found. */
		name_at = foo + way_to_name(img);
		name = image_get64(img, name_at);
		image_put64(img, name_at, name + 40);
		cr_expect_not(still_there(img, &m), "an owner of another name");
		image_put64(img, name_at, name);
		cr_expect(still_there(img, &m), "all as before");
		image_hide(img, me, 1, true);
		cr_expect_not(still_there(img, &m), "unreadable");
		ruby_method_deinit(&m);
	}
}

/* A singleton class has no name of its own to compare: its object tells it from another. */
Test(method, singleton_class_of_another_object)
{
	FOR_EACH_IMAGE(img)
	{
		uint64_t foo = image_class(img, "Foo"), bar = image_class(img, "Bar");
		uint64_t meta = image_singleton(img, foo);
		uint64_t me = image_ment(img, meta, "create", IMAGE_CFUNC);
		struct ruby_method m;

		if (img->facts.class_form != IMAGE_CLASS_CLASSEXT)
			continue;
		cr_assert_eq(ruby_method_read(&img->vm, me, true, &m), 0);
		cr_expect_str_eq(m.prefix, "Foo.");
		image_put64(img, meta + img->facts.class_attached, bar);
		cr_expect_not(still_there(img, &m));
		ruby_method_deinit(&m);
	}
}

struct change {
	uint64_t when; /* an address that is read */
	uint64_t at, value;
};

static void change_on_read(struct ruby_image *img, uint64_t addr, size_t len)
{
	const struct change *c = img->arg;

	(void)len;
	if (addr == c->when)
		image_put64(img, c->at, c->value);
}

/* It is freed, and its place taken, while it is read: what was read in pieces is of two methods. */
Test(method, changed_while_it_is_read)
{
	FOR_EACH_IMAGE(img)
	{
		uint64_t foo = image_class(img, "Foo"), bar = image_class(img, "Bar");
		uint64_t me = image_ment(img, foo, "foo", IMAGE_CFUNC);
		const struct change changes[] = {
			{ foo, me + 32, bar },
			{ foo, me, 0 },
			{ foo, image_get64(img, me + 16) + 32, image_id(img, "bar") },
		};

		for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
			uint64_t before = image_get64(img, changes[i].at);

			img->on_read = change_on_read;
			img->arg = (void *)&changes[i];
			expect_none(img, me, -EINVAL);
			img->on_read = NULL;
			image_put64(img, changes[i].at, before);
		}
	}
}

/* ---- against the BPF programs ---- */

/* The same words, in the same order, as walk_complete() takes them. */
Test(method, check)
{
	FOR_EACH_IMAGE(img)
	{
		uint64_t foo = image_class(img, "Foo");
		uint64_t me = image_ment(img, foo, "foo", IMAGE_CFUNC);
		uint64_t def = image_get64(img, me + 16), id = image_get64(img, me + 24);
		struct ruby_method m;

		cr_assert_eq(ruby_method_read(&img->vm, me, true, &m), 0);
		cr_expect_eq(ruby_method_words_check(&m, 0), rbpf_check_me(0, def, id, foo));
		cr_expect_eq(ruby_method_words_check(&m, 7), rbpf_check_me(7, def, id, foo));
		cr_expect_neq(rbpf_check_me(0, def, id, foo), rbpf_check_me(0, def, id, foo + 40));
		cr_expect_neq(rbpf_check_me(0, def, id, foo), rbpf_check_me(0, def, id + 16, foo));
		cr_expect_neq(rbpf_check_me(0, def, id, foo), rbpf_check_me(0, def + 8, id, foo));
		cr_expect_neq(rbpf_check_me(0, def, id, foo), rbpf_check_me(7, def, id, foo));
		cr_expect_neq(rbpf_check_me(0, 0, 0, 0), 0, "0 says that there is none");
		ruby_method_deinit(&m);
	}
}

Test(method, of_an_iseq)
{
	FOR_EACH_IMAGE(img)
	{
		uint64_t iseq = image_iseq(img, &(struct image_iseq) { .type = 1, .label = "foo" });
		uint64_t me = image_method(img, img->object, "foo", iseq);
		uint64_t def = image_get64(img, me + 16);
		struct ruby_method m;

		/* What else stands in the word of the type: visibility, alias count, serial. */
		image_put64(img, def, 0xabcdef0ull << 4 | IMAGE_ISEQ);
		cr_assert_eq(ruby_method_read(&img->vm, me, false, &m), 0);
		cr_expect(ruby_method_is_of(&m, iseq), "%s", img->version);
		cr_expect_not(ruby_method_is_of(&m, iseq + 40));
		cr_expect_not(ruby_method_is_of(&m, 0));
		ruby_method_deinit(&m);

		for (uint64_t type = 1; type < 12; type++) {
			image_put64(img, def, type);
			cr_assert_eq(ruby_method_read(&img->vm, me, false, &m), 0);
			cr_expect_not(ruby_method_is_of(&m, iseq),
				      "type %llu: a C function's "
				      "address, another method's entry, …",
				      (unsigned long long)type);
			ruby_method_deinit(&m);
		}
	}
}
