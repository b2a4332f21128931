/* SPDX-License-Identifier: GPL-2.0-only */
/* Symbols that are read while the test does other things: those of the files that it is made of. */
#include <criterion/criterion.h>
#include <dlfcn.h>
#include <stdint.h>
#include <unistd.h>

#include "base/array.h"
#include "support/test_worker.h"
#include "symbol/code_files.h"
#include "symbol/code_map.h"
#include "symbol/code_symbols.h"

static int function(void)
{
	return 1;
}

struct fixture {
	struct code_files files;
	struct code_map *map;
	struct symbol_reader reader;
	struct code_file *own, *libc, *criterion;
};

static struct code_file *file_of(struct fixture *f, const void *addr)
{
	const struct code_range *range = code_map_find(f->map, (uint64_t)addr);

	cr_assert(range && range->file);
	return range->file;
}

static void setup(struct fixture *f)
{
	*f = (struct fixture) { 0 };
	cr_assert_eq(code_files_init(&f->files, test_worker(), code_symbols_free), 0);
	cr_assert_eq(code_map_read(&f->files, getpid(), CODE_JIT_NONE, NULL, &f->map, NULL), 0);
	f->reader.files = &f->files;
	f->own = file_of(f, (const void *)function);
	f->libc = file_of(f, dlsym(RTLD_DEFAULT, "getppid"));
	f->criterion = file_of(f, dlsym(RTLD_DEFAULT, "criterion_initialize"));
}

static void teardown(struct fixture *f)
{
	symbol_reader_deinit(&f->reader);
	code_map_unref(f->map);
	code_files_deinit(&f->files);
}

static void expect_function(const struct code_file *file, uint64_t addr, const char *name)
{
	const struct elf_function *f = elf_symbols_find(&file->symbols->elf, addr);

	cr_assert_not_null(f);
	cr_expect_str_eq(f->name, name);
}

static uint64_t address_of(struct fixture *f, const void *addr)
{
	return (uint64_t)addr - code_map_find(f->map, (uint64_t)addr)->bias;
}

Test(code_symbols, read_ahead)
{
	struct fixture f;
	int ready;

	setup(&f);
	cr_expect_eq(symbol_reader_want(&f.reader, f.own), 0);
	cr_expect_eq(symbol_reader_want(&f.reader, f.libc), 0);
	cr_expect_eq(symbol_reader_want(&f.reader, f.own), 0, "asked for twice");
	cr_expect_eq(f.reader.n, 2);
	cr_expect_geq(file_worker_fd(f.files.worker), 0);
	cr_assert_eq(symbol_reader_poll(&f.reader, true), 0);
	cr_expect_eq(file_worker_fd(f.files.worker), -1);
	ready = symbol_reader_want(&f.reader, f.own) + symbol_reader_want(&f.reader, f.libc);
	cr_expect_eq(ready, 2);
	expect_function(f.own, address_of(&f, (const void *)function), "function");
	cr_expect_gt(f.libc->symbols->elf.n, 1000);
	teardown(&f);
}

/* Each of them is needed at once while all are being read. */
Test(code_symbols, needed_before_it_was_its_turn)
{
	struct fixture f;

	for (size_t i = 0; i < 3; i++) {
		setup(&f);
		struct code_file *files[] = { f.own, f.libc, f.criterion };
		size_t k;

		for (k = 0; k < 3; k++)
			cr_assert_geq(symbol_reader_want(&f.reader, files[k]), 0);
		cr_assert_eq(symbol_reader_get(&f.reader, files[i]), files[i]->symbols);
		cr_expect(!files[i]->symbols->is_wanted);
		cr_expect_gt(files[i]->symbols->elf.n, 100);
		cr_assert_eq(symbol_reader_poll(&f.reader, true), 0);
		for (k = 0; k < 3; k++)
			cr_expect_eq(symbol_reader_want(&f.reader, files[k]), 1);
		expect_function(f.own, address_of(&f, (const void *)function), "function");
		teardown(&f);
	}
}

Test(code_symbols, nobody_waits_for_them_any_more)
{
	struct fixture f;
	size_t references;

	setup(&f);
	references = f.own->references;
	cr_assert_eq(symbol_reader_want(&f.reader, f.own), 0);
	cr_assert_eq(symbol_reader_want(&f.reader, f.libc), 0);
	symbol_reader_deinit(&f.reader);
	cr_expect_null(f.own->symbols);
	cr_expect_eq(f.own->references, references);
	f.reader = (struct symbol_reader) { .files = &f.files };
	cr_expect_eq(symbol_reader_want(&f.reader, f.own), 0, "by another reader");
	cr_assert_eq(symbol_reader_poll(&f.reader, true), 0);
	expect_function(f.own, address_of(&f, (const void *)function), "function");
	teardown(&f);
}
