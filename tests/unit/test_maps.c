/* SPDX-License-Identifier: GPL-2.0-only */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "target/maps.h"

static void assert_sane_maps(const struct maps *maps)
{
	for (size_t i = 0; i < maps->n; i++) {
		const struct map *m = &maps->v[i];

		cr_assert_lt(m->start, m->end, "mapping %zu", i);
		cr_assert(!i || maps->v[i - 1].end <= m->start, "mapping %zu is out of order", i);
		cr_assert_not_null(m->path);
		cr_assert(m->inode || m->path[0] != '/' || strncmp(m->path, "/lib", 4),
			  "%s is a file", m->path);
	}
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
	const struct map *m, *code;
	struct err err = { 0 };
	char exe[4096];
	int local = 0;
	ssize_t n;

	cr_assert_eq(maps_read(getpid(), &maps, &err), 0, "%s", err.msg);
	assert_sane_maps(&maps);
	cr_assert_gt(maps.n, 5);
	n = readlink("/proc/self/exe", exe, sizeof(exe) - 1);
	cr_assert_gt(n, 0);
	exe[n] = '\0';

	code = maps_find(&maps, (uint64_t)(uintptr_t)assert_sane_maps);
	cr_assert_not_null(code);
	cr_expect(code->read && code->exec && !code->write);
	cr_expect_str_eq(code->path, exe);
	cr_expect_neq(code->inode, 0);
	m = maps_find(&maps, (uint64_t)(uintptr_t)&local);
	cr_assert_not_null(m);
	cr_expect(m->read && m->write && !m->exec);
	cr_expect_str_eq(m->path, "[stack]");
	cr_expect_eq(m->inode, 0);
	cr_expect_null(maps_find(&maps, 0));
	cr_expect_null(maps_find(&maps, ~0ull));
	for (size_t i = 0; i < maps.n; i++) {
		cr_expect_eq(maps_find(&maps, maps.v[i].start), &maps.v[i]);
		cr_expect_eq(maps_find(&maps, maps.v[i].end - 1), &maps.v[i]);
		cr_expect_neq(maps_find(&maps, maps.v[i].end), &maps.v[i]);
	}
	maps_deinit(&maps);
	cr_expect_null(maps.v);
	cr_expect_null(maps_find(&maps, 0x1000));
	maps_deinit(&maps);
}

Test(maps, synthetic)
{
	static const char text[] =
		"00400000-00401000 r-xp 00000000 08:02 173521      /usr/bin/ruby3.1\n"
		"00601000-00602000 rw-p 00001000 08:02 173521      /usr/bin/ruby3.1 (deleted)\n"
		"01000000-01001000 ---p 00000000 00:00 0 \n"
		"7f0000000000-7f0000001000 r--s fffffffff000 fd:10 18446744073709551615 "
		"/a path/with  spaces (deleted)/x.so\n"
		"7f0000001000-7f0000002000 rwxp 00000000 00:00 0          "
		"[anon:Ruby:rb_jit_reserve_addr_space]\n"
		"7f0000002000-7f0000003000 r--p 00000000 00:05 9    /memfd:x (deleted) (deleted)\n"
		"7f0000003000-7f0000004000 r--p 00000000 00:05 9     (deleted)\n"
		"ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0     [vsyscall]";
	struct maps maps = MAPS_INIT;

	cr_assert_eq(maps_parse(text, &maps), 0);
	cr_assert_eq(maps.n, 8);
	assert_sane_maps(&maps);
	cr_expect_str_eq(maps.v[0].path, "/usr/bin/ruby3.1");
	cr_expect(maps.v[0].read && !maps.v[0].write && maps.v[0].exec);
	cr_expect_eq(maps.v[0].start, 0x400000);
	cr_expect_eq(maps.v[0].end, 0x401000);
	cr_expect_eq(maps.v[0].inode, 173521);
	cr_expect_str_eq(maps.v[1].path, "/usr/bin/ruby3.1");
	cr_expect_eq(maps.v[1].offset, 0x1000);
	cr_expect(maps.v[1].read && maps.v[1].write && !maps.v[1].exec);
	cr_expect_str_eq(maps.v[2].path, "");
	cr_expect(!maps.v[2].read && !maps.v[2].write && !maps.v[2].exec);
	cr_expect_str_eq(maps.v[3].path, "/a path/with  spaces (deleted)/x.so");
	cr_expect_eq(maps.v[3].inode, UINT64_MAX);
	cr_expect_eq(maps.v[3].offset, 0xfffffffff000);
	cr_expect_str_eq(maps.v[4].path, "[anon:Ruby:rb_jit_reserve_addr_space]");
	cr_expect_str_eq(maps.v[5].path, "/memfd:x (deleted)");
	cr_expect_str_eq(maps.v[7].path, "[vsyscall]");
	cr_expect_eq(maps.v[7].start, 0xffffffffff600000);
	maps_deinit(&maps);
	cr_expect_eq(maps_parse("", &maps), 0);
	cr_expect_eq(maps.n, 0);
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
	p = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE, fd, 0);
	cr_assert_neq(p, MAP_FAILED);
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
	struct map m = { .start = 0x1000, .end = 0x2000, .path = (char *)"/nonexistent/x" };
	char *longest = malloc(10000);

	cr_expect_eq(maps_open_file(getpid(), &m), -ENOENT);
	memset(longest, 'x', 9999);
	longest[9999] = '\0';
	m.path = longest;
	cr_expect_eq(maps_open_file(getpid(), &m), -ENAMETOOLONG);
	free(longest);
}
