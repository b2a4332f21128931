/* SPDX-License-Identifier: GPL-2.0-only */
#include <criterion/criterion.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/array.h"
#include "base/buf.h"
#include "base/utf8.h"

#define R "\xef\xbf\xbd" /* U+FFFD */

struct text_case {
	const char *name;
	const char *in;
	size_t len;
	const char *want;
};

#define CASE(name, in, want)                                                                       \
	{                                                                                          \
		name, in, sizeof(in) - 1, want                                                     \
	}

static const struct text_case cases[] = {
	CASE("empty", "", ""),
	CASE("ASCII", "Foo#bar", "Foo#bar"),
	CASE("TAB is kept", "a\tb", "a\tb"),
	CASE("first and last printable", " ~", " ~"),
	CASE("NUL inside", "a\0b", "a" R "b"),
	CASE("controls", "\x01\x08\n\r\x1b\x1f", R R R R R R),
	CASE("DEL", "\x7f", R),
	CASE("2, 3 and 4 bytes", "\xc3\xbc\xe2\x82\xac\xf0\x9f\x98\x80",
	     "\xc3\xbc\xe2\x82\xac\xf0\x9f\x98\x80"),
	CASE("first shown and last of 2 bytes", "\xc2\xa0\xdf\xbf", "\xc2\xa0\xdf\xbf"),
	CASE("C1 controls: CSI, OSC, ST", "\xc2\x9b\x33m\xc2\x9d\xc2\x9c", R "\x33m" R R),
	CASE("C1 as bytes", "\x9b\x33m", R "\x33m"),
	CASE("an override of the direction",
	     "a\xe2\x80\xae"
	     "b\xe2\x81\xa6"
	     "c",
	     "a" R "b" R "c"),
	CASE("separators of lines", "\xe2\x80\xa8\xe2\x80\xa9", R R),
	CASE("a byte order mark",
	     "\xef\xbb\xbf"
	     "a",
	     R "a"),
	CASE("a joined emoji", "\xf0\x9f\x91\xa9\xe2\x80\x8d\xf0\x9f\x92\xbb",
	     "\xf0\x9f\x91\xa9\xe2\x80\x8d\xf0\x9f\x92\xbb"),
	CASE("first and last of 3 bytes", "\xe0\xa0\x80\xef\xbf\xbf", "\xe0\xa0\x80\xef\xbf\xbf"),
	CASE("around the surrogates", "\xed\x9f\xbf\xee\x80\x80", "\xed\x9f\xbf\xee\x80\x80"),
	CASE("first and last of 4 bytes", "\xf0\x90\x80\x80\xf4\x8f\xbf\xbf",
	     "\xf0\x90\x80\x80\xf4\x8f\xbf\xbf"),
	CASE("U+FFFD itself", R, R),
	CASE("lone continuation bytes", "\x80\xbf", R R),
	CASE("overlong /, 2 bytes", "\xc0\xaf", R R),
	CASE("overlong DEL, 2 bytes", "\xc1\xbf", R R),
	CASE("overlong NUL, 2 bytes", "\xc0\x80", R R),
	CASE("overlong, 3 bytes", "\xe0\x80\xaf\xe0\x9f\xbf", R R R R R R),
	CASE("overlong, 4 bytes", "\xf0\x80\x80\xaf\xf0\x8f\xbf\xbf", R R R R R R R R),
	CASE("first and last surrogate", "\xed\xa0\x80\xed\xbf\xbf", R R R R R R),
	CASE("surrogate pair", "\xed\xa0\xbd\xed\xb8\x80", R R R R R R),
	CASE("U+110000", "\xf4\x90\x80\x80", R R R R),
	CASE("lead bytes of larger code points", "\xf5\x80\x80\x80\xf8\x88\x80\x80\x80\xfe\xff",
	     R R R R R R R R R R R),
	CASE("truncated at the end, 2 bytes", "a\xc3", "a" R),
	CASE("truncated at the end, 3 bytes", "a\xe2\x82", "a" R R),
	CASE("truncated at the end, 4 bytes", "a\xf0\x9f\x98", "a" R R R),
	CASE("truncated by ASCII", "\xe2\x82z\xf0\x9fz\xc3z", R R "z" R R "z" R "z"),
	CASE("truncated by another character", "\xe2\x82\xc3\xbc", R R "\xc3\xbc"),
	CASE("invalid after valid", "\xc3\xbc\xbc", "\xc3\xbc" R),
	CASE("control after a lead byte", "\xc3\n", R R),
	CASE("Latin-1", "gr\xfc\xdf", "gr" R R),
};

/* The obvious decoder: accept what a code point in range encodes to, byte for byte. */
static size_t reference_sequence(const unsigned char *p, size_t len)
{
	uint32_t cp;
	size_t n;

	if (!len)
		return 0;
	if (p[0] < 0x80)
		return 1;
	if ((p[0] & 0xe0) == 0xc0) {
		n = 2;
		cp = p[0] & 0x1f;
	} else if ((p[0] & 0xf0) == 0xe0) {
		n = 3;
		cp = p[0] & 0x0f;
	} else if ((p[0] & 0xf8) == 0xf0) {
		n = 4;
		cp = p[0] & 0x07;
	} else {
		return 0;
	}
	if (len < n)
		return 0;
	for (size_t i = 1; i < n; i++) {
		if ((p[i] & 0xc0) != 0x80)
			return 0;
		cp = cp << 6 | (p[i] & 0x3f);
	}
	if (cp < (n == 2   ? 0x80u
		  : n == 3 ? 0x800u
			   : 0x10000u) ||
	    cp > 0x10ffff || (cp >= 0xd800 && cp <= 0xdfff))
		return 0;
	return n;
}

static size_t encode(uint32_t cp, char *s)
{
	if (cp < 0x80) {
		s[0] = (char)cp;
		return 1;
	}
	if (cp < 0x800) {
		s[0] = (char)(0xc0 | cp >> 6);
		s[1] = (char)(0x80 | (cp & 0x3f));
		return 2;
	}
	if (cp < 0x10000) {
		s[0] = (char)(0xe0 | cp >> 12);
		s[1] = (char)(0x80 | (cp >> 6 & 0x3f));
		s[2] = (char)(0x80 | (cp & 0x3f));
		return 3;
	}
	s[0] = (char)(0xf0 | cp >> 18);
	s[1] = (char)(0x80 | (cp >> 12 & 0x3f));
	s[2] = (char)(0x80 | (cp >> 6 & 0x3f));
	s[3] = (char)(0x80 | (cp & 0x3f));
	return 4;
}

/* One by one, by their names in the Unicode standard; apart from the ranges of the filter. */
static bool is_refused(uint32_t cp)
{
	static const uint32_t single[] = {
		0x00ad, /* SOFT HYPHEN */
		0x061c, /* ARABIC LETTER MARK */
		0x115f, /* HANGUL CHOSEONG FILLER */
		0x1160, /* HANGUL JUNGSEONG FILLER */
		0x180e, /* MONGOLIAN VOWEL SEPARATOR */
		0x200b, /* ZERO WIDTH SPACE */
		0x200e, /* LEFT-TO-RIGHT MARK */
		0x200f, /* RIGHT-TO-LEFT MARK */
		0x2028, /* LINE SEPARATOR */
		0x2029, /* PARAGRAPH SEPARATOR */
		0x202a, /* LEFT-TO-RIGHT EMBEDDING */
		0x202b, /* RIGHT-TO-LEFT EMBEDDING */
		0x202c, /* POP DIRECTIONAL FORMATTING */
		0x202d, /* LEFT-TO-RIGHT OVERRIDE */
		0x202e, /* RIGHT-TO-LEFT OVERRIDE */
		0x3164, /* HANGUL FILLER */
		0xfeff, /* ZERO WIDTH NO-BREAK SPACE */
		0xffa0, /* HALFWIDTH HANGUL FILLER */
		0xfff9, /* INTERLINEAR ANNOTATION ANCHOR */
		0xfffa, /* INTERLINEAR ANNOTATION SEPARATOR */
		0xfffb, /* INTERLINEAR ANNOTATION TERMINATOR */
	};

	for (size_t i = 0; i < ARRAY_SIZE(single); i++)
		if (cp == single[i])
			return true;
	return (cp < 0x20 && cp != '\t') || (cp >= 0x7f && cp < 0xa0) || /* C0, DEL, C1 */
	       (cp >> 4 == 0x206) ||		  /* WORD JOINER, isolates, digit shapes */
	       (cp >= 0x1d173 && cp < 0x1d17b) || /* MUSICAL SYMBOL BEGIN BEAM and so on */
	       (cp >= 0xe0000 && cp < 0xe0080);	  /* tags */
}

static void assert_sane_text(const char *s, size_t len, const char *name)
{
	for (size_t i = 0; i < len;) {
		size_t n = reference_sequence((const unsigned char *)s + i, len - i);

		cr_assert_gt(n, 0, "%s: no UTF-8 at byte %zu", name, i);
		cr_assert(n > 1 || s[i] == '\t' || (s[i] >= 0x20 && s[i] != 0x7f),
			  "%s: control 0x%02x", name, (unsigned char)s[i]);
		i += n;
	}
}

Test(utf8, sanitise)
{
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		const struct text_case *c = &cases[i];
		_cleanup_buf_ struct buf out = BUF_INIT;

		utf8_sanitise(&out, c->in, c->len);
		cr_expect_str_eq(buf_str(&out), c->want, "%s", c->name);
		cr_expect_eq(out.len, strlen(c->want), "%s: no NUL inside", c->name);
		assert_sane_text(buf_str(&out), out.len, c->name);
	}
}

Test(utf8, sanitise_every_code_point)
{
	_cleanup_buf_ struct buf out = BUF_INIT;
	size_t n_refused = 0;

	for (uint32_t cp = 0; cp <= 0x10ffff; cp++) {
		char s[5] = "";
		size_t n = encode(cp, s);
		bool refused = is_refused(cp);

		if (cp >= 0xd800 && cp <= 0xdfff)
			continue;
		buf_reset(&out);
		buf_addch(&out, '[');
		utf8_sanitise(&out, s, n);
		buf_addch(&out, ']');
		n_refused += refused;
		cr_assert_eq(out.len, 2 + (refused ? strlen(R) : n), "U+%04X", (unsigned int)cp);
		cr_assert(!memcmp(out.data + 1, refused ? R : s, out.len - 2), "U+%04X",
			  (unsigned int)cp);
		cr_assert_eq(utf8_presentable(s, n), !refused, "U+%04X", (unsigned int)cp);
	}
	cr_expect_eq(n_refused, 31 + 33 + 21 + 16 + 8 + 128);
}

Test(utf8, sanitise_twice_changes_nothing)
{
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		_cleanup_buf_ struct buf once = BUF_INIT;
		_cleanup_buf_ struct buf twice = BUF_INIT;

		utf8_sanitise(&once, cases[i].in, cases[i].len);
		utf8_sanitise(&twice, buf_str(&once), once.len);
		cr_expect_str_eq(buf_str(&twice), buf_str(&once), "%s", cases[i].name);
	}
}

Test(utf8, sanitise_appends_and_stops_at_len)
{
	_cleanup_buf_ struct buf out = BUF_INIT;

	buf_addstr(&out, "before ");
	utf8_sanitise(&out, "\xe2\x82\xac and more", 3);
	cr_expect_str_eq(buf_str(&out), "before \xe2\x82\xac");
	utf8_sanitise(&out, "\xe2\x82\xac", 2);
	cr_expect_str_eq(buf_str(&out), "before \xe2\x82\xac" R R, "the third byte is not read");
	utf8_sanitise(&out, NULL, 0);
	cr_expect_eq(out.len, 7 + 3 + 6);
}

Test(utf8, sequence_agrees_with_the_reference)
{
	unsigned char p[4];

	/* All of two bytes; and third and fourth bytes at the limits of their ranges. */
	static const unsigned char edges[] = { 0x00, 0x7f, 0x80, 0xbf, 0xc0, 0xff };

	for (unsigned int first = 0; first < 256; first++) {
		for (unsigned int second = 0; second < 256; second++) {
			p[0] = (unsigned char)first;
			p[1] = (unsigned char)second;
			for (size_t i = 0; i < ARRAY_SIZE(edges) * ARRAY_SIZE(edges); i++) {
				p[2] = edges[i / ARRAY_SIZE(edges)];
				p[3] = edges[i % ARRAY_SIZE(edges)];
				for (size_t len = 0; len <= 4; len++)
					cr_assert_eq(utf8_sequence((char *)p, len),
						     reference_sequence(p, len),
						     "%02x %02x %02x %02x, len %zu", p[0], p[1],
						     p[2], p[3], len);
			}
		}
	}
}

Test(utf8, len)
{
	cr_expect_eq(utf8_len(""), 0);
	cr_expect_eq(utf8_len("abc"), 3);
	cr_expect_eq(utf8_len("\xc3\xbc"), 1);
	cr_expect_eq(utf8_len("a\xe2\x82\xac\xf0\x9f\x98\x80z"), 4);
	cr_expect_eq(utf8_len("e\xcc\x81"), 2, "code points, not what is seen");
}

Test(utf8, prefix)
{
	static const char text[] = "a\xc3\xbc\xe2\x82\xac\xf0\x9f\x98\x80z";
	static const size_t want[] = { 0, 1, 3, 6, 10, 11, 11, 11 };

	for (size_t max = 0; max < ARRAY_SIZE(want); max++)
		cr_expect_eq(utf8_prefix(text, max), want[max], "%zu code points", max);
	cr_expect_eq(utf8_prefix(text, SIZE_MAX), 11);
	cr_expect_eq(utf8_prefix("", 0), 0);
	cr_expect_eq(utf8_prefix("", 5), 0);
}
