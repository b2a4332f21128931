/* SPDX-License-Identifier: GPL-2.0-only */
/* What can be told of a VM without a live process; attaching to one is tested in tests/live. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "ruby/thread_ecs.h"
#include "ruby/vm.h"
#include "support/ruby_image.h"

/* ---- eras ---- */

Test(vm, eras)
{
	FOR_EACH_IMAGE(img)
	{
		uint64_t era = 77, major;

		image_gc_count(img, 41);
		cr_assert_eq(ruby_vm_gc_era(&img->vm, &era, &major), 0, "%s", img->version);
		cr_expect_eq(era, 42, "%s: never 0", img->version);
		image_gc_flags(img, IMAGE_GC_DURING | IMAGE_GC_SWEEPING);
		cr_assert_eq(ruby_vm_gc_era(&img->vm, &era, &major), 0);
		cr_expect_eq(era, 42, "%s: it is freeing", img->version);
		image_gc_count(img, 42);
		image_gc_flags(img, IMAGE_GC_MARKING);
		cr_assert_eq(ruby_vm_gc_era(&img->vm, &era, &major), 0);
		cr_expect_eq(era, 42, "%s: it marks", img->version);
		image_gc_flags(img, 0);
		cr_assert_eq(ruby_vm_gc_era(&img->vm, &era, &major), 0);
		cr_expect_eq(era, 43, "%s", img->version);
	}
}

static void collect_on_second_read(struct ruby_image *img, uint64_t addr, size_t len)
{
	(void)len;
	if (addr == img->vm.walk.gc_flags)
		image_gc_count(img, 100);
}

Test(vm, eras_that_are_not_known)
{
	static const uint32_t transitions[] = { IMAGE_GC_DURING, IMAGE_GC_COMPACTING,
						IMAGE_GC_DURING | IMAGE_GC_COMPACTING | 3,
						IMAGE_GC_COMPACTING | IMAGE_GC_SWEEPING };

	FOR_EACH_IMAGE(img)
	{
		uint64_t era = 77, major, flags_at = img->vm.walk.gc_flags;

		for (size_t i = 0; i < sizeof(transitions) / sizeof(transitions[0]); i++) {
			image_gc_flags(img, transitions[i]);
			cr_expect_eq(ruby_vm_gc_era(&img->vm, &era, &major), -EAGAIN,
				     "%s: flags %x", img->version, transitions[i]);
		}
		image_gc_flags(img, 0);
		img->on_read = collect_on_second_read;
		cr_expect_eq(ruby_vm_gc_era(&img->vm, &era, &major), -EAGAIN,
			     "%s: it has just changed", img->version);
		img->on_read = NULL;
		image_hide(img, img->objspace, 4096, true);
		cr_expect_eq(ruby_vm_gc_era(&img->vm, &era, &major), -EFAULT, "%s", img->version);
		image_hide(img, img->objspace, 4096, false);
		img->vm.walk.gc_flags = 0;
		cr_expect_eq(ruby_vm_gc_era(&img->vm, &era, &major), -ENOENT, "%s", img->version);
		img->vm.walk.gc_flags = flags_at;
		img->vm.walk.gc_count = 0;
		cr_expect_eq(ruby_vm_gc_era(&img->vm, &era, &major), -ENOENT, "%s", img->version);
	}
}

/* The objspace is of one ractor: once there is another, it does not tell of all. */
Test(vm, no_eras_of_several_ractors)
{
	FOR_EACH_IMAGE(img)
	{
		const uint64_t single = image_alloc(img, 8);
		uint64_t era, major;

		image_gc_counts(img, 37, 4);
		image_put64(img, single, 0x7000);
		img->vm.walk.gc_single = single;
		img->vm.walk.gc_ractor = 0x7000;
		cr_assert_eq(ruby_vm_gc_era(&img->vm, &era, &major), 0);
		cr_expect_eq(era, 42, "%s", img->version);
		image_put64(img, single, 0);
		cr_expect_eq(ruby_vm_gc_era(&img->vm, &era, &major), -ENOENT, "%s", img->version);
		img->vm.walk.gc_single = 0x5000;
		cr_expect_eq(ruby_vm_gc_era(&img->vm, &era, &major), -EFAULT, "%s", img->version);
	}
}

/* As up to 4.0, where bits stand elsewhere. */
Test(vm, flags_of_the_collector)
{
	const uint32_t all = RUBY_GC_MODE_MASK | RUBY_GC_DURING_GC | RUBY_GC_DURING_COMPACTING;

	for (uint32_t i = 0; i < 1 << 13; i++) {
		cr_assert_eq(rbpf_gc_flags(i, 0), i);
		cr_assert_eq(rbpf_gc_flags(i, 5), i);
		cr_assert_eq(rbpf_gc_flags(i, 6) & ~all, 0);
		cr_assert_eq(rbpf_gc_flags(i, 6) & RUBY_GC_MODE_MASK, i & 3);
		cr_assert_eq(!!(rbpf_gc_flags(i, 6) & RUBY_GC_DURING_GC), i >> 6 & 1);
		cr_assert_eq(!!(rbpf_gc_flags(i, 6) & RUBY_GC_DURING_COMPACTING), i >> 8 & 1);
	}
}

Test(vm, major_collections)
{
	FOR_EACH_IMAGE(img)
	{
		bool known = img->facts.objspace_major;
		uint64_t era, major = 77;

		image_gc_counts(img, 37, 4);
		cr_assert_eq(ruby_vm_gc_era(&img->vm, &era, &major), 0);
		cr_expect_eq(era, 42, "%s", img->version);
		cr_expect_eq(major, known ? 4 : 0, "%s", img->version);
		image_gc_flags(img, IMAGE_GC_DURING | IMAGE_GC_SWEEPING);
		cr_assert_eq(ruby_vm_gc_era(&img->vm, &era, &major), 0);
		cr_expect_eq(major, known ? 4 : 0, "%s: what it frees it did not find",
			     img->version);
		image_gc_flags(img, IMAGE_GC_MARKING);
		cr_assert_eq(ruby_vm_gc_era(&img->vm, &era, &major), 0);
		cr_expect_eq(major, known ? 3 : 0, "%s: the fourth has freed nothing so far",
			     img->version);
		image_gc_flags(img, IMAGE_GC_DURING | IMAGE_GC_MARKING);
		cr_assert_eq(ruby_vm_gc_era(&img->vm, &era, &major), 0);
		cr_expect_eq(major, 0, "%s: the fourth may be one of them or not", img->version);
		image_gc_flags(img, IMAGE_GC_DURING);
		cr_assert_eq(ruby_vm_gc_era(&img->vm, &era, &major), -EAGAIN);
		cr_expect_eq(major, 0, "%s: it begins or ends", img->version);
		image_gc_flags(img, 0);
		image_gc_count(img, 42);
		cr_assert_eq(ruby_vm_gc_era(&img->vm, &era, &major), 0);
		cr_expect_eq(major, 0, "%s: the counts do not fit together", img->version);
	}
}

/* ---- threads of 2.7 ---- */

/* The image's threads have a thread_id that is not their address, as a pthread_t is. */
static uint64_t thread_id(const struct image_thread *t)
{
	return image_get64(t->img, t->th + t->img->facts.th_thread_id);
}

Test(vm, threads_of_2_7)
{
	struct ruby_image *img = image_new("2.7");
	struct image_thread threads[5];
	uint64_t ec;

	img->vm.walk.tls.model = RBPF_TLS_GLOBAL;
	img->vm.walk.thread_id_bias = -0x700;
	cr_expect_eq(ruby_thread_ec(&img->vm, 0x1234, &ec), -ENOENT, "no thread at all");
	for (size_t i = 0; i < 5; i++)
		threads[i] = image_thread(img, 64);
	for (size_t i = 0; i < 5; i++) {
		cr_assert_eq(ruby_thread_ec(&img->vm, thread_id(&threads[i]) + 0x700, &ec), 0);
		cr_expect_eq(ec, threads[i].ec, "thread %zu", i);
	}
	cr_expect_eq(ruby_thread_ec(&img->vm, thread_id(&threads[0]), &ec), -ENOENT,
		     "a thread that is none of Ruby's");

	/* A list that ends nowhere. */
	image_put64(img, threads[2].th, threads[3].th);
	cr_expect_eq(ruby_thread_ec(&img->vm, 0x1234, &ec), -ENOENT, "a ring");
	image_put64(img, threads[2].th, 0x5000);
	cr_expect_neq(ruby_thread_ec(&img->vm, 0x1234, &ec), 0, "a list that breaks off");
	cr_expect_eq(ruby_thread_ec(&img->vm, thread_id(&threads[3]) + 0x700, &ec), 0,
		     "what stands before it");
	image_free(img);
}

/* ---- children ---- */

Test(vm, a_child_is_the_same_at_another_pid)
{
	struct ruby_image *img = image_new("3.3");
	struct ruby_vm child;

	img->vm.pid = 100;
	img->vm.binary.path = strdup("/usr/bin/ruby");
	cr_assert_not_null(img->vm.binary.path);
	cr_assert_eq(ruby_vm_fork(&img->vm, 200, &child), 0);
	cr_expect_eq(child.pid, 200);
	cr_expect_eq(child.mem.pid, 200, "its own memory");
	cr_expect_neq(child.mem.image, img);
	cr_expect_str_eq(child.binary.path, "/usr/bin/ruby");
	cr_expect_neq(child.binary.path, img->vm.binary.path, "each frees its own");
	cr_expect_arr_eq(&child.walk, &img->vm.walk, sizeof(child.walk));
	cr_expect_arr_eq(&child.layout, &img->vm.layout, sizeof(child.layout));
	cr_expect_eq(child.symbols, img->vm.symbols);
	ruby_vm_deinit(&child);
	ruby_vm_deinit(&child);
	ruby_vm_deinit(&img->vm);
	image_free(img);
}

/* ---- presets ---- */

Test(vm, a_preset_has_no_address_of_its_process)
{
	FOR_EACH_IMAGE(img)
	{
		struct rbpf_layout preset = { .flags = 77 };
		uint64_t words[sizeof(preset) / 8];

		img->vm.walk.tls.model = RBPF_TLS_STATIC;
		img->vm.walk.naming.symbols = img->vm.symbols;
		img->vm.walk.naming.shapes = img->vm.symbols + 8;
		img->vm.walk.text_lo = img->vm.symbols + 16;
		img->vm.walk.text_hi = img->vm.symbols + 24;
		img->vm.walk.gc_owner = img->vm.symbols + 32;
		img->vm.walk.zjit_entry = 0;
		cr_assert(ruby_vm_preset(&img->vm, &preset), "%s", img->version);
		memcpy(words, &preset, sizeof(preset));
		for (size_t i = 0; i < sizeof(words) / 8; i++)
			cr_expect_neq(words[i] >> 40, IMAGE_FIRST >> 40, "%s: byte %zu",
				      img->version, i * 8);
		cr_expect_eq(preset.ec_thread_ptr, img->facts.ec_thread_ptr, "%s", img->version);
		cr_expect_eq(preset.cf_size, img->facts.cf_size, "%s", img->version);
	}
}

Test(vm, no_preset_without_addresses)
{
	static const uint32_t models[] = { RBPF_TLS_NONE, RBPF_TLS_GLOBAL, RBPF_TLS_DTV };
	struct ruby_image *img = image_new("4.1");
	struct rbpf_layout preset = { .flags = 77 };

	for (size_t i = 0; i < sizeof(models) / sizeof(models[0]); i++) {
		img->vm.walk.tls.model = models[i];
		img->vm.walk.zjit_entry = i < 2 ? 0 : img->vm.symbols;
		cr_expect_not(ruby_vm_preset(&img->vm, &preset), "%u", models[i]);
	}
	cr_expect_eq(preset.flags, 77, "it is left alone");
	image_free(img);
}

/* ---- checks ---- */

/* There is always room for one more: the last one is written over, and none behind it. */
Test(vm, more_checks_than_have_a_place)
{
	struct ruby_vm vm = RUBY_VM_INIT;
	static const char *const names[] = { "a", "b" };
	char detail[400];

	memset(detail, 'x', sizeof(detail));
	detail[sizeof(detail) - 1] = '\0';
	for (int i = 0; i < 3 * RUBY_VM_CHECKS; i++) {
		ruby_vm_check_add(&vm, names[i % 2], i % 3 == 0, i % 5 == 0, "%d %s", i, detail);
		cr_assert_lt(vm.n_checks, RUBY_VM_CHECKS);
		cr_assert_lt(strlen(vm.checks[i % RUBY_VM_CHECKS].detail),
			     sizeof(vm.checks[0].detail));
	}
	for (int i = 0; i + 1 < RUBY_VM_CHECKS; i++) {
		char want[16];

		snprintf(want, sizeof(want), "%d ", i);
		cr_expect_eq(strncmp(vm.checks[i].detail, want, strlen(want)), 0, "check %d: %s", i,
			     vm.checks[i].detail);
		cr_expect_eq(vm.checks[i].ok, i % 3 == 0);
		cr_expect_eq(vm.checks[i].needed, i % 5 == 0);
	}
}
