/* SPDX-License-Identifier: GPL-2.0-only */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ruby/file_kind.h"
#include "support/test_worker.h"

/* What every Ruby exports, exported by this program, too. */
__attribute__((visibility("default"))) const char ruby_version[] = "0.0.0";

static enum ruby_file_kind kind_of(struct ruby_files *files, const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	enum ruby_file_kind kind;

	cr_assert_geq(fd, 0, "%s", path);
	kind = ruby_files_kind(files, fd);
	close(fd);
	return kind;
}

Test(file_kind, others)
{
	struct ruby_files files = { .worker = test_worker() };

	cr_expect_eq(kind_of(&files, "/proc/self/exe"), RUBY_FILE_OTHER, "not all that it exports");
	cr_expect_eq(kind_of(&files, "/bin/sh"), RUBY_FILE_OTHER);
	cr_expect_eq(kind_of(&files, "/etc/passwd"), RUBY_FILE_OTHER);
	cr_expect_eq(kind_of(&files, "/dev/null"), RUBY_FILE_OTHER);
	cr_expect_eq(kind_of(&files, "/"), RUBY_FILE_OTHER);
	cr_expect_eq(files.keys.count, 3, "each regular file once");
	cr_expect_eq(kind_of(&files, "/bin/sh"), RUBY_FILE_OTHER);
	cr_expect_eq(files.keys.count, 3);
	cr_expect_eq(ruby_files_of_exe(&files, getpid()), RUBY_FILE_OTHER);
	cr_expect(!ruby_files_in_process(&files, getpid()));
	ruby_files_deinit(&files);
	cr_expect_eq(kind_of(&files, "/bin/sh"), RUBY_FILE_OTHER);
	ruby_files_deinit(&files);
}

/* A file that is written anew is another one, though it has the same inode. */
Test(file_kind, files_that_change)
{
	char path[] = "/tmp/rbpf-file-kind-XXXXXX";
	struct ruby_files files = { .worker = test_worker() };
	int fd = mkstemp(path);

	cr_assert_geq(fd, 0);
	cr_expect_eq(kind_of(&files, path), RUBY_FILE_OTHER);
	cr_assert_eq(write(fd,
			   "\x7f"
			   "ELF",
			   4),
		     4);
	cr_expect_eq(kind_of(&files, path), RUBY_FILE_OTHER);
	cr_expect_eq(files.keys.count, 2);
	close(fd);
	unlink(path);
	ruby_files_deinit(&files);
}

/* The Ruby in PATH, if there is one: its executable is a VM, or needs the library that is. */
Test(file_kind, ruby)
{
	static const char *const executables[] = { "/usr/bin/ruby", "/usr/local/bin/ruby" };
	struct ruby_files files = { .worker = test_worker() };
	size_t found = 0;

	for (size_t i = 0; i < sizeof(executables) / sizeof(executables[0]); i++) {
		if (access(executables[i], R_OK))
			continue;
		found++;
		cr_expect_neq(kind_of(&files, executables[i]), RUBY_FILE_OTHER, "%s",
			      executables[i]);
	}
	ruby_files_deinit(&files);
	if (!found)
		cr_skip_test("there is no Ruby in /usr/bin or /usr/local/bin");
}

Test(file_kind, a_process_that_is_gone)
{
	struct ruby_files files = { .worker = test_worker() };

	cr_expect_eq(ruby_files_of_exe(&files, (pid_t)1 << 22), RUBY_FILE_OTHER);
	cr_expect(!ruby_files_in_process(&files, (pid_t)1 << 22));
	ruby_files_deinit(&files);
}
