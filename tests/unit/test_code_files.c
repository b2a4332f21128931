/* SPDX-License-Identifier: GPL-2.0-only */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fds.h"
#include "support/code_image.h"
#include "support/test_worker.h"
#include "symbol/code_files.h"
#include "target/maps.h"

static void assert_sane_files(const struct code_files *files)
{
	size_t n_open = 0, idle = 0;

	for (size_t i = 0; i < files->n; i++) {
		const struct code_file *f = files->v[i];

		cr_assert(!i || memcmp(&files->v[i - 1]->key, &f->key, sizeof(f->key)) < 0);
		cr_assert_not_null(f->path);
		cr_assert_gt(f->headers.n, 0);
		cr_assert(f->fd < 0 || !f->image);
		cr_assert_eq(!f->image, f->key.device != 0);
		cr_assert(f->table_state == CODE_TABLE_READY || !f->table.words);
		n_open += f->fd >= 0;
		idle += !f->references;
	}
	cr_assert_eq(files->n_open, n_open);
	cr_assert_eq(files->n_idle, idle);
	cr_assert_leq(n_open, fds_share(CODE_FILES_OPEN));
	cr_assert_leq(idle, CODE_FILES_IDLE);
}

/* The file at @path as if it were mapped: not by its addresses, so it is found by its name. */
static int file_at(struct code_files *files, const char *path, struct code_file **ret)
{
	struct map map = { .start = 0x1000, .end = 0x2000, .path = (char *)path };
	struct stat st;

	cr_assert_eq(stat(path, &st), 0, "%s", path);
	map.inode = st.st_ino;
	return code_files_of_map(files, getpid(), &map, ret);
}

static const struct map *map_named(const struct maps *maps, const char *name)
{
	for (size_t i = 0; i < maps->n; i++)
		if (!strcmp(maps->v[i].path, name) && maps->v[i].exec)
			return &maps->v[i];
	return NULL;
}

Test(code_files, same_file)
{
	struct code_file *a, *b, *c;
	struct code_image one, two;
	struct code_files files;

	cr_assert_eq(code_files_init(&files, test_worker(), NULL), 0);
	code_image_make(&one, 1, 16);
	code_image_make(&two, 1, 16);
	cr_assert_eq(file_at(&files, one.path, &a), 0);
	cr_assert_eq(file_at(&files, two.path, &b), 0);
	cr_assert_eq(file_at(&files, one.path, &c), 0);
	cr_expect_eq(a, c);
	cr_expect_neq(a, b, "contents alone do not make it the same");
	cr_expect_eq(a->references, 2);
	cr_expect_geq(a->fd, 0);
	cr_expect_str_eq(a->path, one.path);
	cr_expect_eq(a->headers.base, CFI_BUILDER_BASE);
	assert_sane_files(&files);

	code_image_write(&one, 2, 16);
	cr_assert_eq(file_at(&files, one.path, &c), 0);
	cr_expect_neq(a, c, "it has been written anew");
	cr_expect_neq(a->id, c->id);
	assert_sane_files(&files);
	code_file_unref(&files, a);
	code_file_unref(&files, a);
	code_file_unref(&files, b);
	code_file_unref(&files, c);
	code_file_unref(&files, NULL);
	cr_expect_eq(files.n_open, 0, "nobody needs them");
	cr_expect_null(code_file_ref(&files, NULL));
	assert_sane_files(&files);
	cr_expect_eq(files.n_idle, 3, "kept for who comes next");
	cr_expect_eq(files.v[0]->references, 0);
	code_files_deinit(&files);
	code_image_remove(&one);
	code_image_remove(&two);
}

Test(code_files, what_is_none)
{
	struct map gone = {
		.start = 0x1000, .end = 0x2000, .inode = 1, .path = (char *)"/nowhere"
	};
	struct code_file *file = (struct code_file *)&gone;
	struct code_files files;

	cr_assert_eq(code_files_init(&files, test_worker(), NULL), 0);
	cr_expect_eq(file_at(&files, "/etc/passwd", &file), -ENOEXEC);
	cr_expect_lt(code_files_of_map(&files, getpid(), &gone, &file), 0);
	cr_expect_eq(file, (struct code_file *)&gone, "untouched");
	cr_expect_eq(files.n, 0);
	code_files_deinit(&files);
}

Test(code_files, vdso)
{
	const struct cfi_table *table, *again;
	struct maps maps = MAPS_INIT;
	struct code_file *a, *b;
	struct code_files files;
	const struct map *vdso;

	cr_assert_eq(maps_read(getpid(), &maps, NULL), 0);
	vdso = map_named(&maps, CODE_VDSO_PATH);
	cr_assert_not_null(vdso);
	cr_assert_eq(code_files_init(&files, test_worker(), NULL), 0);
	cr_assert_eq(code_files_of_vdso(&files, getpid(), vdso, &a), 0);
	cr_assert_eq(code_files_of_vdso(&files, getpid(), vdso, &b), 0);
	cr_expect_eq(a, b);
	cr_expect_str_eq(a->path, CODE_VDSO_PATH);
	cr_expect_eq(code_file_open(&files, a), -ENOENT);
	cr_assert_eq(code_file_table(&files, a, &table), 0);
	cr_expect_gt(table->rows, 1);
	code_file_forget_table(a);
	cr_expect_eq(a->table_state, CODE_TABLE_NOT_TRIED);
	cr_assert_eq(code_file_table(&files, a, &again), 0, "its image stays");
	assert_sane_files(&files);
	((char *)a->image)[100] ^= 1;
	cr_expect_eq(code_files_of_vdso(&files, getpid(), vdso, &b), -EEXIST);
	code_files_deinit(&files);
	maps_deinit(&maps);
}

Test(code_files, tables)
{
	const struct cfi_table *table = NULL, *again;
	struct code_image image, none;
	struct code_file *file, *without;
	struct code_files files;

	cr_assert_eq(code_files_init(&files, test_worker(), NULL), 0);
	code_image_make(&image, 2, 16);
	code_image_make(&none, 0, 16);
	cr_assert_eq(file_at(&files, image.path, &file), 0);
	cr_expect_eq(file->table_state, CODE_TABLE_NOT_TRIED);
	cr_assert_eq(code_file_table(&files, file, &table), 0);
	cr_expect_eq(table->base, file->headers.base);
	cr_expect_eq(code_file_table(&files, file, &again), 0);
	cr_expect_eq(table, again);
	cr_expect_geq(file->fd, 0, "symbols may still be asked for");
	code_file_done(&files, file, CODE_PART_SYMBOLS);
	cr_expect_eq(file->fd, -1);
	cr_expect_geq(code_file_open(&files, file), 0, "anew, by its name");
	code_file_done(&files, file, CODE_PART_ALL);

	cr_assert_eq(file_at(&files, none.path, &without), 0);
	cr_expect_eq(code_file_table(&files, without, &again), -ENOENT);
	cr_expect_eq(without->table_state, CODE_TABLE_NONE);
	cr_expect_lt(without->table_error, 0);
	cr_expect_eq(code_file_table(&files, without, &again), -ENOENT);
	assert_sane_files(&files);

	code_file_forget_table(file);
	unlink(image.path);
	cr_expect_eq(code_file_table(&files, file, &again), -ESTALE);
	cr_expect_eq(file->table_state, CODE_TABLE_NOT_TRIED, "it may come to be reached");
	code_image_write(&image, 2, 16);
	cr_expect_eq(code_file_open(&files, file), -ESTALE, "another file of the same name");
	code_files_deinit(&files);
	code_image_remove(&image);
	code_image_remove(&none);
}

/* What the naming side will have; here a count of how many were freed. */
struct code_symbols {
	int *freed;
};

static void count_freed(struct code_symbols *symbols)
{
	++*symbols->freed;
}

/* More files than may be open, and more than are kept when nothing needs them. */
Test(code_files, many)
{
	enum { N = CODE_FILES_OPEN + CODE_FILES_IDLE };
	static struct code_image images[N];
	static struct code_file *v[N];
	struct code_files files;
	int freed = 0;
	struct code_symbols symbols = { &freed };

	cr_assert_eq(code_files_init(&files, test_worker(), count_freed), 0);
	for (int i = 0; i < N; i++) {
		code_image_make(&images[i], 1, 16);
		cr_assert_eq(file_at(&files, images[i].path, &v[i]), 0);
		v[i]->symbols = &symbols;
	}
	assert_sane_files(&files);
	cr_expect_eq(files.n_open, fds_share(CODE_FILES_OPEN));
	cr_expect_eq(v[0]->fd, -1, "what was used least is closed");
	cr_expect_geq(code_file_open(&files, v[0]), 0);
	cr_expect_geq(v[N - 1]->fd, 0);
	assert_sane_files(&files);
	for (int i = 0; i < N; i++)
		code_file_unref(&files, v[i]);
	assert_sane_files(&files);
	cr_expect_eq(files.n, CODE_FILES_IDLE);
	cr_expect_eq(freed, N - CODE_FILES_IDLE);
	code_files_deinit(&files);
	cr_expect_eq(freed, N);
	for (int i = 0; i < N; i++)
		code_image_remove(&images[i]);
}
