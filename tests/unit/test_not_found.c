/* SPDX-License-Identifier: GPL-2.0-only */
#include <criterion/criterion.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "ruby/not_found.h"
#include "target/process.h"

/* A process that executes a copy of sleep(1), behind which stand @text and @rest. */
static pid_t sleep_with_text(const char *path, const char *text, const char *rest)
{
	char command[512];
	pid_t pid;

	snprintf(command, sizeof(command),
		 "cp /bin/sleep %s && head -c 70000 /dev/zero >>%s && printf '%s%s' >>%s", path,
		 path, text, rest, path);
	cr_assert_eq(system(command), 0);
	pid = fork();
	if (!pid) {
		execl(path, path, "1000", (char *)NULL);
		_exit(1);
	}
	for (char exe[64], to[64] = ""; strcmp(to, path);) {
		ssize_t n;

		snprintf(exe, sizeof(exe), "/proc/%d/exe", (int)pid);
		n = readlink(exe, to, sizeof(to) - 1);
		cr_assert_geq(n, 0);
		to[n] = '\0';
	}
	return pid;
}

/*
 * What is linked statically and stripped has no symbols; the text that ruby -v prints is still
 * there.
 */
Test(not_found, ruby_without_symbols)
{
	/* In two parts: this program has the texts, too, and is no Ruby. */
	static const struct {
		const char *text, *rest, *seems;
	} texts[] = {
		{ "ruby 3.4.9 ", "(2026-03-11 revision 76cca827ab) [x86_64-linux-musl]   ",
		  "Ruby 3.4.9," },
		{ "\\0ruby 3.1.2p20 ", "(2022-04-12 revision 4491bb740a) [x86_64-linux]  ",
		  "Ruby 3.1.2," },
		{ "ruby 4.1.0dev ", "(2026-07-28T10:00:00Z master 0123456789) +PRISM     ",
		  "Ruby 4.1.0," },
		{ "a ruby 3.4.9 ", "and more text, which is about Ruby and not of one    ", NULL },
		{ "ruby 3.4.9 ", "(2026", NULL },
	};

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		char path[64];
		struct process p = { .exe = path, .cmdline = (char *)"" };
		struct err err = { 0 };

		snprintf(path, sizeof(path), "/tmp/rbpf-static-%d-%zu", (int)getpid(), i);
		p.pid = sleep_with_text(path, texts[i].text, texts[i].rest);
		cr_expect_eq(ruby_not_found(&p, NULL, &err), -ENOENT);
		cr_expect_not_null(
			strstr(err.msg, texts[i].seems ? texts[i].seems : "is not a Ruby process"),
			"%s: %s", texts[i].text, err.msg);
		kill(p.pid, SIGKILL);
		waitpid(p.pid, NULL, 0);
		unlink(path);
	}
}

Test(not_found, what_it_is_instead)
{
	struct process java = { .pid = 42,
				.exe = (char *)"/usr/lib/jvm/bin/java",
				.cmdline = (char *)"java -cp jruby.jar org.jruby.Main x.rb" };
	struct process other = { .pid = 43, .exe = (char *)"", .cmdline = (char *)"[x]" };
	struct err err = { 0 };

	cr_expect_eq(ruby_not_found(&java, NULL, &err), -ENOENT);
	cr_expect_not_null(strstr(err.msg, "JRuby"));
	cr_expect_str_empty(err.hint);
	cr_expect_eq(ruby_not_found(&other, NULL, &err), -ENOENT);
	cr_expect_eq(ruby_not_found(&other, NULL, NULL), -ENOENT);
	cr_expect_not_null(strstr(err.msg, "pid 43"));
	cr_expect_str_not_empty(err.hint);
	cr_expect_eq(err.kind, ERR_TARGET);
}
