/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A recording names files: it may be a stranger's, as may they. They are opened as the files that a
 * target names, and a worker parses them. Only the file with the recorded build id has the code
 * that ran: of another one nothing is shown.
 */
#include "cmd/annotate_code.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/array.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/utf8.h"
#include "elf/code.h"
#include "elf/symbols.h"
#include "profile/profile.h"
#include "target/target_file.h"
#include "view/instructions.h"
#include "worker/file_worker.h"

#define MAX_ROWS (1u << 20) /* of all functions: what is past this has no instructions */

/* The module whose code is being read. */
struct module {
	uint32_t id;		    /* PROFILE_NONE: none */
	struct worker_file file;    /* fd -1: it cannot be read … */
	char why[160];		    /* … because of this */
	struct elf_symbols symbols; /* owned */
	uint64_t lines_id;	    /* for file_worker_lines() */
	bool no_lines;
};

struct code_reading {
	const struct profile *profile;
	struct file_worker *worker;
	const char *root; /* of the modules */
	struct instructions *code;
	struct module module;
};

static int add_string(struct instructions *c, const char *text, uint32_t *ret)
{
	_cleanup_buf_ struct buf clean = BUF_INIT;

	utf8_sanitise(&clean, text, strlen(text));
	return buf_failed(&clean) || intern_str(&c->strings, buf_str(&clean), ret) ? -ENOMEM : 0;
}

/* ---- modules ---- */

static void close_file(struct module *m)
{
	cleanup_close(&m->file.fd);
	m->file.fd = -1;
}

static void close_module(struct module *m)
{
	close_file(m);
	elf_symbols_deinit(&m->symbols);
	*m = (struct module) { .id = PROFILE_NONE, .file.fd = -1, .symbols = ELF_SYMBOLS_INIT };
}

/* Why the file at a path cannot be opened. */
static const char *why_not_opened(int r)
{
	switch (r) {
	case -EPERM:
		return "it is not read, because it is neither root's nor yours, or others may "
		       "write it, or not all may read it";
	case -ENOTSUP:
		return "it is no regular file";
	default:
		return strerror(-r);
	}
}

/* Whether it is the file that was recorded; else .why says what it is. */
static bool is_recorded(struct code_reading *r, const char *build_id)
{
	struct module *m = &r->module;
	struct elf_headers headers = ELF_HEADERS_INIT;
	int failed = file_worker_headers(r->worker, &m->file, &headers);
	bool same = false;

	if (failed)
		snprintf(m->why, sizeof(m->why), "%s",
			 failed == -ENOEXEC ? "the file that is there now is no program or library "
					      "of this machine"
					    : "the file cannot be read");
	else if (!build_id[0] || !headers.build_id[0])
		snprintf(m->why, sizeof(m->why),
			 "without a build id, nothing tells whether the file is the one that ran");
	else if (strcmp(build_id, headers.build_id) != 0)
		snprintf(m->why, sizeof(m->why),
			 "the file that is there now is another: its build id is %.40s",
			 headers.build_id);
	else
		same = true;
	elf_headers_deinit(&headers);
	return same;
}

static int open_module(struct code_reading *r, uint32_t id)
{
	const struct profile_module *from = &r->profile->modules[id];
	struct target_file_request req = { .kind = TARGET_FILE_DEBUG,
					   .owner = (uid_t)-1,
					   .root = r->root,
					   .path = profile_str(r->profile, from->path) };
	struct module *m = &r->module;
	int failed = -ENOENT;

	if (m->id == id)
		return 0;
	close_module(m);
	m->id = id;
	if (req.path[0] == '/')
		m->file.fd = failed = target_file_open(&req);
	if (failed < 0) {
		m->file.fd = -1;
		snprintf(m->why, sizeof(m->why), "%s", why_not_opened(failed));
		return 0;
	}
	m->file.path = req.path;
	m->file.pid = getpid();
	failed = 0;
	if (!is_recorded(r, profile_str(r->profile, from->build_id)) ||
	    (failed = file_worker_symbols(r->worker, &m->file, &m->symbols))) {
		if (failed)
			snprintf(m->why, sizeof(m->why), "the symbols of the file cannot be read");
		close_file(m);
	}
	return failed == -ENOMEM ? failed : 0;
}

/* ---- blocks ---- */

static int set_line(struct code_reading *r, struct code_row *row)
{
	struct module *m = &r->module;
	struct file_lines lines = { .n = 0 };
	int failed;

	if (m->file.fd < 0 || m->no_lines)
		return 0;
	failed = file_worker_lines(r->worker, &m->file, &m->lines_id, row->address, &lines);
	m->no_lines = failed != 0;
	if (!failed && lines.n) {
		row->line = lines.v[0].line;
		failed = add_string(r->code, lines.v[0].file, &row->file);
	}
	file_lines_deinit(&lines);
	return failed == -ENOMEM ? failed : 0;
}

/*
 * The line of a place that has no instruction, and what the recording itself says of any, if it was
 * made with --inlines and nothing else is known.
 */
static int set_line_of_place(struct code_reading *r, const struct code_place *place)
{
	const struct profile_frame *f = &r->profile->frames[place->frame];
	struct code_row *row = &r->code->rows[place->row];
	int failed = row->size ? 0 : set_line(r, row);

	if (failed || row->line || !f->line || !f->file)
		return failed;
	row->line = f->line;
	return add_string(r->code, profile_str(r->profile, f->file), &row->file);
}

/* There are none, because of @why. */
static int set_note(struct code_reading *r, struct code_block *b, const char *why)
{
	return add_string(r->code, why, &b->note);
}

/* Where the jump or call @text leads to: "callq 0x1030", "cbz x0, #0x1030". False if it is none. */
static bool find_target(const char *text, uint64_t *ret)
{
	static const char *const jumps[] = { "call", "j", "b", "cb", "tb" };
	const char *operand = strrchr(text, ' ');
	bool jumps_there = false;

	for (size_t i = 0; i < ARRAY_SIZE(jumps); i++)
		jumps_there |= !strncmp(text, jumps[i], strlen(jumps[i]));
	if (!operand || !jumps_there)
		return false;
	operand += operand[1] == '#' ? 2 : 1;
	return sscanf(operand, "0x%" SCNx64, ret) == 1;
}

/* @text, with the name of the other function that it leads to. */
static int add_instruction_text(struct code_reading *r, const struct code_block *b,
				const char *text, uint32_t *ret)
{
	_cleanup_buf_ struct buf named = BUF_INIT;
	const struct elf_function *f = NULL;
	uint64_t target;
	int failed;

	buf_addstr(&named, text);
	if (find_target(text, &target) && (target < b->start || target >= b->end))
		f = elf_symbols_find(&r->module.symbols, target);
	if (f && f->name[0]) {
		buf_addstr(&named, " <");
		failed = file_worker_demangle(r->worker, f->name, &named);
		if (failed == -ENOMEM)
			return failed;
		if (failed)
			buf_addstr(&named, f->name);
		if (target != f->start)
			buf_addf(&named, "+0x%" PRIx64, target - f->start);
		buf_addch(&named, '>');
	}
	return buf_failed(&named) ? -ENOMEM : add_string(r->code, buf_str(&named), ret);
}

/* The rows of the last block: -ENOMEM, or 0, and then the block has a note if there is none. */
static int add_instructions(struct code_reading *r, struct code_block *b)
{
	_cleanup_elf_code_ struct elf_code code = ELF_CODE_INIT;
	char why[80];
	int failed;

	if (elf_code_load()) {
		snprintf(why, sizeof(why), "there is no disassembler (%s) on this machine",
			 elf_code_library());
		return set_note(r, b, why);
	}
	if (r->code->n_rows > MAX_ROWS)
		return set_note(r, b, "the functions before it have too many");
	failed = file_worker_code(r->worker, &r->module.file, b->start, b->end - b->start, &code);
	for (size_t i = 0; !failed && i < code.n; i++) {
		struct code_row row = { .address = code.v[i].address, .size = code.v[i].size };

		failed = add_instruction_text(r, b, buf_str(&code.text) + code.v[i].text,
					      &row.text);
		if (!failed)
			failed = set_line(r, &row);
		if (!failed)
			failed = instructions_add_row(r->code, &row);
	}
	if (failed == -ENOMEM)
		return failed;
	if (failed)
		return set_note(r, b, "the code of the file cannot be read");
	return b->end - b->start <= CODE_MAX_BYTES
		       ? 0
		       : set_note(r, b, "only the beginning of the function is shown");
}

static int name_symbol(struct code_reading *r, const struct elf_function *f, struct code_block *b)
{
	_cleanup_buf_ struct buf name = BUF_INIT;
	int failed = file_worker_demangle(r->worker, f->name, &name);

	if (failed == -ENOMEM)
		return failed;
	return add_string(r->code, failed ? f->name : buf_str(&name), &b->symbol);
}

/* The block of @n places from @places on, which are in @f; NULL: in no function that is known. */
static int add_block(struct code_reading *r, const struct elf_function *f,
		     struct code_place *places, size_t n)
{
	struct code_block b = { .function = places->function, .module = places->module };
	struct instructions *c = r->code;
	const char *why = r->module.file.fd < 0 ? r->module.why
						: "the file does not say where the function begins";
	int failed;

	if (f) {
		b.start = f->start;
		b.end = f->end;
		b.inlined = r->profile->frames[places->frame].flags & FRAME_INLINED;
		failed = name_symbol(r, f, &b);
	} else {
		failed = set_note(r, &b, why);
	}
	if (!failed)
		failed = instructions_add_block(c, &b);
	if (!failed && f) {
		failed = add_instructions(r, &b);
		c->blocks[c->n_blocks - 1].note = b.note;
	}
	if (!failed)
		failed = instructions_end_block(c, places, n);
	for (size_t i = 0; !failed && i < n; i++)
		failed = set_line_of_place(r, &places[i]);
	return failed;
}

static const struct elf_function *function_at(const struct code_reading *r,
					      const struct code_place *place)
{
	return r->module.file.fd < 0 ? NULL : elf_symbols_find(&r->module.symbols, place->address);
}

static int read_code(struct code_reading *r)
{
	struct instructions *c = r->code;
	const struct elf_function *f;
	size_t i, n;
	int failed;

	for (i = 0; i < c->n_places; i += n) {
		struct code_place *first = &c->places[i];

		failed = open_module(r, first->module);
		if (failed)
			return failed;
		f = function_at(r, first);
		for (n = 1; i + n < c->n_places && first[n].function == first->function &&
			    first[n].module == first->module && function_at(r, &first[n]) == f;)
			n++;
		failed = add_block(r, f, first, n);
		if (failed)
			return failed;
	}
	return 0;
}

int annotate_read_code(const struct profile *p, struct file_worker *worker, const char *root,
		       struct instructions *code)
{
	struct code_reading r = { .profile = p, .worker = worker, .root = root, .code = code };
	int failed;

	r.module =
		(struct module) { .id = PROFILE_NONE, .file.fd = -1, .symbols = ELF_SYMBOLS_INIT };
	failed = read_code(&r);
	close_module(&r.module);
	return failed;
}
