/* SPDX-License-Identifier: GPL-2.0-only */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "profile/kept_sources.h"
#include "report/source_text.h"
#include "support/naive_samples.h"
#include "support/profile_builder.h"
#include "view/source_lines.h"

Test(source_lines, names_of_files)
{
	cr_expect(source_is_named("/app/cart.rb", "/app/cart.rb"));
	cr_expect(source_is_named("/app/cart.rb", "app/cart.rb"));
	cr_expect(source_is_named("/app/cart.rb", "cart.rb"));
	cr_expect(source_is_named("/app/cart.rb", "/cart.rb"));
	cr_expect(source_is_named("cart.rb", "cart.rb"));
	cr_expect_not(source_is_named("/app/cart.rb", "art.rb"));
	cr_expect_not(source_is_named("/app/cart.rb", "app"));
	cr_expect_not(source_is_named("/app/cart.rb", ""));
	cr_expect_not(source_is_named("", "cart.rb"));
}

/* Self and total of a line, counted sample by sample. */
static struct group_total naive_line(const struct profile *p, const struct view_selection *sel,
				     const char *file, uint32_t line, const char *name)
{
	static struct naive_sample s;
	struct group_total sum = { 0 };

	for (size_t i = 0; i < p->n_kept; i++) {
		bool has = false, last = false;

		if (!naive_sample(p, sel, i, &s))
			continue;
		for (size_t k = 0; k < s.n; k++) {
			const struct profile_frame *f = &p->frames[s.frames[k]];

			last = f->kind == FRAME_RUBY && f->line == line && line &&
			       !strcmp(profile_str(p, f->file), file) &&
			       (!name || strstr(profile_str(p, f->name), name));
			has |= last;
		}
		sum.total.samples += has;
		sum.total.value += has ? s.value : 0;
		sum.self.samples += last;
		sum.self.value += last ? s.value : 0;
	}
	return sum;
}

static bool same_sum(const struct view_sum *a, const struct view_sum *b)
{
	return a->samples == b->samples && a->value == b->value;
}

static void expect_lines(const struct profile *p, const struct view_filter *f,
			 const struct source_choice *choice, const char *const *files,
			 size_t n_files, const char *name)
{
	_cleanup_source_lines_ struct source_lines lines = SOURCE_LINES_INIT;
	_cleanup_view_selection_ struct view_selection *sel = NULL;
	size_t at = 0;

	cr_assert_eq(view_selection_new(p, f, &sel), 0);
	cr_assert_eq(source_lines_build(p, f, choice, &lines), 0);
	for (size_t i = 0; i < n_files; i++)
		for (uint32_t line = 1; line < 3; line++) {
			struct group_total want = naive_line(p, sel, files[i], line, name);

			if (!want.total.samples || (choice->line && choice->line != line))
				continue;
			cr_assert_lt(at, lines.n);
			cr_expect_str_eq(profile_str(p, lines.lines[at].file), files[i]);
			cr_expect_eq(lines.lines[at].line, line);
			cr_expect(same_sum(&lines.lines[at].time.self, &want.self) &&
					  same_sum(&lines.lines[at].time.total, &want.total),
				  "%s:%u", files[i], line);
			at++;
		}
	cr_expect_eq(at, lines.n);
	cr_expect_gt(at, 0);
}

Test(source_lines, random_profiles_against_a_count_of_each_sample)
{
	static const char *const files[] = { "/app/a.rb", "/gems/z-1/b.rb", "<internal:kernel>" };
	static const enum stack_mode modes[] = { STACK_ALL, STACK_RUBY };
	struct profile_builder b;
	regex_t re;

	builder_init(&b);
	builder_add_random(&b, 5, 300);
	cr_assert_eq(regcomp(&re, "Foo", REG_EXTENDED | REG_NOSUB), 0);
	for (size_t m = 0; m < ARRAY_SIZE(modes); m++) {
		const struct view_filter f = { .stack = modes[m] };
		const struct source_choice method = { .method = &re };
		const struct source_choice file = { .file = "a.rb" };
		const struct source_choice line = { .file = "/gems/z-1/b.rb", .line = 2 };

		expect_lines(&b.out.profile, &f, &method, files, 3, "Foo");
		expect_lines(&b.out.profile, &f, &file, files, 1, NULL);
		expect_lines(&b.out.profile, &f, &line, files + 1, 1, NULL);
	}
	cr_expect(source_is_known(&b.out.profile, "b.rb"));
	cr_expect_not(source_is_known(&b.out.profile, "c.rb"));
	regfree(&re);
	builder_deinit(&b);
}

/* ---- the text ---- */

static char dir[] = "/tmp/rbpf-source-XXXXXX";

static void write_file(const char *name, const char *text)
{
	char path[200];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	f = fopen(path, "w");
	cr_assert_not_null(f);
	fputs(text, f);
	fclose(f);
}

static void remove_file(const char *name)
{
	char path[200];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	remove(path);
}

static void expect_line(const struct source_text *s, uint32_t line, const char *want)
{
	struct buf out = BUF_INIT;

	source_text_line(s, line, &out);
	cr_expect_str_eq(buf_str(&out), want);
	buf_deinit(&out);
}

Test(source_text, lines_and_where_they_are_found)
{
	static char deep[60001]; /* "./././x.rb" */
	struct source_text s;
	char path[200];

	cr_assert_not_null(mkdtemp(dir));
	write_file("x.rb", "one\r\n\ttwo \033[31m\xff\n\nfour");
	snprintf(path, sizeof(path), "%s/fifo", dir);
	cr_assert_eq(mkfifo(path, 0600), 0);

	cr_assert_eq(source_text_read("/srv/releases/7/x.rb", dir, &s), 0);
	cr_assert_not_null(s.path);
	cr_expect_eq(s.n, 4);
	expect_line(&s, 1, "one");
	expect_line(&s, 2, "        two \xef\xbf\xbd[31m\xef\xbf\xbd");
	expect_line(&s, 3, "");
	expect_line(&s, 4, "four");
	expect_line(&s, 5, "");
	expect_line(&s, 0, "");
	source_text_deinit(&s);

	cr_assert_eq(source_text_read("/srv/y.rb", dir, &s), 0);
	cr_expect_eq(s.why, -ENOENT);
	source_text_deinit(&s);
	cr_assert_eq(source_text_read("/srv/fifo", dir, &s), 0);
	cr_expect_eq(s.why, -EINVAL, "a FIFO would block");
	source_text_deinit(&s);
	cr_assert_eq(source_text_read("/x/../../../../../../etc/passwd", dir, &s), 0);
	cr_expect_null(s.path, "is not below the directory");
	source_text_deinit(&s);
	snprintf(path, sizeof(path), "%s/link.rb", dir);
	cr_assert_eq(symlink("/etc/passwd", path), 0);
	cr_assert_eq(source_text_read("/srv/link.rb", dir, &s), 0);
	cr_expect_null(s.path, "a link leads out of the directory");
	source_text_deinit(&s);
	cr_assert_eq(source_text_read(path, NULL, &s), 0);
	cr_expect_null(s.path, "no directory was named");
	source_text_deinit(&s);
	memset(deep, '/', sizeof(deep));
	for (size_t i = 0; i < sizeof(deep); i += 2)
		deep[i] = '.';
	memcpy(deep + sizeof(deep) - 5, "x.rb", 5);
	cr_assert_eq(source_text_read(deep, dir, &s), 0);
	cr_expect_not_null(s.path, "and does not take for ever");
	source_text_deinit(&s);
	cr_assert_eq(source_text_read("", dir, &s), 0);
	cr_expect_null(s.path);
	source_text_deinit(&s);
	remove_file("x.rb");
	remove_file("fifo");
	remove_file("link.rb");
	rmdir(dir);
}

Test(source_text, what_the_recording_kept_comes_first)
{
	static char old[] = "old\nlines\n";
	char path[200];
	struct kept_source sources[2] = { { path, old, strlen(old) }, { path, old, strlen(old) } };
	const struct kept_sources kept = { .v = sources, .n = 2 };
	struct source_text s;

	cr_assert_not_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/x.rb", dir);
	write_file("x.rb", old);
	cr_assert_eq(source_text_choose(&kept, path, NULL, &s), 0);
	cr_expect(s.kept);
	cr_expect_not(s.differs, "the file has not changed");
	cr_expect_eq(s.versions, 2);
	expect_line(&s, 2, "lines");
	source_text_deinit(&s);

	write_file("x.rb", "new\nlines\n");
	cr_assert_eq(source_text_choose(&kept, path, NULL, &s), 0);
	cr_expect(s.differs, "the file of this path");
	expect_line(&s, 1, "old");
	source_text_deinit(&s);
	cr_assert_eq(source_text_choose(&kept, path, dir, &s), 0);
	cr_expect(s.differs, "the file below the directory");
	source_text_deinit(&s);

	remove_file("x.rb");
	cr_assert_eq(source_text_choose(&kept, path, NULL, &s), 0);
	cr_expect_not(s.differs, "there is none to compare with");
	source_text_deinit(&s);

	write_file("y.rb", "of the directory");
	cr_assert_eq(source_text_choose(&kept, "/srv/y.rb", dir, &s), 0);
	cr_expect_not(s.kept);
	expect_line(&s, 1, "of the directory");
	source_text_deinit(&s);
	remove_file("y.rb");
	rmdir(dir);
}
