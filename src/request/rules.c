/* SPDX-License-Identifier: GPL-2.0-only */
#include "request/rules.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/parse.h"
#include "request/builtin.h"

#define UNKNOWN "[unknown]"

enum { WORD_FRAMEWORK, WORD_METHOD, WORD_FILE, WORD_CLASS, WORD_TEXT, WORD_NAME, RULE_WORDS };

/* A line of the text that is being parsed. */
struct line {
	const char *path; /* for messages */
	size_t number;
	char text[REQUEST_MAX_RULE_LINE + 1];
	char *word[RULE_WORDS + 1];
	size_t n;
};

static void rule_deinit(struct request_rule *rule)
{
	free(rule->framework);
	free(rule->method);
	free(rule->file);
	free(rule->name);
	free(rule->env_local);
}

void request_rules_deinit(struct request_rules *rules)
{
	for (size_t i = 0; i < rules->n; i++)
		rule_deinit(&rules->v[i]);
	free(rules->v);
	*rules = (struct request_rules)REQUEST_RULES_INIT;
}

/* ---- parsing ---- */

__attribute__((format(printf, 3, 4))) static int wrong(const struct line *line, struct err *err,
						       const char *fmt, ...)
{
	_cleanup_buf_ struct buf why = BUF_INIT;
	va_list ap;

	va_start(ap, fmt);
	buf_vaddf(&why, fmt, ap);
	va_end(ap);
	err_set(err, -EINVAL, ERR_USAGE, "%s:%zu: %s", line->path, line->number, buf_str(&why));
	err_hint(err,
		 "a rule is FRAMEWORK METHOD FILE CLASS TEXT NAME [callee]: see rbpf-requests(5)");
	return -EINVAL;
}

/* Split @line into fields: words, or what stands in double quotes. A # begins a remark. */
static int split(struct line *line, struct err *err)
{
	char *s = line->text;

	for (line->n = 0;; line->n++) {
		char *end;

		s += strspn(s, " \t");
		if (!*s || (*s == '#'))
			return 0;
		if (line->n > RULE_WORDS)
			return wrong(line, err, "more than %d words", RULE_WORDS + 1);
		if (*s == '"') {
			end = strchr(++s, '"');
			if (!end || (end[1] && !strchr(" \t", end[1])))
				return wrong(line, err, "a quoted word does not end");
		} else {
			end = s + strcspn(s, " \t");
		}
		line->word[line->n] = s;
		s = *end ? end + 1 : end;
		*end = '\0';
	}
}

/* The number behind @prefix in @word; *@rest is what follows. False if it is not that. */
static bool numbered(const char *word, const char *prefix, unsigned int *ret, const char **rest)
{
	size_t len = strlen(prefix), digits;
	unsigned int n = 0;

	if (strncmp(word, prefix, len))
		return false;
	digits = strspn(word + len, "0123456789");
	if (!digits || digits > 2)
		return false;
	for (size_t i = 0; i < digits; i++)
		n = n * 10 + (unsigned int)(word[len + i] - '0');
	*ret = n;
	*rest = word + len + digits;
	return n <= REQUEST_MAX_LOCAL;
}

static int parse_class(const struct line *line, struct request_rule *rule, struct err *err)
{
	const char *word = line->word[WORD_CLASS], *rest = "";

	if (!strcmp(word, "-"))
		rule->class_from = REQUEST_NO_CLASS;
	else if (!strcmp(word, "self"))
		rule->class_from = REQUEST_CLASS_OF_SELF;
	else if (numbered(word, "of:", &rule->class_local, &rest))
		rule->class_from = REQUEST_CLASS_OF_LOCAL;
	else if (numbered(word, "local:", &rule->class_local, &rest))
		rule->class_from = REQUEST_CLASS_IN_LOCAL;
	else
		return wrong(line, err,
			     "the class '%s' is none of -, self, of:N and local:N (N up to %d)",
			     word, REQUEST_MAX_LOCAL);
	return *rest ? wrong(line, err, "'%s' behind the number of a local variable", rest) : 0;
}

/* What the local variable with Rack's environment is called. */
static int parse_env(const struct line *line, const char *name, struct request_rule *rule,
		     struct err *err)
{
	if (!*name)
		return wrong(line, err, "'env:' without the name of a local variable");
	rule->text_from = REQUEST_TEXT_ENV;
	rule->env_local = strdup(name);
	return rule->env_local ? 0 : err_oom(err);
}

static int parse_text(const struct line *line, struct request_rule *rule, struct err *err)
{
	const char *word = line->word[WORD_TEXT], *rest = "";

	if (!strncmp(word, "env:", 4))
		return parse_env(line, word + 4, rule, err);
	if (!strcmp(word, "-"))
		rule->text_from = REQUEST_NO_TEXT;
	else if (!strcmp(word, "method"))
		rule->text_from = REQUEST_TEXT_METHOD;
	else if (numbered(word, "local:", &rule->text_local, &rest))
		rule->text_from = REQUEST_TEXT_IN_LOCAL;
	else
		return wrong(
			line, err,
			"the text '%s' is none of -, method, local:N (N up to %d) and env:NAME",
			word, REQUEST_MAX_LOCAL);
	rule->until = *rest;
	return *rest && rest[1] ? wrong(line, err, "'%s' is more than one character", rest) : 0;
}

/* %c and %t stand for what is read, and for nothing else. */
static int check_name(const struct line *line, const struct request_rule *rule, struct err *err)
{
	const char *s = line->word[WORD_NAME];

	if (!*s)
		return wrong(line, err, "the name is empty");
	while ((s = strchr(s, '%'))) {
		if (s[1] == 'c' && rule->class_from == REQUEST_NO_CLASS)
			return wrong(line, err, "%%c in the name, but no class is read");
		if (s[1] == 't' && rule->text_from == REQUEST_NO_TEXT)
			return wrong(line, err, "%%t in the name, but no text is read");
		if (!s[1] || !strchr("ct%", s[1]))
			return wrong(line, err,
				     "a %% in the name that is none of %%c, %%t and %%%%");
		s += 2;
	}
	return 0;
}

static int parse_rule(const struct line *line, struct request_rule *rule, struct err *err)
{
	int r;

	if (line->n < RULE_WORDS)
		return wrong(line, err, "%zu words, not %d", line->n, RULE_WORDS);
	rule->callee = line->n > RULE_WORDS;
	if (rule->callee && strcmp(line->word[RULE_WORDS], "callee"))
		return wrong(line, err, "'%s' where only 'callee' can be", line->word[RULE_WORDS]);
	r = parse_class(line, rule, err);
	if (!r)
		r = parse_text(line, rule, err);
	if (!r)
		r = check_name(line, rule, err);
	if (r)
		return r;
	rule->framework = strdup(line->word[WORD_FRAMEWORK]);
	rule->method = strdup(line->word[WORD_METHOD]);
	rule->file = strdup(line->word[WORD_FILE]);
	rule->name = strdup(line->word[WORD_NAME]);
	return rule->framework && rule->method && rule->file && rule->name ? 0 : err_oom(err);
}

static int add_line(struct request_rules *rules, struct line *line, struct err *err)
{
	struct request_rule rule = { 0 };
	int r = split(line, err);

	if (r || !line->n)
		return r;
	if (rules->n >= REQUEST_MAX_RULES)
		return wrong(line, err, "more than %d rules", REQUEST_MAX_RULES);
	r = parse_rule(line, &rule, err);
	if (!r && array_reserve(rules->v, rules->cap, rules->n + 1))
		r = err_oom(err);
	if (r || (rule.text_from == REQUEST_TEXT_ENV && !rules->paths))
		rule_deinit(&rule);
	else
		rules->v[rules->n++] = rule;
	return r;
}

int request_rules_parse(struct request_rules *rules, const char *text, const char *path,
			struct err *err)
{
	struct line line = { .path = path };
	int r = 0;

	for (; *text && !r; text += *text == '\n') {
		size_t len = strcspn(text, "\n");

		line.number++;
		if (len > REQUEST_MAX_RULE_LINE)
			return wrong(&line, err, "longer than %d bytes", REQUEST_MAX_RULE_LINE);
		memcpy(line.text, text, len);
		line.text[len] = '\0';
		r = add_line(rules, &line, err);
		text += len;
	}
	return r;
}

int request_rules_builtin(struct request_rules *rules)
{
	return request_rules_parse(rules, request_builtin_rules, "rules.txt", NULL);
}

/* ---- use ---- */

/* Whether @path is @file or ends with it, as whole parts. */
static bool file_matches(const char *path, const char *file)
{
	size_t len = strlen(path), n = strlen(file);

	return len >= n && !strcmp(path + len - n, file) &&
	       (len == n || path[len - n - 1] == '/' || file[0] == '/');
}

int request_rules_find(const struct request_rules *rules, const char *label, const char *path,
		       bool callee)
{
	for (size_t i = rules->n; i-- > 0;) {
		const struct request_rule *rule = &rules->v[i];

		if (rule->callee == callee && !strcmp(rule->method, label) &&
		    file_matches(path, rule->file))
			return (int)i;
	}
	return -1;
}

/* Append @text up to where the rule says that it ends. */
static void add_text(const struct request_rule *rule, const char *text, struct buf *out)
{
	const char *end = rule->until ? strchr(text, rule->until) : NULL;

	buf_add(out, text, end ? (size_t)(end - text) : strlen(text));
}

bool request_rule_tells(const struct request_rule *rule, const char *klass, const char *text)
{
	return (rule->class_from == REQUEST_NO_CLASS || klass) &&
	       (text || strcmp(rule->name, "%t") != 0);
}

bool request_rule_is_vague(const struct request_rule *rule)
{
	return rule->class_from == REQUEST_NO_CLASS && rule->text_from == REQUEST_NO_TEXT;
}

bool request_rule_fits(uint16_t told, bool vague, uint16_t of_stack)
{
	return told == of_stack || (!vague && (!of_stack || of_stack == REQUEST_ANY_RULE));
}

void request_rule_name(const struct request_rule *rule, const char *klass, const char *text,
		       struct buf *out)
{
	for (const char *s = rule->name; *s; s++) {
		if (*s != '%')
			buf_addch(out, *s);
		else if (*++s == 'c')
			buf_addstr(out, klass ? klass : UNKNOWN);
		else if (*s == 't' && text)
			add_text(rule, text, out);
		else
			buf_addstr(out, *s == 't' ? UNKNOWN : "%");
	}
}
