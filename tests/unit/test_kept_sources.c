/* SPDX-License-Identifier: GPL-2.0-only */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "profile/kept_sources.h"
#include "rbpf_file.h"

#define DECODE(s, bytes) kept_sources_decode((s), (bytes), sizeof(bytes) - 1)

Test(kept_sources, what_is_no_source_file)
{
	struct kept_sources s = { 0 };

	cr_expect_eq(kept_sources_decode(&s, "", 0), -EBADMSG, "no length");
	cr_expect_eq(DECODE(&s, "\0"), -EBADMSG, "no path");
	cr_expect_eq(DECODE(&s, "\x05/a"), -EBADMSG, "a path that is cut");
	cr_expect_eq(DECODE(&s, "\x80\x80\x80\x01/a"), -EBADMSG, "a length of four bytes");
	cr_expect_eq(DECODE(&s, "\xff\xff\x7f/a"), -EBADMSG, "the longest path");
	cr_expect_eq(DECODE(&s, "\x02/a\0"), -EBADMSG, "a NUL in the text");
	cr_expect_eq(DECODE(&s, "\x03/\0b"), -EBADMSG, "a NUL in the path");
	cr_expect_eq(s.n, 0);
	cr_expect_eq(s.bytes, 0);
	kept_sources_deinit(&s);
}

Test(kept_sources, names_and_texts)
{
	struct kept_sources s = { 0 };
	const struct kept_source *found;
	size_t versions;

	cr_assert_eq(DECODE(&s, "\x02/atext"), 0);
	cr_assert_eq(DECODE(&s, "\x02/b"), 0, "an empty file");
	cr_assert_eq(DECODE(&s, "\x02/aother"), 0);
	cr_assert_eq(DECODE(&s, "\x03/\033c"), 0);
	found = kept_sources_find(&s, "/a", &versions);
	cr_assert_not_null(found);
	cr_expect_str_eq(found->text, "text");
	cr_expect_eq(found->len, 4);
	cr_expect_eq(versions, 2);
	found = kept_sources_find(&s, "/b", &versions);
	cr_assert_not_null(found);
	cr_expect_eq(found->len, 0);
	cr_expect_not_null(kept_sources_find(&s,
					     "/\xef\xbf\xbd"
					     "c",
					     &versions),
			   "made valid");
	cr_expect_null(kept_sources_find(&s, "/c", &versions));
	cr_expect_eq(versions, 0);
	kept_sources_deinit(&s);
}

Test(kept_sources, limits)
{
	char *text = calloc(1, RBPF_FILE_MAX_SOURCE + 4);
	struct kept_sources s = { 0 };
	size_t n = 0;

	cr_assert_not_null(text);
	memset(text, '#', RBPF_FILE_MAX_SOURCE + 4);
	memcpy(text, "\x02/a", 3);
	cr_expect_eq(kept_sources_decode(&s, text, RBPF_FILE_MAX_SOURCE + 4), -E2BIG);
	while (!kept_sources_decode(&s, text, RBPF_FILE_MAX_SOURCE + 3))
		n++;
	cr_expect_eq(n, 7, "with their paths, eight are more than the limit");
	cr_expect_leq(s.bytes, RBPF_FILE_MAX_SOURCES);
	kept_sources_deinit(&s);
	free(text);
}
