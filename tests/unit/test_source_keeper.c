/* SPDX-License-Identifier: GPL-2.0-only */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/io.h"
#include "profile/reader.h"
#include "profile/recorder.h"
#include "profile/source_heat.h"
#include "rbpf_file.h"
#include "sample/source_keeper.h"
#include "target/process.h"

/* ---- a recording of this process, whose samples are of files in a directory ---- */

static char dir[] = "/tmp/rbpf-source-keeper-XXXXXX";

struct made {
	struct recorder *rec;
	struct source_keeper keeper;
	struct profile p;
};

static const char *at(const char *name)
{
	static char paths[4][200];
	static unsigned int next;
	char *path = paths[next++ % 4];

	snprintf(path, sizeof(paths[0]), "%s/%s", dir, name);
	return path;
}

static void put(const char *name, const char *text, size_t len)
{
	_cleanup_close_ int fd = open(at(name), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	cr_assert_geq(fd, 0);
	cr_assert_eq(io_write_full(fd, text, len), 0);
}

static void begin(struct made *m)
{
	const struct profile_meta meta = { .mode = (char *)"cpu" };
	struct err err = { 0 };
	struct recorder_options opts = { .sources = true };

	*m = (struct made) { .rec = NULL };
	umask(022);
	cr_assert_not_null(mkdtemp(dir));
	cr_assert_eq(chmod(dir, 0755), 0);
	opts.path = at("rbpf.data");
	cr_assert_eq(recorder_open(&opts, &meta, &m->rec, &err), 0, "%s", err.msg);
}

/*
 * A process with one thread, which began @later clock ticks after the one that is @pid now; its id
 * is both.
 */
static uint32_t add_process_of(struct made *m, pid_t pid, uint64_t later)
{
	struct profile_process def = { .pid = (uint32_t)pid, .parent = PROFILE_NONE };
	struct process process = PROCESS_INIT;
	uint32_t id, thread;

	cr_assert_eq(process_open(pid, &process, NULL), 0);
	def.start_ticks = process.start_ticks + later;
	process_close(&process);
	cr_assert_eq(sink_process(recorder_sink(m->rec), &def, &id), 0);
	cr_assert_eq(sink_thread(recorder_sink(m->rec), id, (uint32_t)pid, 0, &thread), 0);
	cr_assert_eq(thread, id);
	return id;
}

static uint32_t add_process(struct made *m, pid_t pid)
{
	return add_process_of(m, pid, 0);
}

static uint32_t add_stack(struct made *m, uint32_t parent, uint32_t kind, const char *file)
{
	struct profile_frame frame = { .kind = kind, .module = PROFILE_NONE, .line = 1 };
	struct sink *sink = recorder_sink(m->rec);
	uint32_t id;

	cr_assert_eq(sink_string(sink, file, strlen(file), &frame.file), 0);
	cr_assert_eq(sink_frame(sink, &frame, &id), 0);
	cr_assert_eq(sink_stack(sink, parent, id, &id), 0);
	return id;
}

static void add_samples(struct made *m, uint32_t thread, uint32_t stack, int n)
{
	const struct profile_sample sample = { .thread = thread, .stack = stack, .value = 1 };

	while (n--)
		cr_assert_eq(sink_sample(recorder_sink(m->rec), &sample), 0);
}

static void add_file(struct made *m, uint32_t thread, const char *file, int n)
{
	add_samples(m, thread, add_stack(m, 0, FRAME_RUBY, file), n);
}

/* Close the recording, and read it. */
static void end(struct made *m)
{
	const struct read_options opts = { .sources = true };
	const struct profile_totals totals = { .samples = 1 };
	struct read_report report;
	struct err err = { 0 };

	source_keeper_finish(&m->keeper, m->rec, NULL);
	source_keeper_deinit(&m->keeper);
	cr_assert_eq(recorder_close(m->rec, &totals, &err), 0, "%s", err.msg);
	cr_assert_eq(profile_read(at("rbpf.data"), &opts, &m->p, &report, &err), 0, "%s", err.msg);
	cr_expect(report.complete);
}

static void clean(struct made *m)
{
	static const char *const names[] = { "rbpf.data", "a.rb",    "b.rb",	  "large.rb",
					     "binary.rb", "fifo.rb", "link.rb",	  "dir.rb",
					     "mine.rb",	  "c.rb",    "root/a.rb", "root/b.rb",
					     "root" };

	profile_deinit(&m->p);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		remove(at(names[i]));
	cr_expect_eq(rmdir(dir), 0);
}

static const char *kept(const struct made *m, const char *path)
{
	size_t versions;
	const struct kept_source *s = kept_sources_find(&m->p.sources, path, &versions);

	return s ? s->text : NULL;
}

static void expect_kept(const struct made *m, const char *path, const char *text)
{
	const char *is = kept(m, path);

	cr_assert_not_null(is, "%s is not kept", path);
	cr_expect_str_eq(is, text, "%s", path);
}

/* ---- which files ---- */

Test(source_keeper, hottest_first)
{
	struct made m;
	uint32_t t, outer;

	begin(&m);
	t = add_process(&m, getpid());
	put("a.rb", "a\n", 2);
	put("b.rb", "b\n", 2);
	put("c.rb", "c\n", 2);
	add_file(&m, t, at("a.rb"), 1);
	outer = add_stack(&m, 0, FRAME_RUBY, at("c.rb"));
	outer = add_stack(&m, outer, FRAME_RUBY, at("b.rb"));
	add_samples(&m, t, add_stack(&m, outer, FRAME_CFUNC, at("x.rb")), 3);
	end(&m);
	cr_assert_eq(m.p.sources.n, 3, "%zu files", m.p.sources.n);
	cr_expect_str_eq(m.p.sources.v[0].path, at("b.rb"), "3 samples");
	cr_expect_str_eq(m.p.sources.v[1].path, at("a.rb"), "1 sample");
	cr_expect_str_eq(m.p.sources.v[2].path, at("c.rb"), "only a caller");
	expect_kept(&m, at("c.rb"), "c\n");
	clean(&m);
}

/* Two files of this process, of which the first turn reads a.rb. */
static void begin_with_a_turn(struct made *m)
{
	uint32_t t;

	begin(m);
	t = add_process(m, getpid());
	put("a.rb", "then\n", 5);
	put("b.rb", "then\n", 5);
	add_file(m, t, at("a.rb"), 2);
	add_file(m, t, at("b.rb"), 1);
	source_keeper_turn(&m->keeper, m->rec, NULL, 1000000000);
}

Test(source_keeper, a_turn_reads_one_file)
{
	struct made m;

	begin_with_a_turn(&m);
	/* Not due yet: the first was of our own root. */
	source_keeper_turn(&m.keeper, m.rec, NULL, 1999999999);
	put("a.rb", "now\n", 4);
	put("b.rb", "now\n", 4);
	end(&m);
	expect_kept(&m, at("a.rb"), "then\n");
	expect_kept(&m, at("b.rb"), "now\n");
	clean(&m);
}

/* What can be read at the end is read slowly until then. */
Test(source_keeper, the_next_turn_comes_a_second_later)
{
	struct made m;

	begin_with_a_turn(&m);
	source_keeper_turn(&m.keeper, m.rec, NULL, 2000000000);
	put("b.rb", "now\n", 4);
	end(&m);
	expect_kept(&m, at("b.rb"), "then\n");
	clean(&m);
}

Test(source_keeper, files_that_are_left_out)
{
	const size_t size = RBPF_FILE_MAX_SOURCE + 1;
	_cleanup_free_ char *large = malloc(size);
	struct made m;
	uint32_t t;

	begin(&m);
	t = add_process(&m, getpid());
	cr_assert_not_null(large);
	memset(large, '#', size);
	put("large.rb", large, size);
	put("a.rb", large, size - 1);
	put("binary.rb", "a\0b", 3);
	put("mine.rb", "mine", 4);
	cr_assert_eq(mkfifo(at("fifo.rb"), 0644), 0);
	cr_assert_eq(mkdir(at("dir.rb"), 0755), 0);
	cr_assert_eq(symlink("/proc/version", at("link.rb")), 0);
	add_file(&m, t, at("large.rb"), 1);
	add_file(&m, t, at("a.rb"), 1);
	add_file(&m, t, at("binary.rb"), 1);
	add_file(&m, t, at("fifo.rb"), 1);
	add_file(&m, t, at("dir.rb"), 1);
	add_file(&m, t, at("link.rb"), 1);
	add_file(&m, t, "/proc/version", 1);
	add_file(&m, t, at("none.rb"), 1);
	add_file(&m, t, "<internal:kernel>", 1);
	add_file(&m, t, "(eval)", 1);
	end(&m);
	cr_expect_eq(m.p.sources.n, 1, "%zu files", m.p.sources.n);
	cr_assert_not_null(kept(&m, at("a.rb")), "the largest that there may be");
	cr_expect_eq(strlen(kept(&m, at("a.rb"))), RBPF_FILE_MAX_SOURCE);
	clean(&m);
}

Test(source_keeper, relative_paths_are_in_the_directory_of_the_process)
{
	struct made m;

	begin(&m);
	put("a.rb", "a\n", 2);
	put("b.rb", "b\n", 2);
	cr_assert_eq(mkdir(at("root"), 0755), 0);
	cr_assert_eq(chdir(at("root")), 0);
	add_file(&m, add_process(&m, getpid()), "../a.rb", 1);
	add_file(&m, 0, "./../b.rb", 1);
	add_file(&m, 0, "a.rb", 1);
	end(&m);
	cr_expect_eq(m.p.sources.n, 2);
	expect_kept(&m, "../a.rb", "a\n");
	expect_kept(&m, "./../b.rb", "b\n");
	clean(&m);
}

Test(source_keeper, no_more_than_there_is_room_for)
{
	static char text[RBPF_FILE_MAX_SOURCE];
	struct made m;
	int r = 0, n;

	begin(&m);
	memset(text, '#', sizeof(text));
	for (n = 0; n < 20 && !r; n++)
		r = recorder_source(m.rec, "/x.rb", text, sizeof(text));
	cr_expect_eq(r, -E2BIG);
	cr_expect_eq(n, RBPF_FILE_MAX_SOURCES / RBPF_FILE_MAX_SOURCE);
	end(&m);
	cr_expect_eq(m.p.sources.n, RBPF_FILE_MAX_SOURCES / RBPF_FILE_MAX_SOURCE - 1);
	clean(&m);
}

/* ---- roots ---- */

/*
 * A child in a mount namespace of its own, with @root as its root; -1 if that takes more
 * privileges.
 */
static pid_t child_in(const char *root)
{
	int ready[2];
	pid_t pid;
	char c;

	cr_assert_eq(pipe2(ready, O_CLOEXEC), 0);
	pid = fork();
	if (!pid) {
		if (unshare(CLONE_NEWNS) || chroot(root) || chdir("/"))
			_exit(1);
		if (write(ready[1], "x", 1) == 1)
			pause();
		_exit(1);
	}
	close(ready[1]);
	if (pid > 0 && read(ready[0], &c, 1) != 1) {
		waitpid(pid, NULL, 0);
		pid = -1;
	}
	close(ready[0]);
	return pid;
}

Test(source_keeper, files_in_the_roots_of_processes)
{
	struct made m;
	char path[100];
	size_t versions;
	pid_t child;

	begin(&m);
	cr_assert_eq(mkdir(at("root"), 0755), 0);
	child = child_in(at("root"));
	if (child < 0) {
		recorder_close(m.rec, NULL, NULL);
		clean(&m);
		cr_skip_test("to change the root takes privileges");
	}
	put("root/a.rb", "theirs\n", 7);
	put("a.rb", "ours\n", 5);
	add_file(&m, add_process(&m, child), "/a.rb", 2);
	add_file(&m, 0, "a.rb", 1);
	add_file(&m, 0, at("a.rb"), 1);
	snprintf(path, sizeof(path), "/../..%s", at("a.rb"));
	add_file(&m, 0, path, 1);
	add_file(&m, add_process(&m, getpid()), at("a.rb"), 1);
	source_keeper_turn(&m.keeper, m.rec, NULL, 1000000000);
	kill(child, SIGKILL);
	cr_assert_eq(waitpid(child, NULL, 0), child);
	end(&m);
	expect_kept(&m, "/a.rb", "theirs\n");
	cr_expect_null(kept(&m, "a.rb"), "its process ended, and its root with it");
	cr_expect_null(kept(&m, path), "out of its root");
	kept_sources_find(&m.p.sources, at("a.rb"), &versions);
	cr_expect_eq(versions, 1, "that of this process alone");
	expect_kept(&m, at("a.rb"), "ours\n");
	clean(&m);
}

/* As workers have it, each in a container of the same image. */
Test(source_keeper, one_text_in_several_roots_is_kept_once)
{
	struct made m;
	size_t versions;
	pid_t children[2];

	begin(&m);
	cr_assert_eq(mkdir(at("root"), 0755), 0);
	for (int i = 0; i < 2; i++)
		children[i] = child_in(at("root"));
	if (children[0] < 0 || children[1] < 0) {
		recorder_close(m.rec, NULL, NULL);
		clean(&m);
		cr_skip_test("to change the root takes privileges");
	}
	put("root/a.rb", "theirs\n", 7);
	put("root/b.rb", "of another process\n", 19);
	for (int i = 0; i < 2; i++)
		add_file(&m, add_process(&m, children[i]), "/a.rb", 1);
	add_file(&m, add_process_of(&m, children[0], 1), "/b.rb", 1);
	end(&m);
	for (int i = 0; i < 2; i++) {
		kill(children[i], SIGKILL);
		cr_assert_eq(waitpid(children[i], NULL, 0), children[i]);
	}
	expect_kept(&m, "/a.rb", "theirs\n");
	kept_sources_find(&m.p.sources, "/a.rb", &versions);
	cr_expect_eq(versions, 1, "%zu", versions);
	cr_expect_null(kept(&m, "/b.rb"), "the process that had its pid is not there any more");
	clean(&m);
}

/* A process that has ended, as the sink was told. */
static void gone(struct made *m, uint32_t t)
{
	sink_thread_gone(recorder_sink(m->rec), t);
	sink_process_gone(recorder_sink(m->rec), t);
}

/*
 * More processes than files can be counted of end. Files of rbpf's own root that were not read by
 * then are read at the end, and those of a process that comes last are not one too many.
 */
Test(source_keeper, processes_that_ended_make_room)
{
	const uint32_t n = SOURCE_HEAT_MAX_FILES + 100;
	char other[32];
	struct made m;
	uint32_t t;

	begin(&m);
	put("a.rb", "a\n", 2);
	put("b.rb", "b\n", 2);
	put("c.rb", "c\n", 2);
	for (uint32_t i = 0; i < n; i++) {
		t = add_process(&m, getpid());
		/* A turn reads one that has more samples: those of the first ones are left. */
		snprintf(other, sizeof(other), "/none/%u.rb", i);
		add_file(&m, t, other, 2);
		if (i < 100)
			add_file(&m, t, at(i % 2 ? "a.rb" : "b.rb"), 1);
		/* So that it is looked at while it lives. */
		m.keeper.next_ns = 0;
		source_keeper_turn(&m.keeper, m.rec, NULL, NSEC_PER_SEC);
		gone(&m, t);
	}
	cr_expect_lt(recorder_source_heat(m.rec)->n_processes, 1000);
	cr_expect_lt(recorder_source_heat(m.rec)->paths.count, 1000);
	cr_expect_lt(m.keeper.n, 1000);
	add_file(&m, add_process(&m, getpid()), at("c.rb"), 1);
	end(&m);
	expect_kept(&m, at("a.rb"), "a\n");
	expect_kept(&m, at("b.rb"), "b\n");
	expect_kept(&m, at("c.rb"), "c\n");
	clean(&m);
}
