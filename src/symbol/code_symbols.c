/* SPDX-License-Identifier: GPL-2.0-only */
#include "symbol/code_symbols.h"

#include <errno.h>
#include <stdlib.h>

#include "symbol/code_readahead.h"
#include "symbol/code_files.h"
#include "worker/file_worker.h"

void code_symbols_free(struct code_symbols *symbols)
{
	if (!symbols)
		return;
	elf_symbols_deinit(&symbols->elf);
	free(symbols);
}

bool code_symbols_queued(const struct code_file *file)
{
	return file->queued & CODE_PART_SYMBOLS;
}

/* Symbols of @file that are not read yet. Returns 0 or -ENOMEM. */
static int add(struct code_file *file, bool inlines)
{
	file->symbols = calloc(1, sizeof(*file->symbols));
	if (!file->symbols)
		return -ENOMEM;
	file->symbols->no_lines = !inlines || file->image;
	return 0;
}

void code_symbols_set(struct code_files *files, struct code_file *file)
{
	/* Lines are read address by address. */
	if (file->symbols->no_lines)
		code_file_done(files, file, CODE_PART_SYMBOLS);
}

static int read_now(struct code_files *files, struct code_file *file)
{
	struct worker_file from;
	int r;

	r = code_file_for_worker(files, file, &from);
	if (!r)
		r = file_worker_symbols(files->worker, &from, &file->symbols->elf);
	if (r == -ENOMEM) {
		code_symbols_free(file->symbols);
		file->symbols = NULL;
		return r;
	}
	code_symbols_set(files, file);
	return 0;
}

struct code_symbols *code_symbols_get(struct code_files *files, struct code_file *file,
				      bool inlines)
{
	int r;

	if (file->symbols && !code_symbols_queued(file))
		return file->symbols;
	r = file->symbols ? code_readahead_wait(files, file, CODE_PART_SYMBOLS)
			  : add(file, inlines);
	if (!r)
		r = read_now(files, file);
	return r < 0 ? NULL : file->symbols;
}

int code_symbols_queue(struct code_files *files, struct code_file *file, bool inlines)
{
	int r = 0;

	if (!file->symbols) {
		r = add(file, inlines);
		if (!r)
			r = code_readahead_queue(files, file, CODE_PART_SYMBOLS);
	}
	return r ? r : !code_symbols_queued(file);
}
