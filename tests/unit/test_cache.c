/* SPDX-License-Identifier: GPL-2.0-only */
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>

#include "ruby/cache.h"
#include "ruby/vm.h"

/* A Ruby of a file; @n makes its layout and addresses its own. */
static struct ruby_vm a_vm(uint16_t n, uint64_t base)
{
	struct ruby_vm vm = {
		.binary = { .device = 7,
			    .inode = 1000,
			    .size = 5000000,
			    .mtime_ns = 1234567890123456789,
			    .build_id = "0123abcd",
			    .base = base },
		.symbols = base + 0x2000 + n,
	};

	for (uint16_t i = 0; i < RUBY_FIELDS; i++) {
		*ruby_layout_at(&vm.layout, i) = (uint16_t)(n + i);
		vm.source[i] = i % RUBY_SOURCES;
	}
	return vm;
}

static int get(const struct ruby_cache *cache, struct ruby_vm *vm, uint64_t *current_vm,
	       uint64_t *symbols)
{
	memset(&vm->layout, 0x55, sizeof(vm->layout));
	*current_vm = *symbols = 77;
	return ruby_cache_get(cache, 1000, vm, current_vm, symbols);
}

/* Another process of the same binary has it at another address. */
Test(cache, addresses_follow_the_load_bias)
{
	struct ruby_cache cache = RUBY_CACHE_INIT;
	struct ruby_vm first = a_vm(100, 0x550000000000), second = a_vm(0, 0x7f0000000000);
	uint64_t current_vm, symbols;

	cr_expect_eq(get(&cache, &second, &current_vm, &symbols), -ENOENT);
	cr_expect(current_vm == 77 && symbols == 77, "untouched");
	cr_assert_eq(ruby_cache_put(&cache, 1000, &first, 0x550000001000), 0);
	cr_assert_eq(get(&cache, &second, &current_vm, &symbols), 0);
	cr_expect_eq(current_vm, 0x7f0000001000);
	cr_expect_eq(symbols, 0x7f0000002000 + 100);
	cr_expect_arr_eq(&second.layout, &first.layout, sizeof(first.layout));
	cr_expect_arr_eq(second.source, first.source, sizeof(first.source));
	cr_expect_eq(second.binary.base, 0x7f0000000000, "the rest is its own");
	ruby_cache_deinit(&cache);
	ruby_cache_deinit(&cache);
}

/* A static binary that is loaded where it was linked for; an address that was not found. */
Test(cache, no_bias_and_no_address)
{
	struct ruby_cache cache = RUBY_CACHE_INIT;
	struct ruby_vm vm = a_vm(100, 0), other = a_vm(0, 0x7f0000000000);
	uint64_t current_vm, symbols;

	vm.symbols = 0;
	cr_assert_eq(ruby_cache_put(&cache, 1000, &vm, 0), 0);
	cr_assert_eq(get(&cache, &other, &current_vm, &symbols), 0);
	cr_expect_eq(current_vm, 0, "unknown stays unknown");
	cr_expect_eq(symbols, 0);
	ruby_cache_deinit(&cache);
}

/* What tells one file from another, in turn. */
Test(cache, another_file)
{
	struct ruby_cache cache = RUBY_CACHE_INIT;
	struct ruby_vm vm = a_vm(100, 0x1000), same = a_vm(0, 0x1000);
	uint64_t current_vm, symbols;

	cr_assert_eq(ruby_cache_put(&cache, 1000, &vm, 0x5000), 0);
	cr_assert_eq(get(&cache, &same, &current_vm, &symbols), 0);

	struct ruby_vm others[5];

	for (size_t i = 0; i < 5; i++)
		others[i] = a_vm(0, 0x1000);
	others[0].binary.device++;
	others[1].binary.inode++;
	others[2].binary.size++;
	others[3].binary.mtime_ns++;
	strcpy(others[4].binary.build_id, "0123abce");
	for (size_t i = 0; i < 5; i++)
		cr_expect_eq(get(&cache, &others[i], &current_vm, &symbols), -ENOENT, "case %zu",
			     i);
	ruby_cache_deinit(&cache);
}

Test(cache, many_files)
{
	struct ruby_cache cache = RUBY_CACHE_INIT;
	uint64_t current_vm, symbols;
	struct ruby_vm vm;

	for (uint16_t i = 0; i < 500; i++) {
		vm = a_vm(i, 0x1000);
		vm.binary.inode = i;
		cr_assert_eq(ruby_cache_put(&cache, 1000, &vm, 0x5000 + i), 0);
	}
	for (uint16_t i = 0; i < 500; i++) {
		vm = a_vm(0, 0);
		vm.binary.inode = i;
		cr_assert_eq(get(&cache, &vm, &current_vm, &symbols), 0);
		cr_expect_eq(current_vm, 0x4000 + i);
		cr_expect_eq(vm.layout.ec_fiber_ptr, i);
	}
	ruby_cache_deinit(&cache);
}

/* A binary that was proven anew, because what was known of it has failed: the later one counts. */
Test(cache, put_again)
{
	struct ruby_cache cache = RUBY_CACHE_INIT;
	struct ruby_vm wrong = a_vm(100, 0x1000), right = a_vm(200, 0x1000), vm = a_vm(0, 0x1000);
	uint64_t current_vm, symbols;

	cr_assert_eq(ruby_cache_put(&cache, 1000, &wrong, 0x5000), 0);
	cr_assert_eq(ruby_cache_put(&cache, 1000, &right, 0x6000), 0);
	cr_assert_eq(get(&cache, &vm, &current_vm, &symbols), 0);
	cr_expect_eq(current_vm, 0x6000);
	cr_expect_eq(vm.layout.ec_fiber_ptr, 200);
	ruby_cache_deinit(&cache);
}

/* What another user's process shows is not believed; what root's shows is. */
Test(cache, each_user_has_entries_of_its_own)
{
	struct ruby_cache cache = RUBY_CACHE_INIT;
	struct ruby_vm own = a_vm(100, 0), roots = a_vm(200, 0), vm = a_vm(0, 0);
	uint64_t current_vm, symbols;

	cr_assert_eq(ruby_cache_put(&cache, 1000, &own, 0x5000), 0);
	cr_expect_eq(ruby_cache_get(&cache, 1001, &vm, &current_vm, &symbols), -ENOENT);
	cr_expect_eq(ruby_cache_get(&cache, 0, &vm, &current_vm, &symbols), -ENOENT);
	cr_assert_eq(ruby_cache_put(&cache, 0, &roots, 0x6000), 0);
	cr_assert_eq(ruby_cache_get(&cache, 1001, &vm, &current_vm, &symbols), 0);
	cr_expect_eq(current_vm, 0x6000);
	cr_assert_eq(ruby_cache_get(&cache, 1000, &vm, &current_vm, &symbols), 0);
	cr_expect_eq(current_vm, 0x5000);
	ruby_cache_deinit(&cache);
}

Test(cache, limited)
{
	struct ruby_cache cache = RUBY_CACHE_INIT;
	struct ruby_vm vm = a_vm(100, 0);
	uint64_t current_vm, symbols;
	uid_t uid;

	for (uid = 1; uid <= RUBY_CACHE_MAX + 1; uid++)
		cr_assert_eq(ruby_cache_put(&cache, uid, &vm, 0x5000 + uid), 0);
	cr_expect_eq(cache.n, RUBY_CACHE_MAX);
	cr_expect_eq(ruby_cache_get(&cache, 1, &vm, &current_vm, &symbols), -ENOENT, "the oldest");
	cr_assert_eq(ruby_cache_get(&cache, 2, &vm, &current_vm, &symbols), 0);
	cr_assert_eq(ruby_cache_get(&cache, RUBY_CACHE_MAX + 1, &vm, &current_vm, &symbols), 0);
	cr_expect_eq(current_vm, 0x5000 + RUBY_CACHE_MAX + 1);
	ruby_cache_deinit(&cache);
}
