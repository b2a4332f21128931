/* SPDX-License-Identifier: GPL-2.0-only */
#include "symbol/code_symbols.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "symbol/code_files.h"
#include "worker/file_worker.h"

void code_symbols_free(struct code_symbols *symbols)
{
	if (!symbols)
		return;
	elf_symbols_deinit(&symbols->elf);
	free(symbols);
}

/* The file of @place of those that are wanted is not wanted any more. */
static void drop(struct symbol_reader *r, size_t place)
{
	struct code_file *file = r->wanted[place];

	memmove(&r->wanted[place], &r->wanted[place + 1], (--r->n - place) * sizeof(*r->wanted));
	code_file_unref(r->files, file);
}

void symbol_reader_deinit(struct symbol_reader *r)
{
	if (r->has_begun)
		file_worker_symbols_abandon(r->files->worker);
	for (; r->n; drop(r, r->n - 1)) {
		code_symbols_free(r->wanted[r->n - 1]->symbols);
		r->wanted[r->n - 1]->symbols = NULL;
	}
	free(r->wanted);
}

/* Symbols of @file that are not read yet. Returns 0 or -ENOMEM. */
static int add(struct symbol_reader *r, struct code_file *file)
{
	struct code_symbols *s = calloc(1, sizeof(*s));

	if (!s)
		return -ENOMEM;
	s->no_lines = !r->inlines || file->image;
	file->symbols = s;
	return 0;
}

/* All that is to be read of @file at once was read, or cannot be: then it has no names. */
static void finish(struct symbol_reader *r, struct code_file *file)
{
	file->symbols->is_wanted = false;
	/* Lines are read address by address. */
	if (file->symbols->no_lines)
		code_file_done(r->files, file, CODE_PART_SYMBOLS);
}

/* ---- at once ---- */

static int read_now(struct symbol_reader *r, struct code_file *file)
{
	struct worker_file from;
	int err;

	err = code_file_for_worker(r->files, file, &from);
	if (!err)
		err = file_worker_symbols(r->files->worker, &from, &file->symbols->elf);
	if (err == -ENOMEM)
		return err;
	finish(r, file);
	return 0;
}

/* @file is wanted already: it is waited for, or read before others. */
static int hurry(struct symbol_reader *r, struct code_file *file)
{
	size_t place = 0;
	int err;

	while (r->wanted[place] != file)
		place++;
	if (!place && r->has_begun) {
		err = file_worker_symbols_end(r->files->worker, true, &file->symbols->elf);
		r->has_begun = false;
		finish(r, file);
	} else {
		err = read_now(r, file);
	}
	if (err == -ENOMEM)
		return err;
	drop(r, place);
	return 0;
}

struct code_symbols *symbol_reader_get(struct symbol_reader *r, struct code_file *file)
{
	int err = 0;

	if (!file->symbols) {
		if (add(r, file))
			return NULL;
		err = read_now(r, file);
		if (err) {
			code_symbols_free(file->symbols);
			file->symbols = NULL;
		}
	} else if (file->symbols->is_wanted) {
		err = hurry(r, file);
	}
	return err ? NULL : file->symbols;
}

/* ---- ahead ---- */

int symbol_reader_want(struct symbol_reader *r, struct code_file *file)
{
	if (file->symbols)
		return !file->symbols->is_wanted;
	if (array_reserve(r->wanted, r->cap, r->n + 1) || add(r, file))
		return -ENOMEM;
	file->symbols->is_wanted = true;
	r->wanted[r->n++] = code_file_ref(r->files, file);
	return symbol_reader_poll(r, false) ? -ENOMEM : !file->symbols->is_wanted;
}

/* Begin to read the first one. Returns 0 or why it cannot be read. */
static int begin(struct symbol_reader *r)
{
	struct worker_file from;
	int err;

	if (r->has_begun)
		return 0;
	err = code_file_for_worker(r->files, r->wanted[0], &from);
	if (!err)
		err = file_worker_symbols_begin(r->files->worker, &from);
	r->has_begun = !err;
	return err;
}

int symbol_reader_poll(struct symbol_reader *r, bool wait)
{
	int err;

	while (r->n) {
		err = begin(r);
		if (!err)
			err = file_worker_symbols_end(r->files->worker, wait,
						      &r->wanted[0]->symbols->elf);
		/* The worker is another reader's, for a moment. */
		if (err == -EAGAIN || err == -EBUSY)
			return 0;
		r->has_begun = false;
		if (err == -ENOMEM)
			return err;
		finish(r, r->wanted[0]);
		drop(r, 0);
	}
	return 0;
}
