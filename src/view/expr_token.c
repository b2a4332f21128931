/* SPDX-License-Identifier: GPL-2.0-only */
#include "view/expr_token.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"

/* What ends a word; blanks do, too. */
#define DELIMITERS "()\"'/=!<>~&|"

int expr_fault(const struct expr_tokens *t, size_t at, const char *fmt, ...)
{
	char why[300];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(why, sizeof(why), fmt, ap);
	va_end(ap);
	err_set(t->err, -EINVAL, ERR_USAGE, "%s: %s", t->what, why);
	err_excerpt(t->err, t->text, at);
	return -EINVAL;
}

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* The escape in a string whose backslash is at .next; moves that behind it. */
static int add_escape(struct expr_tokens *t)
{
	const char *s = t->text + t->next;
	int high, low;

	switch (s[1]) {
	case 'n':
		buf_addch(&t->value, '\n');
		break;
	case 't':
		buf_addch(&t->value, '\t');
		break;
	case '\\':
	case '"':
	case '\'':
		buf_addch(&t->value, s[1]);
		break;
	case 'x':
		high = hex_digit(s[2]);
		low = high < 0 ? -1 : hex_digit(s[3]);
		if (low < 0 || high + low == 0)
			return expr_fault(t, t->next,
					  "\\x needs two hexadecimal digits, not both 0");
		buf_addch(&t->value, (char)(high << 4 | low));
		t->next += 2;
		break;
	default:
		return expr_fault(t, t->next,
				  "unknown escape: a string has \\\\ \\\" \\' \\n \\t \\xHH");
	}
	t->next += 2;
	return 0;
}

static int take_string(struct expr_tokens *t, char quote)
{
	int r = 0;

	t->kind = TOKEN_STRING;
	for (t->next++; !r && t->text[t->next] != quote;) {
		if (!t->text[t->next])
			return expr_fault(t, t->at, "the string has no end");
		if (t->text[t->next] == '\\')
			r = add_escape(t);
		else
			buf_addch(&t->value, t->text[t->next++]);
	}
	t->next++;
	return r;
}

/* A backslash is the pattern's own, but for that of "\/". */
static int take_pattern(struct expr_tokens *t)
{
	t->kind = TOKEN_PATTERN;
	for (t->next++; t->text[t->next] != '/'; t->next++) {
		const char *s = t->text + t->next;

		if (!*s || (*s == '\\' && !s[1]))
			return expr_fault(t, t->at, "the pattern has no end");
		if (*s == '\\' && s[1] != '/')
			buf_addch(&t->value, '\\');
		if (*s == '\\')
			t->next++;
		buf_addch(&t->value, t->text[t->next]);
	}
	t->next++;
	return 0;
}

static int take_operator(struct expr_tokens *t)
{
	static const char *const operators[] = { "=~", "!~", "!=", "<=", ">=", "=", "<", ">" };
	const char *s = t->text + t->next;

	for (size_t i = 0; i < sizeof(operators) / sizeof(*operators); i++) {
		if (strncmp(s, operators[i], strlen(operators[i])) != 0)
			continue;
		t->kind = TOKEN_OPERATOR;
		buf_addstr(&t->value, operators[i]);
		t->next += strlen(operators[i]);
		return 0;
	}
	expr_fault(t, t->at, "unexpected '%c'", *s);
	err_hint(t->err, "terms are joined by and, or, not, and compared by = != =~ !~ < <= > >=");
	return -EINVAL;
}

static int take(struct expr_tokens *t)
{
	char c = t->text[t->next];

	switch (c) {
	case '\0':
		t->kind = TOKEN_END;
		return 0;
	case '(':
	case ')':
		t->kind = c == '(' ? TOKEN_OPEN : TOKEN_CLOSE;
		buf_addch(&t->value, c);
		t->next++;
		return 0;
	case '"':
	case '\'':
		return take_string(t, c);
	case '/':
		return take_pattern(t);
	}
	if (strchr(DELIMITERS, c))
		return take_operator(t);
	t->kind = TOKEN_WORD;
	buf_add(&t->value, t->text + t->next, strcspn(t->text + t->next, DELIMITERS " \t\r\n"));
	t->next += t->value.len;
	return 0;
}

int expr_token_next(struct expr_tokens *t)
{
	int r;

	buf_reset(&t->value);
	t->next += strspn(t->text + t->next, " \t\r\n");
	t->at = t->next;
	r = take(t);
	return r ? r : buf_failed(&t->value) ? -ENOMEM : 0;
}
