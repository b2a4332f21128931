/* SPDX-License-Identifier: GPL-2.0-only */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "target/maps.h"

static void assert_sane_maps(const struct maps *maps)
{
	size_t n_code = 0;

	for (size_t i = 0; i < maps->n; i++) {
		const struct map *m = &maps->v[i];

		cr_assert_lt(m->start, m->end, "mapping %zu", i);
		cr_assert(!i || maps->v[i - 1].end <= m->start, "mapping %zu is out of order", i);
		cr_assert_not_null(m->path);
		cr_assert(m->inode || m->path[0] != '/' || strncmp(m->path, "/lib", 4),
			  "%s is a file", m->path);
		cr_assert(m->exec || (i && maps->v[i - 1].end == m->start), "mapping %zu", i);
		n_code += m->exec;
	}
	cr_assert_eq(maps->n_code, n_code);
	cr_assert_leq(maps->n, maps->n_lines);
}

static const struct map *find_address(const struct maps *maps, uint64_t addr)
{
	for (size_t i = 0; i < maps->n; i++)
		if (addr >= maps->v[i].start && addr < maps->v[i].end)
			return &maps->v[i];
	return NULL;
}

static const struct map *find_path(const struct maps *maps, const char *path)
{
	for (size_t i = 0; i < maps->n; i++)
		if (!strcmp(maps->v[i].path, path))
			return &maps->v[i];
	return NULL;
}

Test(maps, own)
{
	struct maps maps = MAPS_INIT;
	const struct map *code;
	struct err err = { 0 };
	char exe[4096];
	int local = 0;
	ssize_t n;

	cr_assert_eq(maps_read(getpid(), &maps, &err), 0, "%s", err.msg);
	assert_sane_maps(&maps);
	cr_assert_gt(maps.n_code, 5);
	cr_expect(!maps.n_lost && !maps.is_cut);
	n = readlink("/proc/self/exe", exe, sizeof(exe) - 1);
	cr_assert_gt(n, 0);
	exe[n] = '\0';

	code = find_address(&maps, (uint64_t)(uintptr_t)assert_sane_maps);
	cr_assert_not_null(code);
	cr_expect(code->read && code->exec && !code->write);
	cr_expect_str_eq(code->path, exe);
	cr_expect_neq(code->inode, 0);
	cr_expect_null(find_address(&maps, (uint64_t)(uintptr_t)&local), "the stack is no code");
	maps_deinit(&maps);
	cr_expect_null(maps.v);
	maps_deinit(&maps);
}

static void parse(const char *text, struct maps *maps)
{
	cr_assert_eq(maps_parse(text, maps), 0, "%s", text);
	assert_sane_maps(maps);
}

Test(maps, fields)
{
	static const char text[] =
		"00400000-00401000 r-xp 00000000 08:02 173521      /usr/bin/ruby3.1\n"
		"00601000-00602000 -wxp 00001000 08:02 173521      /usr/bin/ruby3.1 (deleted)\n"
		"01000000-01001000 --xp 00000000 00:00 0 \n"
		"02000000-02001000 --xp 00000000 00:00 0\n"
		"7f0000000000-7f0000001000 r-xs fffffffff000 fd:10 18446744073709551615 "
		"/a path/with  spaces (deleted)/x.so\n"
		"7f0000001000-7f0000002000 rwxp 00000000 00:00 0          "
		"[anon:Ruby:rb_jit_reserve_addr_space]\n"
		"7f0000002000-7f0000003000 r-xp 00000000 00:05 9    /memfd:x (deleted) (deleted)\n"
		"ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0     [vsyscall]";
	struct maps maps = MAPS_INIT;

	parse(text, &maps);
	cr_assert_eq(maps.n, 8);
	cr_expect_str_eq(maps.v[0].path, "/usr/bin/ruby3.1");
	cr_expect(maps.v[0].read && !maps.v[0].write && maps.v[0].exec);
	cr_expect_eq(maps.v[0].start, 0x400000);
	cr_expect_eq(maps.v[0].end, 0x401000);
	cr_expect_eq(maps.v[0].inode, 173521);
	cr_expect_str_eq(maps.v[1].path, "/usr/bin/ruby3.1");
	cr_expect_eq(maps.v[1].offset, 0x1000);
	cr_expect(!maps.v[1].read && maps.v[1].write && maps.v[1].exec);
	cr_expect_str_eq(maps.v[2].path, "");
	cr_expect(!maps.v[2].read && !maps.v[2].write && maps.v[2].exec);
	cr_expect_str_eq(maps.v[3].path, "");
	cr_expect_str_eq(maps.v[4].path, "/a path/with  spaces (deleted)/x.so");
	cr_expect_eq(maps.v[4].inode, UINT64_MAX);
	cr_expect_eq(maps.v[4].offset, 0xfffffffff000);
	cr_expect_str_eq(maps.v[5].path, "[anon:Ruby:rb_jit_reserve_addr_space]");
	cr_expect_str_eq(maps.v[6].path, "/memfd:x (deleted)");
	cr_expect_str_eq(maps.v[7].path, "[vsyscall]");
	cr_expect_eq(maps.v[7].start, 0xffffffffff600000);
	maps_deinit(&maps);
	parse("", &maps);
	cr_expect(!maps.n && !maps.n_lines);
	maps_deinit(&maps);
}

/* Code, and what follows upon it without a gap. */
Test(maps, what_is_kept)
{
	static const char text[] = "1000-2000 r--p 00000000 08:02 1      /a\n"
				   "2000-3000 r-xp 00000000 08:02 1      /a\n"
				   "3000-4000 r--p 00000000 08:02 1      /a\n"
				   "4000-5000 rw-p 00000000 00:00 0 \n"
				   "6000-7000 rw-p 00000000 00:00 0 \n"
				   "7000-8000 ---p 00000000 00:00 0 \n";
	struct maps maps = MAPS_INIT;

	parse(text, &maps);
	cr_assert_eq(maps.n, 3);
	cr_expect_eq(maps.v[0].start, 0x2000);
	cr_expect_eq(maps.v[2].start, 0x4000);
	cr_expect_eq(maps.n_code, 1);
	cr_expect_eq(maps.n_lines, 6);
	maps_deinit(&maps);
}

/* Mappings grow together between two pieces of the text that are read. */
Test(maps, that_change_meanwhile)
{
	static const char text[] = "1000-2000 r-xp 00000000 00:00 0 \n"
				   "3000-4000 r-xp 00000000 00:00 0 \n"
				   "4000-5000 r-xp 00000000 00:00 0 \n"
				   "3000-6000 r-xp 00000000 00:00 0 \n"
				   "5000-7000 rw-p 00000000 00:00 0 \n"
				   "8000-9000 r-xp 00000000 00:00 0 \n"
				   "8000-9000 r-xp 00000000 00:00 0 \n";
	struct maps maps = MAPS_INIT;

	parse(text, &maps);
	cr_expect_eq(maps.n, 2);
	cr_expect_eq(maps.v[0].end, 0x2000);
	cr_expect_eq(maps.v[1].start, 0x8000);
	maps_deinit(&maps);
}

Test(maps, garbage)
{
	static const char *const bad[] = {
		"garbage",
		"\n",
		"00400000-00401000",
		"00400000-00401000 r-xp",
		"00400000-00401000 r-xp 00000000 08:02",
		"00400000-00401000 r-xp 00000000 08:02\n173521 /x\n",
		"00400000-00400000 r-xp 00000000 08:02 1 /x\n",
		"00401000-00400000 r-xp 00000000 08:02 1 /x\n",
		"00400000 00401000 r-xp 00000000 08:02 1 /x\n",
		"xyz-00401000 r-xp 00000000 08:02 1 /x\n",
		"00400000-00401000 r-xp 00000000 08:02 x /x\n",
		"00400000-00401000 r-xp 00000000 08:02 1 /x\n\n",
		"00400000-00401000 r-xp 00000000 08:02 1 /x\ngarbage\n",
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct maps maps = { .n = 77 };

		cr_expect_eq(maps_parse(bad[i], &maps), -EINVAL, "\"%s\"", bad[i]);
		cr_expect(maps.n == 77 && !maps.v, "untouched");
	}
}

/* ---- large ones ---- */

/* A pipe, so that nothing of that size lies anywhere; as a child writes it. */
static pid_t write_maps(void (*write_to)(FILE *out), int *fd)
{
	int ends[2];
	pid_t pid;

	cr_assert_eq(pipe2(ends, O_CLOEXEC), 0);
	pid = fork();
	if (!pid) {
		FILE *out = fdopen(ends[1], "w");

		signal(SIGPIPE, SIG_IGN);
		close(ends[0]);
		write_to(out);
		fclose(out);
		_exit(0);
	}
	close(ends[1]);
	*fd = ends[0];
	return pid;
}

static long peak_kib(void)
{
	struct rusage usage;

	getrusage(RUSAGE_SELF, &usage);
	return usage.ru_maxrss;
}

/* Reads it with no more than @kib of memory. */
static void read_large(void (*write_to)(FILE *out), long kib, struct maps *maps)
{
	long before = peak_kib();
	pid_t pid;
	int fd;

	pid = write_maps(write_to, &fd);
	cr_assert_eq(maps_read_fd(fd, maps), 0);
	close(fd);
	waitpid(pid, NULL, 0);
	assert_sane_maps(maps);
	cr_expect_lt(peak_kib() - before, kib, "%ld KiB", peak_kib() - before);
}

/* A path that is long, and of every other line another one. */
static const char *long_path(unsigned int line)
{
	static char path[4000];

	memset(path, 'x', sizeof(path) - 1);
	path[0] = '/';
	snprintf(path + 1, 20, "%08x", line / 2);
	path[9] = '/';
	return path;
}

static void long_paths(FILE *out)
{
	for (unsigned int i = 0; i < 30000; i++)
		fprintf(out, "%x-%x %s 00000000 08:02 %u      %s\n", 0x10000 + i * 0x2000,
			0x11000 + i * 0x2000, i % 2 ? "r-xp" : "r--p", i + 1, long_path(i));
	fprintf(out, "7f0000000000-7f0000001000 r-xp 00000000 08:02 77      /lib/libruby.so\n");
}

/* 120 MB of text; that was once too much, and hid a process. */
Test(maps, long_paths)
{
	struct maps maps = MAPS_INIT;
	const struct map *last;

	read_large(long_paths, 3 * (long)(MAPS_MAX_PATHS >> 10), &maps);
	cr_expect_eq(maps.n_lines, 30001);
	cr_assert_eq(maps.n, 15001);
	cr_expect(!maps.n_lost && !maps.is_cut);
	cr_expect_eq(strlen(maps.v[0].path), 3999);
	last = &maps.v[maps.n - 1];
	cr_expect_eq(last->start, 0x7f0000000000);
	cr_expect_eq(last->inode, 77);
	cr_expect_leq(maps.path_bytes, MAPS_MAX_PATHS);
	maps_deinit(&maps);
}

static void many(FILE *out)
{
	for (unsigned int i = 0; i < 2000000; i++)
		fprintf(out, "%lx-%lx rw-p 00000000 00:00 0 \n", 0x10000ul + i * 0x2000ul,
			0x11000ul + i * 0x2000ul);
	fprintf(out, "7f0000000000-7f0000001000 r-xp 00000000 08:02 77      /lib/libruby.so\n");
}

Test(maps, millions_of_mappings)
{
	struct maps maps = MAPS_INIT;

	read_large(many, 4096, &maps);
	cr_expect_eq(maps.n_lines, 2000001);
	cr_assert_eq(maps.n, 1);
	cr_expect_str_eq(maps.v[0].path, "/lib/libruby.so");
	maps_deinit(&maps);
}

static void many_of_code(FILE *out)
{
	for (unsigned int i = 0; i < 2 * (MAPS_MAX_CODE + 10); i++)
		fprintf(out, "%lx-%lx r-%cp 00000000 00:00 0 \n", 0x10000ul + i * 0x1000ul,
			0x11000ul + i * 0x1000ul, i % 2 ? 'x' : '-');
}

Test(maps, too_much_code)
{
	struct maps maps = MAPS_INIT;

	read_large(many_of_code, 64 << 10, &maps);
	cr_expect_eq(maps.n_code, MAPS_MAX_CODE);
	cr_expect_eq(maps.n_lost, 10);
	cr_expect_eq(maps.n - maps.n_code, MAPS_MAX_OTHERS);
	maps_deinit(&maps);
}

static void too_long_lines(FILE *out)
{
	fprintf(out, "1000-2000 r-xp 00000000 08:02 1      /");
	for (int i = 0; i < 100000; i++)
		fputs("abc/", out);
	fprintf(out, "\n3000-4000 r-xp 00000000 08:02 2      /b\n");
	fprintf(out, "5000-6000 r-xp 00000000 08:02 2      /");
	for (int i = 0; i < 100000; i++)
		fputs("abc/", out);
}

Test(maps, too_long_lines)
{
	struct maps maps = MAPS_INIT;

	read_large(too_long_lines, 4096, &maps);
	cr_assert_eq(maps.n, 3);
	cr_expect_eq(strlen(maps.v[0].path), MAPS_MAX_PATH);
	cr_expect_str_eq(maps.v[1].path, "/b");
	cr_expect_eq(maps.v[2].start, 0x5000);
	maps_deinit(&maps);
}

static void endless(FILE *out)
{
	static char line[65536];

	memset(line, 'x', sizeof(line));
	memcpy(line, "1000-2000 r-xp 00000000 08:02 1      /", 38);
	line[sizeof(line) - 1] = '\n';
	while (fwrite(line, sizeof(line), 1, out) == 1)
		;
}

Test(maps, text_without_end)
{
	struct maps maps = MAPS_INIT;

	read_large(endless, 4096, &maps);
	cr_expect(maps.is_cut);
	cr_expect_eq(maps.n, 1);
	maps_deinit(&maps);
}

/* The process itself, with as many mappings as the kernel gives it, and Ruby's above. */
Test(maps, own_with_many_mappings)
{
	const size_t pages = 60000;
	char *low = mmap(NULL, pages * 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct maps maps = MAPS_INIT;
	size_t made = 0;

	cr_assert_neq(low, MAP_FAILED);
	while (made < pages && !mprotect(low + made * 4096, 4096, PROT_READ | PROT_WRITE))
		made += 2;
	cr_assert_gt(made, 1000, "%s", strerror(errno));
	cr_assert_eq(maps_read(getpid(), &maps, NULL), 0);
	assert_sane_maps(&maps);
	cr_expect_geq(maps.n_lines, made);
	cr_expect_not_null(find_address(&maps, (uint64_t)(uintptr_t)assert_sane_maps));
	maps_deinit(&maps);
	munmap(low, pages * 4096);
}

Test(maps, no_process)
{
	struct maps maps = { .n = 77 };
	struct err err = { 0 };
	siginfo_t info;
	pid_t pid;

	cr_expect_eq(maps_read(0x3fffffff, &maps, &err), -ESRCH);
	cr_expect_eq(err.kind, ERR_TARGET);
	cr_expect_str_eq(err.msg, "no process with pid 1073741823");
	cr_expect_eq(maps_read(0x3fffffff, &maps, NULL), -ESRCH);

	pid = fork();
	if (!pid)
		_exit(0);
	cr_assert_eq(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
	cr_expect_eq(maps_read(pid, &maps, &err), -ESRCH, "a zombie");
	waitpid(pid, NULL, 0);
	cr_expect(maps.n == 77 && !maps.v, "untouched");
}

/* The mapped file itself is opened, also when its name is gone or stands for another file. */
Test(maps, opens_a_file_that_was_replaced)
{
	char path[] = "/tmp/rbpf-test-maps-XXXXXX", byte = 0;
	struct maps maps = MAPS_INIT;
	struct stat mapped, opened;
	const struct map *m;
	void *p;
	int fd;

	fd = mkstemp(path);
	cr_assert_geq(fd, 0);
	cr_assert_eq(write(fd, "old", 3), 3);
	p = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
	cr_assert_neq(p, MAP_FAILED, "%s", strerror(errno));
	cr_assert_eq(fstat(fd, &mapped), 0);
	close(fd);

	cr_assert_eq(maps_read(getpid(), &maps, NULL), 0);
	m = find_path(&maps, path);
	cr_assert_not_null(m, "%s is mapped", path);
	cr_expect_eq(m->inode, mapped.st_ino);
	fd = maps_open_file(getpid(), m);
	cr_assert_geq(fd, 0);
	cr_expect_eq(read(fd, &byte, 1), 1);
	cr_expect_eq(byte, 'o');
	cr_expect(fcntl(fd, F_GETFD) & FD_CLOEXEC);
	close(fd);
	maps_deinit(&maps);

	unlink(path);
	cr_assert_eq(maps_read(getpid(), &maps, NULL), 0);
	m = find_path(&maps, path);
	cr_assert_not_null(m, "without its \" (deleted)\"");
	fd = open("/proc/self/map_files", O_RDONLY | O_DIRECTORY);
	if (fd < 0 || geteuid())
		cr_log_warn("skipped: only a privileged process may follow map_files");
	else {
		int file = maps_open_file(getpid(), m);

		cr_assert_geq(file, 0);
		cr_assert_eq(fstat(file, &opened), 0);
		cr_expect_eq(opened.st_ino, mapped.st_ino);
		close(file);
	}
	if (fd >= 0)
		close(fd);
	maps_deinit(&maps);
	munmap(p, 4096);
}

Test(maps, no_file_to_open)
{
	struct map m = { .start = 0x1000, .end = 0x2000, .path = "/nonexistent/x" };
	char *longest = malloc(10000);

	cr_expect_eq(maps_open_file(getpid(), &m), -ENOENT);
	memset(longest, 'x', 9999);
	longest[9999] = '\0';
	m.path = longest;
	cr_expect_eq(maps_open_file(getpid(), &m), -ENAMETOOLONG);
	free(longest);
}
