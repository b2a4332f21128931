/* SPDX-License-Identifier: GPL-2.0-only */
#include "worker/file_worker.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/array.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/io.h"
#include "base/stop.h"
#include "base/utf8.h"
#include "elf/cfi.h"
#include "elf/demangle.h"
#include "elf/dwarf.h"
#include "elf/symbols.h"
#include "worker/answers.h"
#include "worker/sandbox.h"
#include "worker/serve.h"
#include "worker/wire.h"

#define SLICE_MS                                                                                   \
	20 /* how often it is looked whether rbpf is to end, and what the worker has used */

/*
 * An answer is read into rbpf's own memory: it may take one part in so many of what a worker may.
 */
#define ANSWER_PART 4

#define READ_CHUNK  (4u << 20) /* bytes, of a file that the worker reads */

_Static_assert(FILE_EXPORTS_NAMES == WIRE_MAX_NAMES, "one limit");
_Static_assert(FILE_EXPORTS_SEGMENTS == WIRE_MAX_SEGMENTS, "one limit");
_Static_assert(FILE_MAX_LINES == WIRE_MAX_LINES, "one limit");
_Static_assert(ELF_TLS_PLACES == WIRE_MAX_TLS_PLACES, "one limit");

/* ---- processes ---- */

static int spawn_by_fork_server(void *arg, int sock, int memfd, pid_t *ret)
{
	struct file_worker *w = arg;
	int r = w->fork_server.pid < 0
			? fork_server_start(&w->fork_server, serve, w->opts.max_memory)
			: 0;

	return r ? r : fork_server_spawn(&w->fork_server, sock, memfd, ret);
}

void file_worker_init(struct file_worker *w, const struct file_worker_options *opts)
{
	const struct file_worker_options none = { 0 };
	struct worker_options worker;

	*w = (struct file_worker) { .opts = opts ? *opts : none, .fork_server = FORK_SERVER_INIT };
	if (!w->opts.max_memory || w->opts.max_memory > SANDBOX_MAX_MEMORY)
		w->opts.max_memory = SANDBOX_MAX_MEMORY;
	if (w->opts.max_memory < SANDBOX_MIN_MEMORY)
		w->opts.max_memory = SANDBOX_MIN_MEMORY;
	worker = (struct worker_options) { .spawn = w->opts.spawn,
					   .spawn_arg = w->opts.spawn_arg,
					   .open = debug_file_open_regular,
					   .max_cpu_ns = w->opts.max_cpu_ns,
					   .stall_ns = w->opts.stall_ns };
	if (!worker.spawn) {
		worker.spawn = spawn_by_fork_server;
		worker.spawn_arg = w;
	}
	worker_init(&w->worker, &worker);
	worker_init(&w->background, &worker);
	w->reading.file.fd = -1;
}

static void end_reading(struct file_reading *reading)
{
	cleanup_close(&reading->file.fd);
	free((char *)reading->file.path);
	*reading = (struct file_reading) { .file.fd = -1 };
}

void file_worker_deinit(struct file_worker *w)
{
	worker_deinit(&w->worker);
	worker_deinit(&w->background);
	end_reading(&w->reading);
	fork_server_stop(&w->fork_server);
	file_losses_deinit(&w->losses);
}

int file_worker_prepare(struct file_worker *w)
{
	return worker_prepare(&w->worker);
}

uint64_t file_worker_cpu_ns(const struct file_worker *w)
{
	return worker_cpu_ns(&w->worker) + worker_cpu_ns(&w->background);
}

/* ---- requests ---- */

static enum worker_failure wait_for_answer(struct file_worker *w, struct worker_answer *ret)
{
	enum worker_failure why;
	int r;

	while ((r = worker_receive(&w->worker, SLICE_MS, ret, &why)) == -EAGAIN) {
		if (stop_overdue()) {
			worker_abandon(&w->worker);
			return WORKER_STOPPED;
		}
	}
	return r ? why : WORKER_OK;
}

static enum worker_failure send_and_wait(struct file_worker *w, const struct worker_call *call,
					 struct worker_answer *ret)
{
	enum worker_failure why = worker_send(&w->worker, call);

	return why ? why : wait_for_answer(w, ret);
}

/* What @call is about. */
static void set_file(const struct file_worker *w, struct worker_call *call,
		     const struct worker_file *file)
{
	call->fd = file ? file->fd : -1;
	if (file && file->fd >= 0 && file->pid && file->path) {
		call->path = file->path;
		call->pid = file->pid;
	}
	if (file && file->fd < 0) {
		call->args = file->image;
		call->args_size = file->size;
	}
	if (!call->max_answer)
		call->max_answer = w->opts.max_memory / ANSWER_PART;
}

/* What the worker says of @file, or -EIO if there is no answer, and why. */
static int judge(struct file_worker *w, const struct worker_file *file, enum worker_failure why,
		 const struct worker_answer *answer)
{
	if (why) {
		file_losses_add(&w->losses, file, why);
		return -EIO;
	}
	if (answer->result == -E2BIG || answer->result == -ETIME)
		file_losses_add(&w->losses, file,
				answer->result == -E2BIG ? WORKER_TOO_MUCH : WORKER_TOO_LONG);
	return answer->result;
}

/*
 * Ask @call about @file. Returns what the worker says, with what it says then in @ret (whose data
 * is to be freed), or -EIO.
 */
static int ask(struct file_worker *w, const struct worker_file *file, struct worker_call *call,
	       struct worker_answer *ret)
{
	enum worker_failure why;

	*ret = (struct worker_answer) { .data = NULL };
	set_file(w, call, file);
	if (file_losses_has(&w->losses, file) || stop_overdue())
		return -EIO;
	why = send_and_wait(w, call, ret);
	/* Somebody else may have killed it. */
	if (why == WORKER_CRASHED)
		why = send_and_wait(w, call, ret);
	return judge(w, file, why, ret);
}

/* @r is what became of checking an answer of @from: a worker that has lied is not asked again. */
static int checked_of(struct file_worker *w, struct worker *from, const struct worker_file *file,
		      int r)
{
	if (r != -EPROTO)
		return r;
	worker_deinit(from);
	file_losses_add(&w->losses, file, WORKER_LIED);
	return -EIO;
}

static int checked(struct file_worker *w, const struct worker_file *file, int r)
{
	return checked_of(w, &w->worker, file, r);
}

static ssize_t read_here(int fd, void *to, size_t size, uint64_t offset)
{
	ssize_t n;

	do
		n = pread(fd, to, size, (off_t)offset);
	while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : n;
}

/* One piece of it, by the worker. */
static ssize_t read_there(struct file_worker *w, int fd, void *to, size_t size, uint64_t offset)
{
	const struct worker_file file = { .fd = fd };
	struct worker_call call = { .op = WORKER_READ, .number = offset, .other = size };
	struct worker_answer answer;
	int r;

	r = ask(w, &file, &call, &answer);
	if (!r)
		r = checked(w, &file, answer.size <= size ? 0 : -EPROTO);
	if (!r && answer.size)
		memcpy(to, answer.data, answer.size);
	free(answer.data);
	return r ? r : (ssize_t)answer.size;
}

ssize_t file_worker_read(struct file_worker *w, int fd, void *to, size_t size, uint64_t offset)
{
	struct statx st;
	size_t done = 0;
	ssize_t n = 1;

	if (!w || (!io_stat(fd, &st) && io_is_on_device(&st)))
		return read_here(fd, to, size, offset);
	while (done < size && n > 0) {
		n = read_there(w, fd, (char *)to + done,
			       size - done < READ_CHUNK ? size - done : READ_CHUNK, offset + done);
		done += n > 0 ? (size_t)n : 0;
	}
	return n < 0 ? n : (ssize_t)done;
}

int file_worker_headers(struct file_worker *w, const struct worker_file *file,
			struct elf_headers *ret)
{
	struct worker_call call = { .op = WORKER_HEADERS };
	struct worker_answer answer;
	int r;

	r = ask(w, file, &call, &answer);
	if (!r)
		r = checked(w, file, answer_headers(answer.data, answer.size, ret));
	free(answer.data);
	return r;
}

int file_worker_exports(struct file_worker *w, const struct worker_file *file, bool dynamic,
			const char *library, const char *const *names, size_t n,
			struct file_exports *ret)
{
	struct worker_call call = { .op = WORKER_EXPORTS, .number = dynamic };
	struct buf strings _cleanup_buf_ = BUF_INIT;
	struct worker_answer answer;
	size_t i;
	int r;

	buf_add(&strings, library, strlen(library) + 1);
	for (i = 0; i < n; i++)
		buf_add(&strings, names[i], strlen(names[i]) + 1);
	if (buf_failed(&strings))
		return -ENOMEM;
	call.args = strings.data;
	call.args_size = strings.len;
	r = ask(w, file, &call, &answer);
	if (!r)
		r = checked(w, file, answer_exports(answer.data, answer.size, n, ret));
	free(answer.data);
	return r;
}

int file_worker_tls(struct file_worker *w, const struct worker_file *file, const char *name,
		    struct elf_tls *ret)
{
	struct worker_call call = { .op = WORKER_TLS, .args = name, .args_size = strlen(name) + 1 };
	struct worker_answer answer;
	int r;

	r = ask(w, file, &call, &answer);
	if (!r)
		r = checked(w, file, answer_tls(answer.data, answer.size, ret));
	free(answer.data);
	return r;
}

int file_worker_table(struct file_worker *w, const struct worker_file *file, uint64_t base,
		      struct cfi_rules *rules, struct cfi_table *ret)
{
	struct worker_call call = { .op = WORKER_TABLE, .number = base };
	struct worker_answer answer;
	int r;

	r = ask(w, file, &call, &answer);
	if (!r)
		r = checked(w, file, answer_table(answer.data, answer.size, rules, ret));
	free(answer.data);
	return r;
}

int file_worker_symbols(struct file_worker *w, const struct worker_file *file,
			struct elf_symbols *ret)
{
	struct worker_call call = { .op = WORKER_SYMBOLS };
	struct worker_answer answer;
	int r;

	r = ask(w, file, &call, &answer);
	if (!r)
		r = checked(w, file, answer_symbols(answer.data, answer.size, ret));
	free(answer.data);
	return r;
}

/* ---- in the background ---- */

static enum worker_failure send_reading(struct file_worker *w)
{
	const struct file_reading *reading = &w->reading;
	struct worker_call call = { .op = reading->part == FILE_TABLE ? WORKER_TABLE
								      : WORKER_SYMBOLS,
				    .number = reading->base };

	set_file(w, &call, &reading->file);
	return worker_send(&w->background, &call);
}

int file_worker_begin(struct file_worker *w, enum file_part part, const struct worker_file *file,
		      uint64_t base)
{
	struct file_reading *reading = &w->reading;
	enum worker_failure why;

	if (w->background.busy)
		return -EBUSY;
	if (file_losses_has(&w->losses, file) || stop_overdue())
		return -EIO;
	*reading = (struct file_reading) { .part = part, .base = base, .file = *file };
	reading->file.path = NULL;
	reading->file.fd = file->fd < 0 ? -1 : fcntl(file->fd, F_DUPFD_CLOEXEC, 0);
	if (file->path)
		reading->file.path = strdup(file->path);
	if (file->path && !reading->file.path) {
		end_reading(reading);
		return -ENOMEM;
	}
	/* Without a descriptor it cannot be read now; that is not the file's fault. */
	why = file->fd >= 0 && reading->file.fd < 0 ? WORKER_STOPPED : send_reading(w);
	if (!why)
		return 0;
	file_losses_add(&w->losses, &reading->file, why);
	end_reading(reading);
	return -EIO;
}

/* -EAGAIN, or 0: there is an answer, or will be none, and *@why tells why. */
static int receive_reading(struct file_worker *w, bool wait, struct worker_answer *ret,
			   enum worker_failure *why)
{
	int r;

	do {
		r = worker_receive(&w->background, wait ? SLICE_MS : 0, ret, why);
		if (r == -EAGAIN && stop_overdue()) {
			worker_abandon(&w->background);
			*why = WORKER_STOPPED;
			return 0;
		}
		if (r == -EIO && *why == WORKER_CRASHED && !w->reading.again) {
			w->reading.again = true;
			*why = send_reading(w);
			r = *why ? -EIO : -EAGAIN;
		}
	} while (wait && r == -EAGAIN);
	return r == -EAGAIN ? r : 0;
}

/* 0 with an answer in @ret, which is for finish_reading(); -EAGAIN, or why there is none. */
static int take_reading(struct file_worker *w, bool wait, struct worker_answer *ret)
{
	enum worker_failure why = WORKER_OK;
	int r;

	*ret = (struct worker_answer) { .data = NULL };
	r = receive_reading(w, wait, ret, &why);
	if (r)
		return r;
	r = judge(w, &w->reading.file, why, ret);
	if (r) {
		free(ret->data);
		end_reading(&w->reading);
	}
	return r;
}

/* @r is what became of checking @answer. */
static int finish_reading(struct file_worker *w, struct worker_answer *answer, int r)
{
	r = checked_of(w, &w->background, &w->reading.file, r);
	free(answer->data);
	end_reading(&w->reading);
	return r;
}

int file_worker_symbols_end(struct file_worker *w, bool wait, struct elf_symbols *ret)
{
	struct worker_answer answer;
	int r = take_reading(w, wait, &answer);

	return r ? r : finish_reading(w, &answer, answer_symbols(answer.data, answer.size, ret));
}

int file_worker_table_end(struct file_worker *w, bool wait, struct cfi_rules *rules,
			  struct cfi_table *ret)
{
	struct worker_answer answer;
	int r = take_reading(w, wait, &answer);

	return r ? r
		 : finish_reading(w, &answer, answer_table(answer.data, answer.size, rules, ret));
}

void file_worker_abandon(struct file_worker *w)
{
	worker_abandon(&w->background);
	end_reading(&w->reading);
}

int file_worker_fd(const struct file_worker *w)
{
	return w->background.busy ? w->background.sock : -1;
}

/* ---- debug information ---- */

/* The questions as bytes. */
static int put_questions(const struct dwarf_fact *facts, size_t n, struct buf *out)
{
	struct buf strings _cleanup_buf_ = BUF_INIT;
	size_t i;

	for (i = 0; i < n; i++) {
		struct wire_question q = { .type = (uint32_t)strings.len, .member = UINT32_MAX };

		buf_add(&strings, facts[i].type, strlen(facts[i].type) + 1);
		if (facts[i].member) {
			q.member = (uint32_t)strings.len;
			buf_add(&strings, facts[i].member, strlen(facts[i].member) + 1);
		}
		buf_add(out, &q, sizeof(q));
	}
	buf_add(out, strings.data, strings.len);
	return buf_failed(&strings) || buf_failed(out) ? -ENOMEM : 0;
}

int file_worker_facts(struct file_worker *w, const struct worker_file *file,
		      struct dwarf_fact *facts, size_t n, size_t n_clear, char *where)
{
	struct worker_call call = { .op = WORKER_FACTS, .number = n, .other = n_clear };
	struct buf questions _cleanup_buf_ = BUF_INIT;
	struct worker_answer answer;
	int r;

	r = put_questions(facts, n, &questions);
	if (r)
		return r;
	call.args = questions.data;
	call.args_size = questions.len;
	r = ask(w, file, &call, &answer);
	if (!r)
		r = checked(w, file, answer_facts(answer.data, answer.size, facts, n, where));
	free(answer.data);
	return r;
}

static int ask_lines(struct file_worker *w, const struct worker_file *file, uint64_t id,
		     uint64_t addr, struct file_lines *ret)
{
	const struct worker_file nothing = { .fd = -1, .path = file->path };
	struct worker_call call = { .op = WORKER_LINES, .number = id, .other = addr };
	struct worker_answer answer;
	int r;

	r = ask(w, &nothing, &call, &answer);
	if (!r)
		r = checked(w, file, answer_lines(answer.data, answer.size, ret));
	if (r)
		free(answer.data);
	return r;
}

int file_worker_lines(struct file_worker *w, const struct worker_file *file, uint64_t *id,
		      uint64_t addr, struct file_lines *ret)
{
	struct worker_call call = { .op = WORKER_LINES_OPEN };
	struct worker_answer answer;
	int r = -ENOKEY;

	if (*id)
		r = ask_lines(w, file, *id, addr, ret);
	else
		*id = ++w->next_lines;
	if (r != -ENOKEY || file->fd < 0)
		return r;
	call.number = *id;
	r = ask(w, file, &call, &answer);
	free(answer.data);
	return r ? r : ask_lines(w, file, *id, addr, ret);
}

void file_lines_deinit(struct file_lines *lines)
{
	free(lines->text);
	*lines = (struct file_lines) { .n = 0 };
}

int file_worker_code(struct file_worker *w, const struct worker_file *file, uint64_t start,
		     uint64_t size, struct elf_code *ret)
{
	struct worker_call call = { .op = WORKER_CODE, .number = start, .other = size };
	struct worker_answer answer;
	int r;

	r = ask(w, file, &call, &answer);
	if (!r)
		r = checked(w, file, answer_code(answer.data, answer.size, start, size, ret));
	free(answer.data);
	return r;
}

int file_worker_demangle(struct file_worker *w, const char *name, struct buf *out)
{
	struct worker_call call = { .op = WORKER_DEMANGLE,
				    .max_cpu_ns = FILE_WORKER_DEMANGLE_NS,
				    .args = name,
				    .args_size = strlen(name) + 1 };
	struct worker_answer answer;
	int r;

	if (name[0] != '_' || call.args_size > DEMANGLE_MAX_NAME + 1)
		return -ENOENT;
	if (w->bad_names >= FILE_WORKER_MAX_BAD_NAMES)
		return -EIO;
	r = ask(w, NULL, &call, &answer);
	if (!r)
		r = checked(w, NULL,
			    answer_text(answer.data, answer.size, DEMANGLE_MAX_OUTPUT, out));
	free(answer.data);
	if (r == -EIO)
		w->bad_names++;
	return r;
}
