/* SPDX-License-Identifier: GPL-2.0-only */
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "target/process.h"
#include "target/selection.h"

static char cgroup[] = "/system.slice/docker-0123.scope/init";
static char container[] = "0123456789abcdef";
static char cmdline[] = "puma 6.0: cluster worker 1";

static bool matches(const char *command, const char *group, const char *id, const char *user)
{
	const struct process p = { .pid = getpid(),
				   .cmdline = cmdline,
				   .context = {
					   .cgroup = cgroup, .container = container, .uid = 0 } };
	struct err err = { 0 };
	struct selection sel;
	bool ret;

	cr_assert_eq(selection_init(&sel, command, group, id, user, &err), 0, "%s", err.msg);
	ret = selection_has(&sel, &p);
	selection_deinit(&sel);
	return ret;
}

Test(selection, all)
{
	struct selection sel;

	cr_assert_eq(selection_init(&sel, NULL, NULL, NULL, NULL, NULL), 0);
	cr_expect(selection_is_all(&sel));
	selection_deinit(&sel);
	cr_expect(matches(NULL, NULL, NULL, NULL));
	cr_assert_eq(selection_init(&sel, NULL, NULL, "0", NULL, NULL), 0);
	cr_expect(!selection_is_all(&sel));
	selection_deinit(&sel);
}

Test(selection, command)
{
	cr_expect(matches("puma", NULL, NULL, NULL));
	cr_expect(matches("^puma .*worker [0-9]$", NULL, NULL, NULL));
	cr_expect(!matches("sidekiq", NULL, NULL, NULL));
	/* The name of its first thread, which is that of this test. */
	cr_expect(matches("^unit(-[a-z]-[a-z])?$", NULL, NULL, NULL));
}

Test(selection, cgroup)
{
	static const struct {
		const char *path;
		bool matches;
	} cases[] = {
		{ "/", true },
		{ "/system.slice", true },
		{ "/system.slice/", true },
		{ "/system.slice/docker-0123.scope", true },
		{ "/system.slice/docker-0123.scope/init", true },
		{ "/sys/fs/cgroup/system.slice", true },
		{ "/system.slic", false },
		{ "/system.slice/docker-0123", false },
		{ "/system.slice/docker-0123.scope/init/more", false },
		{ "/user.slice", false },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		cr_expect_eq(matches(NULL, cases[i].path, NULL, NULL), cases[i].matches, "%s",
			     cases[i].path);
}

Test(selection, container)
{
	cr_expect(matches(NULL, NULL, "0123", NULL));
	cr_expect(matches(NULL, NULL, "0123456789abcdef", NULL));
	cr_expect(!matches(NULL, NULL, "123", NULL));
	cr_expect(!matches(NULL, NULL, "0123456789abcdef0", NULL));
	container[0] = '\0';
	cr_expect(!matches(NULL, NULL, "0", NULL), "it is in none");
}

Test(selection, user)
{
	cr_expect(matches(NULL, NULL, NULL, "root"));
	cr_expect(matches(NULL, NULL, NULL, "0"));
	cr_expect(!matches(NULL, NULL, NULL, "1"));
}

Test(selection, all_must_hold)
{
	cr_expect(matches("puma", "/system.slice", "0123", "root"));
	cr_expect(!matches("puma", "/system.slice", "0123", "1"));
	cr_expect(!matches("puma", "/other", "0123", "root"));
	cr_expect(!matches("rails", "/system.slice", "0123", "root"));
}

Test(selection, mistakes)
{
	static const struct {
		const char *command, *cgroup, *user, *message;
	} cases[] = {
		{ "(", NULL, NULL, "'('" },
		{ NULL, "system.slice", NULL, "begins with '/'" },
		{ NULL, "", NULL, "begins with '/'" },
		{ NULL, NULL, "no such user", "'no such user'" },
		{ NULL, NULL, "-1", "'-1'" },
		{ NULL, NULL, "4294967295", "'4294967295'" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct err err = { 0 };
		struct selection sel;

		cr_expect_eq(selection_init(&sel, cases[i].command, cases[i].cgroup, NULL,
					    cases[i].user, &err),
			     -EINVAL);
		cr_expect_eq(err.kind, ERR_USAGE);
		cr_expect_not_null(strstr(err.msg, cases[i].message), "\"%s\"", err.msg);
		selection_deinit(&sel);
	}
}
