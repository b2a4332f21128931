/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A worker's answers, checked and made what the rest of rbpf works with. Whoever wrote the file may
 * have taken over the worker, so an answer may be any bytes: what comes out of here is in order,
 * its strings end, and its numbers are within their ranges, or it is -EPROTO. It may still be
 * wrong, as the file itself may be.
 *
 * All return 0, -EPROTO or -ENOMEM, and leave @ret alone on failure.
 */
#ifndef RBPF_WORKER_ANSWERS_H
#define RBPF_WORKER_ANSWERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "elf/cfi.h"
#include "elf/code.h"
#include "elf/dwarf.h"
#include "elf/elf_headers.h"
#include "elf/symbols.h"

struct buf;
struct file_exports;
struct file_lines;

int answer_headers(const void *data, size_t size, struct elf_headers *ret);

/* @n names were asked for. */
int answer_exports(const void *data, size_t size, size_t n, struct file_exports *ret);

int answer_tls(const void *data, size_t size, struct elf_tls *ret);

/* The rules are added to @rules, and the words name those. */
int answer_table(const void *data, size_t size, struct cfi_rules *rules, struct cfi_table *ret);

int answer_symbols(const void *data, size_t size, struct elf_symbols *ret);

/* The answers to @n questions at @facts; @where has PATH_MAX bytes. */
int answer_facts(const void *data, size_t size, struct dwarf_fact *facts, size_t n, char *where);

/* @ret->text takes @data, which must be malloc'ed. */
int answer_lines(void *data, size_t size, struct file_lines *ret);

/* The instructions of the @bytes bytes at @start. */
int answer_code(const void *data, size_t size, uint64_t start, uint64_t bytes,
		struct elf_code *ret);

/* Append the text to @ret. */
int answer_text(const void *data, size_t size, size_t max, struct buf *ret);

#endif
