/* SPDX-License-Identifier: GPL-2.0-only */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "base/buf.h"
#include "base/err.h"
#include "request/rules.h"

static void expect_refused(const char *text, const char *words)
{
	struct request_rules rules = REQUEST_RULES_INIT;
	struct err err = { 0 };

	cr_expect_eq(request_rules_parse(&rules, text, "my.rules", &err), -EINVAL, "%s", text);
	cr_expect_eq(err.kind, ERR_USAGE, "%s", text);
	cr_expect_not_null(strstr(err.msg, words), "'%s' is not in '%s'", words, err.msg);
	request_rules_deinit(&rules);
}

static void parse(struct request_rules *rules, const char *text)
{
	struct err err = { 0 };

	*rules = (struct request_rules)REQUEST_RULES_INIT;
	cr_assert_eq(request_rules_parse(rules, text, "my.rules", &err), 0, "%s", err.msg);
}

static void expect_name(const char *rule, const char *klass, const char *text, const char *name)
{
	struct request_rules rules;
	struct buf out = BUF_INIT;

	parse(&rules, rule);
	cr_assert_eq(rules.n, 1);
	request_rule_name(&rules.v[0], klass, text, &out);
	cr_expect_str_eq(buf_str(&out), name);
	buf_deinit(&out);
	request_rules_deinit(&rules);
}

Test(request_rules, the_built_in_ones_are_right)
{
	static const struct {
		const char *label, *path, *framework;
		bool callee;
	} frames[] = {
		{ "ActionController::Metal#dispatch",
		  "/gems/actionpack-7.1.3/lib/action_controller/metal.rb", "rails", false },
		{ "Sidekiq::Processor#execute_job", "/gems/sidekiq-7.2/lib/sidekiq/processor.rb",
		  "sidekiq", false },
		{ "block in Sinatra::Base.compile!", "/lib/sinatra/base.rb", "sinatra", true },
		{ "Minitest.run_one_method", "/lib/minitest.rb", "minitest", false },
	};
	struct request_rules rules = REQUEST_RULES_INIT;

	cr_assert_eq(request_rules_builtin(&rules), 0);
	cr_expect_gt(rules.n, 15);
	for (size_t i = 0; i < ARRAY_SIZE(frames); i++) {
		int found = request_rules_find(&rules, frames[i].label, frames[i].path,
					       frames[i].callee);

		cr_assert_geq(found, 0, "%s", frames[i].label);
		cr_expect_str_eq(rules.v[found].framework, frames[i].framework);
		cr_expect_eq(request_rules_find(&rules, frames[i].label, frames[i].path,
						!frames[i].callee),
			     -1);
	}
	request_rules_deinit(&rules);
}

Test(request_rules, a_file_matches_by_whole_parts)
{
	struct request_rules rules;

	parse(&rules, "x Foo#bar foo/bar.rb self - %c\ny Foo#baz /srv/baz.rb - - baz");
	cr_expect_eq(request_rules_find(&rules, "Foo#bar", "/lib/foo/bar.rb", false), 0);
	cr_expect_eq(request_rules_find(&rules, "Foo#bar", "foo/bar.rb", false), 0);
	cr_expect_eq(request_rules_find(&rules, "Foo#bar", "/lib/afoo/bar.rb", false), -1);
	cr_expect_eq(request_rules_find(&rules, "Foo#bar", "bar.rb", false), -1);
	cr_expect_eq(request_rules_find(&rules, "Foo#ba", "foo/bar.rb", false), -1);
	cr_expect_eq(request_rules_find(&rules, "Foo#baz", "/srv/baz.rb", false), 1);
	cr_expect_eq(request_rules_find(&rules, "Foo#baz", "/a/srv/baz.rb", false), 1);
	request_rules_deinit(&rules);
}

Test(request_rules, the_last_of_two_counts)
{
	struct request_rules rules;

	parse(&rules, "a Foo#bar bar.rb - - one\nb Foo#bar bar.rb - - two\n");
	cr_expect_eq(request_rules_find(&rules, "Foo#bar", "/bar.rb", false), 1);
	request_rules_deinit(&rules);
}

Test(request_rules, words)
{
	struct request_rules rules;
	const struct request_rule *r;

	parse(&rules, "# a remark\n\n \t\n  a\t\"block in Foo#bar\" \"a b.rb\" of:63 local:7| "
		      "\"job %c of %t\" callee # another\nb c d local:0 method %c%t%%");
	cr_assert_eq(rules.n, 2);
	r = &rules.v[0];
	cr_expect_str_eq(r->method, "block in Foo#bar");
	cr_expect_str_eq(r->file, "a b.rb");
	cr_expect_str_eq(r->name, "job %c of %t");
	cr_expect_eq(r->class_from, REQUEST_CLASS_OF_LOCAL);
	cr_expect_eq(r->class_local, 63);
	cr_expect_eq(r->text_from, REQUEST_TEXT_IN_LOCAL);
	cr_expect_eq(r->text_local, 7);
	cr_expect_eq(r->until, '|');
	cr_expect(r->callee);
	cr_expect_eq(rules.v[1].class_from, REQUEST_CLASS_IN_LOCAL);
	cr_expect_eq(rules.v[1].text_from, REQUEST_TEXT_METHOD);
	cr_expect_not(rules.v[1].callee);
	request_rules_deinit(&rules);
}

Test(request_rules, wrong_lines_are_refused_with_their_number)
{
	static char deep[REQUEST_MAX_RULE_LINE + 2];

	expect_refused("a b c - -", "my.rules:1: 5 words");
	expect_refused("\na b c - - d e", "my.rules:2: 'e' where only 'callee'");
	expect_refused("a b c - - d callee f", "more than 7 words");
	expect_refused("a b c selfish - %c", "the class 'selfish'");
	expect_refused("a b c of: - %c", "the class 'of:'");
	expect_refused("a b c of:64 - %c", "the class 'of:64'");
	expect_refused("a b c of:1x - %c", "'x' behind the number");
	expect_refused("a b c - local:-1 %t", "the text 'local:-1'");
	expect_refused("a b c - local:1[] %t", "more than one character");
	expect_refused("a b c - self %t", "the text 'self'");
	expect_refused("a b c - - %c", "no class is read");
	expect_refused("a b c self - %t", "no text is read");
	expect_refused("a b c self - %d", "a % in the name");
	expect_refused("a b c self - %", "a % in the name");
	expect_refused("a b c self - \"\"", "the name is empty");
	expect_refused("a \"b c self - %c", "does not end");
	expect_refused("a \"b\"c d self - %c", "does not end");
	memset(deep, 'x', sizeof(deep) - 1);
	expect_refused(deep, "longer than");
}

Test(request_rules, too_many)
{
	struct request_rules rules = REQUEST_RULES_INIT;
	struct buf text = BUF_INIT;
	struct err err = { 0 };

	for (int i = 0; i < REQUEST_MAX_RULES; i++)
		buf_addf(&text, "a b%d c - - d\n", i);
	cr_assert_eq(request_rules_parse(&rules, buf_str(&text), "x", &err), 0, "%s", err.msg);
	cr_expect_eq(request_rules_parse(&rules, "a b c - - d", "x", &err), -EINVAL);
	cr_expect_eq(rules.n, REQUEST_MAX_RULES);
	buf_deinit(&text);
	request_rules_deinit(&rules);
}

static bool tells(const char *rule, const char *klass, const char *text)
{
	struct request_rules rules;
	bool ret;

	parse(&rules, rule);
	ret = request_rule_tells(&rules.v[0], klass, text);
	request_rules_deinit(&rules);
	return ret;
}

/* What is of no class and has no text has no name, rather than one that says nothing. */
Test(request_rules, what_tells_nothing)
{
	cr_expect(tells("a b c self local:0 %c#%t", "Foo", NULL));
	cr_expect_not(tells("a b c self local:0 %c#%t", NULL, "bar"));
	cr_expect(tells("a b c - local:0 \"rake %t\"", NULL, NULL));
	cr_expect(tells("a b c - local:0 %t", NULL, "GET /"));
	cr_expect_not(tells("a b c - local:0 %t", NULL, NULL));
}

static bool is_vague(const char *line)
{
	struct request_rules rules;
	bool ret;

	parse(&rules, line);
	ret = request_rule_is_vague(&rules.v[0]);
	request_rules_deinit(&rules);
	return ret;
}

Test(request_rules, which_of_them_a_stack_is_of)
{
	cr_expect(is_vague("a b c - - \"Puma request\""));
	cr_expect_not(is_vague("a b c self - %c"));
	cr_expect_not(is_vague("a b c - local:0 %t"));

	for (int vague = 0; vague < 2; vague++) {
		cr_expect(request_rule_fits(3, vague, 3));
		cr_expect_not(request_rule_fits(3, vague, 4), "one further in has another");
		cr_expect_eq(request_rule_fits(3, vague, REQUEST_ANY_RULE), !vague);
		cr_expect_eq(request_rule_fits(3, vague, 0), !vague);
	}
}

Test(request_rules, names)
{
	expect_name("a b c self local:0 %c#%t", "Foo", "bar", "Foo#bar");
	expect_name("a b c self local:0 %c#%t", "Foo", NULL, "Foo#[unknown]");
	expect_name("a b c self local:0 %c#%t", NULL, "bar", "[unknown]#bar");
	expect_name("a b c - local:0[ \"rake %t\"", NULL, "seed[3]", "rake seed");
	expect_name("a b c - local:0[ \"rake %t\"", NULL, "seed", "rake seed");
	expect_name("a b c self - \"100 %% %c\"", "Foo", NULL, "100 % Foo");
}

Test(request_rules, those_of_paths_count_only_if_they_are_asked_for)
{
	static const char text[] = "own Server#run server.rb - - Server\n"
				   "own Server#run server.rb - env:env %t\n";
	struct request_rules rules;
	struct err err = { 0 };

	for (int paths = 0; paths < 2; paths++) {
		const struct request_rule *rule;

		rules = (struct request_rules) { .paths = paths };
		cr_assert_eq(request_rules_parse(&rules, text, "my.rules", &err), 0);
		rule = &rules.v[request_rules_find(&rules, "Server#run", "/server.rb", false)];
		cr_expect_eq(rule->text_from, paths ? REQUEST_TEXT_ENV : REQUEST_NO_TEXT);
		if (paths)
			cr_expect_str_eq(rule->env_local, "env");
		cr_assert_eq(request_rules_builtin(&rules), 0);
		rule = &rules.v[request_rules_find(&rules, "Puma::Request#handle_request",
						   "/puma/request.rb", false)];
		cr_expect_str_eq(rule->name, paths ? "%t" : "Puma request");
		request_rules_deinit(&rules);
	}
	expect_refused("own Server#run server.rb - env: %t", "without the name");
}
