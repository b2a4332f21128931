/* SPDX-License-Identifier: GPL-2.0-only */
/* Who is in the queue of the GVL, in the images of each version. */
#include <criterion/criterion.h>
#include <errno.h>

#include "ruby/gvl.h"
#include "support/ruby_image.h"

#define THREADS 3

static uint64_t queue_of(struct ruby_image *img)
{
	return img->facts.vm_gvl_queue ? img->vm.vm + img->facts.vm_gvl_queue
				       : img->ractor + img->facts.gvl_queue;
}

/* Make a list of these nodes, the first of which is its head. */
static void link(struct ruby_image *img, const uint64_t *nodes, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		image_put64(img, nodes[i], nodes[(i + 1) % n]);
		image_put64(img, nodes[i] + 8, nodes[(i + n - 1) % n]);
	}
}

Test(gvl, those_in_the_queue_wait)
{
	FOR_EACH_IMAGE(img)
	{
		struct image_thread t[THREADS];
		uint64_t nodes[1 + THREADS] = { queue_of(img) }, other;

		for (size_t i = 0; i < THREADS; i++) {
			t[i] = image_thread(img, 64);
			nodes[1 + i] = t[i].th + img->facts.th_ready;
			link(img, &nodes[1 + i], 1);
		}
		link(img, nodes, 1);
		for (size_t i = 0; i < THREADS; i++)
			cr_expect_eq(ruby_gvl_waits(&img->vm, t[i].ec), 0, "%s", img->version);
		link(img, nodes, THREADS); /* all but the last */
		for (size_t i = 0; i < THREADS; i++)
			cr_expect_eq(ruby_gvl_waits(&img->vm, t[i].ec), i + 1 < THREADS, "%s: %zu",
				     img->version, i);

		/* Removed from it, with the pointers that it had. */
		other = nodes[2];
		nodes[2] = nodes[3];
		link(img, nodes, THREADS);
		cr_expect_eq(ruby_gvl_waits(&img->vm, t[1].ec), 0, "%s", img->version);
		cr_expect_eq(ruby_gvl_waits(&img->vm, t[2].ec), 1, "%s", img->version);

		/* In another list: up to 3.1 of those that are interrupted in a system call. */
		link(img, (uint64_t[]) { other, t[0].th + img->facts.th_ready }, 2);
		cr_expect_eq(ruby_gvl_waits(&img->vm, t[1].ec), 0, "%s", img->version);
	}
}

Test(gvl, of_two_ractors)
{
	FOR_EACH_IMAGE(img)
	{
		struct image_thread t = image_thread(img, 64);
		uint64_t nodes[] = { queue_of(img), t.th + img->facts.th_ready };

		link(img, nodes, 2);
		cr_expect_eq(ruby_gvl_waits(&img->vm, t.ec), 1, "%s", img->version);
		if (!img->facts.th_ractor)
			continue;
		image_put64(img, t.th + img->facts.th_ractor, image_alloc(img, 1024));
		cr_expect_eq(ruby_gvl_waits(&img->vm, t.ec), 0, "%s", img->version);
		image_put64(img, t.th + img->facts.th_ractor, 0);
		cr_expect_eq(ruby_gvl_waits(&img->vm, t.ec), -EFAULT, "%s", img->version);
	}
}

/* What the walk is told of it. */
Test(gvl, validation)
{
	FOR_EACH_IMAGE(img)
	{
		const struct image_facts *f = &img->facts;
		struct image_thread t = image_thread(img, 64);
		struct rbpf_layout *w = &img->vm.walk;
		uint64_t queue = queue_of(img), node = t.th + f->th_ready;
		uint64_t owner = f->vm_gvl_owner ? img->vm.vm + f->vm_gvl_owner
						 : img->ractor + f->gvl_owner;

		for (int waits = 0; waits < 2; waits++) {
			link(img, (uint64_t[]) { queue, node }, waits ? 2 : 1);
			image_put64(img, owner, waits ? t.th : 0);
			ruby_vm_fill_walk(&img->vm);
			ruby_gvl_validate(&img->vm, t.th);
			cr_expect_eq(w->th_ready, f->th_ready, "%s", img->version);
			cr_expect_eq(w->th_status, f->th_running_time - 4, "%s", img->version);
			cr_expect_eq(w->ractor_gvl_queue, f->gvl_queue);
			cr_expect_eq(w->ractor_gvl_owner, f->gvl_owner);
			cr_expect_eq(w->gvl_queue, f->vm_gvl_queue ? queue : 0);
			cr_expect_eq(w->gvl_owner, f->vm_gvl_owner ? owner : 0);
		}
		/* What holds it is no thread of this VM. */
		image_put64(img, owner, img->current_vm);
		ruby_vm_fill_walk(&img->vm);
		ruby_gvl_validate(&img->vm, t.th);
		cr_expect_eq(w->th_ready, f->th_ready, "%s", img->version);
		cr_expect(!w->ractor_gvl_owner && !w->gvl_owner, "%s", img->version);
		/* What is said to be the queue is none. */
		image_put64(img, node + 8, node);
		ruby_vm_fill_walk(&img->vm);
		ruby_gvl_validate(&img->vm, t.th);
		cr_expect(!w->th_ready && !w->ractor_gvl_queue && !w->gvl_queue, "%s",
			  img->version);
	}
}

/* The status of a thread is used if it and the time of its turn can be that. */
Test(gvl, status)
{
	FOR_EACH_IMAGE(img)
	{
		const uint16_t status = img->facts.th_running_time - 4;
		struct image_thread t = image_thread(img, 64);
		uint64_t queue = queue_of(img);
		const struct {
			uint64_t words; /* the status and what is beside it; the time */
			bool fits;
		} cases[] = {
			{ 0, true },
			{ 100000ull << 32 | 0x801, true },
			{ 100000ull << 32 | 0x7fff0000, false },
			{ 0x7fffull << 48, false },
		};

		link(img, &queue, 1);
		for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
			image_put32(img, t.th + status, (uint32_t)cases[i].words);
			image_put32(img, t.th + status + 4, (uint32_t)(cases[i].words >> 32));
			ruby_vm_fill_walk(&img->vm);
			ruby_gvl_validate(&img->vm, t.th);
			cr_expect_eq(img->vm.walk.th_status, cases[i].fits ? status : 0, "%s: %zu",
				     img->version, i);
		}
	}
}

/* The queue is one, but what is said to be the node in it is not. */
Test(gvl, another_node)
{
	FOR_EACH_IMAGE(img)
	{
		const struct image_facts *f = &img->facts;
		struct image_thread t = image_thread(img, 64), waiter = image_thread(img, 64);
		uint64_t queue = queue_of(img), node = t.th + f->th_ready;
		const struct {
			uint64_t next, prev;
			bool fits;
		} nodes[] = {
			{ 0, 0, true },	    { node, node, true }, { queue, queue, true },
			{ node, 0, false }, { 0, node, false },	  { 7, node, false },
			{ node, 8, false },
		};

		link(img, &queue, 1);
		for (size_t i = 0; i < sizeof(nodes) / sizeof(nodes[0]); i++) {
			image_put64(img, node, nodes[i].next);
			image_put64(img, node + 8, nodes[i].prev);
			ruby_vm_fill_walk(&img->vm);
			ruby_gvl_validate(&img->vm, t.th);
			cr_expect_eq(img->vm.walk.th_ready, nodes[i].fits ? f->th_ready : 0,
				     "%s: %zu", img->version, i);
		}
		/* Who is in it has its node elsewhere. */
		image_put64(img, node, 0);
		image_put64(img, node + 8, 0);
		link(img, (uint64_t[]) { queue, waiter.th + f->th_ready + 16 }, 2);
		ruby_vm_fill_walk(&img->vm);
		ruby_gvl_validate(&img->vm, t.th);
		cr_expect_eq(img->vm.walk.th_ready, 0, "%s", img->version);
	}
}

Test(gvl, what_is_not_known)
{
	FOR_EACH_IMAGE(img)
	{
		struct image_thread t = image_thread(img, 64);
		struct ruby_layout saved = img->vm.layout;
		uint64_t nodes[] = { queue_of(img), t.th + img->facts.th_ready };

		link(img, nodes, 2);
		img->vm.layout.th_ready = RUBY_UNKNOWN;
		cr_expect_eq(ruby_gvl_waits(&img->vm, t.ec), -ENOENT, "%s", img->version);
		img->vm.layout = saved;
		img->vm.layout.vm_gvl_queue = img->vm.layout.ractor_gvl_queue = RUBY_UNKNOWN;
		cr_expect_eq(ruby_gvl_waits(&img->vm, t.ec), -ENOENT, "%s", img->version);
		img->vm.layout = saved;
		image_put64(img, t.ec + img->facts.ec_thread_ptr, 0);
		cr_expect_eq(ruby_gvl_waits(&img->vm, t.ec), -EFAULT, "%s", img->version);
	}
}
