/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Rules: which frame of a stack tells the request or the job that a thread serves, and what of that
 * frame is read to name it. They are data: those that are built in stand in rules.txt, and
 * rbpf-requests(5) describes the form. A rule reads the class of an object and at most one String
 * or Symbol, and nothing else.
 *
 * This module knows neither processes nor frames: a frame is given by its label and file.
 */
#ifndef RBPF_REQUEST_RULES_H
#define RBPF_REQUEST_RULES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"

struct buf;
struct err;

#define REQUEST_MAX_RULES     1000
#define REQUEST_MAX_RULE_LINE 1000 /* bytes */
#define REQUEST_MAX_FILE      (256u << 10)
#define REQUEST_MAX_LOCAL     63 /* number of a local variable */

/* Whose class %c of the name is. */
enum request_class {
	REQUEST_NO_CLASS,
	REQUEST_CLASS_OF_SELF,
	REQUEST_CLASS_OF_LOCAL, /* of the local variable class_local */
	REQUEST_CLASS_IN_LOCAL, /* the local variable class_local is the class */
};

/* What %t of the name is. */
enum request_text {
	REQUEST_NO_TEXT,
	REQUEST_TEXT_IN_LOCAL, /* the String or Symbol in the local variable text_local */
	REQUEST_TEXT_METHOD,   /* the name of the method, which is of define_method() */
	/* method and path of Rack's environment, which is the local variable env_local */
	REQUEST_TEXT_ENV,
};

struct request_rule {
	char *framework; /* owned, as all strings */
	char *method;	 /* label of the frame, as Ruby 3.4 prints it: "Foo#bar" */
	char *file;	 /* end of its path, whole parts: "sidekiq/processor.rb" */
	char *name;	 /* of the request, with %c and %t; %% is a % */
	char *env_local; /* NULL: none */
	enum request_class class_from;
	enum request_text text_from;
	unsigned int class_local, text_local; /* 0 is the first parameter */
	char until;  /* the text ends before this character; '\0': nowhere */
	bool callee; /* it is the Ruby frame that such a frame calls, itself or by C functions */
};

struct request_rules {
	struct request_rule *v; /* owned */
	size_t n, cap;
	bool paths; /* set before any is added: rules that read a path are left out without */
};

#define REQUEST_RULES_INIT                                                                         \
	{                                                                                          \
		0                                                                                  \
	}

void request_rules_deinit(struct request_rules *rules);
#define _cleanup_request_rules_ _cleanup_(request_rules_deinit)

/* Append the rules that are built in. Returns 0 or -ENOMEM. */
int request_rules_builtin(struct request_rules *rules);

/*
 * Append the rules in @text, which ends with a NUL; @path is for messages. Of two rules of the same
 * method and file the one that was added last counts. Returns 0, -ENOMEM or -EINVAL (ERR_USAGE,
 * with the number of the line).
 */
int request_rules_parse(struct request_rules *rules, const char *text, const char *path,
			struct err *err);

/*
 * The rule of a frame with @label in the file @path, whose own one it is, or with @callee that of
 * the frame that it calls. Returns its number in @rules, or -1.
 */
int request_rules_find(const struct request_rules *rules, const char *label, const char *path,
		       bool callee);

/*
 * Whether anything says what a request is of which @klass and @text were read (NULL: could not be
 * read): without its class nothing does, nor without its text if that is all of its name.
 */
bool request_rule_tells(const struct request_rule *rule, const char *klass, const char *text);

/* Whether it names nothing of a request: true only where no frame further in has a rule. */
bool request_rule_is_vague(const struct request_rule *rule);

/*
 * The rule of a stack is 1 + the number of that of its innermost frame that has one; 0: none has.
 * This one: it may be any, as a frame could not be named.
 */
#define REQUEST_ANY_RULE UINT16_MAX

/*
 * Whether a request that was told by the rule @told (as of a stack; @vague:
 * request_rule_is_vague()) is that of a stack whose rule is @of_stack.
 */
bool request_rule_fits(uint16_t told, bool vague, uint16_t of_stack);

/*
 * Append the name of a request by @rule to @out: @klass and @text are what was read, NULL what
 * could not be read, in whose place "[unknown]" stands.
 */
void request_rule_name(const struct request_rule *rule, const char *klass, const char *text,
		       struct buf *out);

#endif
