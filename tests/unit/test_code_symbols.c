/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Symbols that are read while the test does other things: those of the files that it is made of.
 * Any of them may have been read by the time that the test looks.
 */
#include <criterion/criterion.h>
#include <dlfcn.h>
#include <stdint.h>
#include <unistd.h>

#include "base/array.h"
#include "support/test_worker.h"
#include "symbol/code_readahead.h"
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
	f->own = file_of(f, (const void *)function);
	f->libc = file_of(f, dlsym(RTLD_DEFAULT, "getppid"));
	f->criterion = file_of(f, dlsym(RTLD_DEFAULT, "criterion_initialize"));
}

static void teardown(struct fixture *f)
{
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
	cr_assert_geq(code_symbols_queue(&f.files, f.libc, false), 0);
	cr_assert_geq(code_symbols_queue(&f.files, f.libc, false), 0);
	cr_assert_leq(f.files.n_jobs, 1, "asked for twice");
	cr_assert_geq(code_symbols_queue(&f.files, f.own, false), 0);
	cr_assert_eq(code_readahead_poll(&f.files, true), 0);
	cr_expect_eq(file_worker_fd(f.files.worker), -1);
	ready = code_symbols_queue(&f.files, f.own, false) +
		code_symbols_queue(&f.files, f.libc, false);
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
			cr_assert_geq(code_symbols_queue(&f.files, files[k], false), 0);
		cr_assert_eq(code_symbols_get(&f.files, files[i], false), files[i]->symbols);
		cr_expect(!code_symbols_queued(files[i]));
		cr_expect_gt(files[i]->symbols->elf.n, 100);
		cr_assert_eq(code_readahead_poll(&f.files, true), 0);
		for (k = 0; k < 3; k++)
			cr_expect_eq(code_symbols_queue(&f.files, files[k], false), 1);
		expect_function(f.own, address_of(&f, (const void *)function), "function");
		teardown(&f);
	}
}

Test(code_symbols, table_and_symbols)
{
	const struct cfi_table *table;
	struct fixture f;

	setup(&f);
	cr_assert_eq(code_readahead_queue(&f.files, f.libc, CODE_PART_TABLE), 0);
	cr_assert_eq(code_readahead_queue(&f.files, f.own, CODE_PART_TABLE), 0);
	cr_assert_eq(code_readahead_queue(&f.files, f.own, CODE_PART_TABLE), 0, "asked for twice");
	cr_assert_geq(code_symbols_queue(&f.files, f.own, false), 0);
	cr_expect_leq(f.files.n_jobs, 3);
	cr_assert_eq(code_readahead_poll(&f.files, true), 0);
	cr_expect_eq(f.own->queued | f.libc->queued, 0);
	cr_expect_eq(f.own->table_state, CODE_TABLE_READY);
	cr_assert_eq(code_file_table(&f.files, f.libc, &table), 0);
	cr_expect_gt(table->rows, 1000);
	expect_function(f.own, address_of(&f, (const void *)function), "function");
	teardown(&f);
}

/*
 * The last process that maps a file has gone: what was queued is read all the same, and then the
 * file is closed. Which other parts it has is asked for when another process maps it.
 */
Test(code_symbols, nobody_maps_them_any_more)
{
	struct fixture f;

	setup(&f);
	code_map_use(f.map);
	code_map_use(f.map);
	cr_assert_geq(code_symbols_queue(&f.files, f.libc, false), 0);
	cr_assert_geq(code_symbols_queue(&f.files, f.own, false), 0);
	cr_assert(code_symbols_queued(f.own));
	code_map_unuse(f.map);
	cr_expect_geq(f.criterion->fd, 0, "one process has it still");
	code_map_unuse(f.map);
	cr_expect_eq(f.criterion->fd, -1);
	cr_expect_geq(f.own->fd, 0, "it is to be read");
	cr_assert_eq(code_readahead_poll(&f.files, true), 0);
	cr_expect_eq(f.own->fd, -1);
	cr_expect_eq(f.files.n_open, 0);
	expect_function(f.own, address_of(&f, (const void *)function), "function");
	code_map_use(f.map);
	cr_assert_not_null(code_symbols_get(&f.files, f.criterion, false));
	cr_expect_gt(f.criterion->symbols->elf.n, 100, "it is opened anew");
	cr_expect_geq(f.criterion->fd, 0, "its table may be asked for");
	code_map_unuse(f.map);
	cr_expect_eq(f.files.n_open, 0);
	teardown(&f);
}

/* A stack that is walked without a table is lost, one without names is held. */
Test(code_symbols, tables_go_first)
{
	struct fixture f;

	setup(&f);
	cr_assert_geq(code_symbols_queue(&f.files, f.own, false), 0);
	cr_assert_geq(code_symbols_queue(&f.files, f.libc, false), 0);
	cr_assert_geq(code_symbols_queue(&f.files, f.criterion, false), 0);
	cr_assert_eq(code_readahead_queue(&f.files, f.own, CODE_PART_TABLE), 0);
	/* Unless all but one have been read by now. */
	if (f.files.n_jobs > 2)
		cr_expect_eq(f.files.jobs[f.files.n_jobs - 1].part, CODE_PART_SYMBOLS);
	cr_assert_eq(code_readahead_poll(&f.files, true), 0);
	cr_expect_eq(f.own->table_state, CODE_TABLE_READY);
	cr_expect_eq(code_symbols_queue(&f.files, f.criterion, false), 1);
	teardown(&f);
}

/* With what is being read, and with what is not. */
Test(code_symbols, nobody_waits_for_them_any_more)
{
	struct fixture f;

	setup(&f);
	cr_assert_geq(code_symbols_queue(&f.files, f.own, false), 0);
	cr_assert_geq(code_symbols_queue(&f.files, f.libc, false), 0);
	teardown(&f);
	cr_expect_eq(file_worker_fd(test_worker()), -1);
	setup(&f);
	cr_assert_geq(code_symbols_queue(&f.files, f.own, false), 0);
	cr_assert_eq(code_readahead_poll(&f.files, true), 0);
	expect_function(f.own, address_of(&f, (const void *)function), "function");
	teardown(&f);
}
