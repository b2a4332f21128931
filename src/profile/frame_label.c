/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Action View (lib/action_view/template.rb of 4.2 to 8.1) calls the method of a template
 *
 *	"_" + PATH.tr("^a-z_", "_") + "__" + HASH + "_" + OBJECT_ID
 *
 * where PATH is relative to Rails.root if the template is below it, HASH is a number that may be
 * negative, whose sign becomes "_", too, and the file of the method is the whole path. So the name
 * tells how much of the file's path is PATH, and whether there is such a PATH at all. Methods are
 * those of an anonymous class, before Rails 6.0 of ActionView::CompiledTemplates. All template
 * handlers (ERB, Haml, Slim, Jbuilder …) are given their method by it.
 *
 * Tilt (lib/tilt/template.rb), with which Sinatra, Roda, Hanami and Slim render, calls it
 * "__tilt_OBJECT_ID": OBJECT_ID is one of the template or, later, of the thread that compiled it,
 * so that several templates have the same name. Only the file tells them apart. A template that is
 * part of a program has the file of the program, or none.
 *
 * Active Model and Active Record call a method for an attribute "__temp__HEX", since 6.1 only if
 * the attribute's name is none of a method, and alias it; Ruby shows the first name. It is the same
 * in all processes, but for people: HEX is what String#unpack("h*") makes of the attribute's name,
 * the low half of each byte first. Behind it, "=" may stand.
 */
#include "profile/frame_label.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

#include "base/array.h"
#include "base/buf.h"
#include "base/utf8.h"

/* A name in its parts: "block in " (the decoration), "Foo#", and the method. */
struct name_parts {
	const char *name;
	size_t decoration; /* bytes */
	const char *method;
	size_t len; /* of the method */
};

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_lower(char c)
{
	return c >= 'a' && c <= 'z';
}

/* What the methods that are examined here consist of. */
static bool is_part_of_method(char c)
{
	return is_lower(c) || is_digit(c) || c == '_' || c == '=';
}

/* False if no method is in @name that could be one of these. */
static bool split_name(const char *name, struct name_parts *ret)
{
	const char *end = name + strlen(name), *method = end, *owner;

	while (method > name && is_part_of_method(method[-1]))
		method--;
	for (owner = method; owner > name && owner[-1] != ' ';)
		owner--;
	*ret = (struct name_parts) { .name = name,
				     .decoration = (size_t)(owner - name),
				     .method = method,
				     .len = (size_t)(end - method) };
	if (owner > name && (owner - name < 4 || memcmp(owner - 4, " in ", 4)))
		return false;
	return method == owner || method[-1] == '#' || method[-1] == '.';
}

/* @len less the digits at the end of these bytes of @s; *@ok becomes false if there are none. */
static size_t without_digits(const char *s, size_t len, bool *ok)
{
	size_t end = len;

	while (len && is_digit(s[len - 1]))
		len--;
	*ok &= len < end;
	return len;
}

static size_t without_underscore(const char *s, size_t len, bool *ok)
{
	*ok &= len && s[len - 1] == '_';
	return *ok ? len - 1 : 0;
}

/*
 * The part of @file from a slash or its beginning on that Action View writes as these @len bytes:
 * one "_" for each character but a-z. NULL if there is none.
 */
static const char *end_written_as(const char *written, size_t len, const char *file)
{
	const char *p = file + strlen(file);

	if (!len)
		return NULL;
	while (len) {
		if (p == file)
			return NULL;
		for (p--; p > file && ((unsigned char)*p & 0xc0) == 0x80;) /* inside a character */
			p--;
		if (written[--len] != (is_lower(*p) ? *p : '_'))
			return NULL;
	}
	return p == file || p[-1] == '/' ? p : NULL;
}

/* The PATH of the template that Action View compiled to @method, or NULL. */
static const char *action_view_path(const struct name_parts *n, const char *file)
{
	const char *written = n->method + 1, *path;
	bool ok = n->method[0] == '_';
	size_t len;

	len = without_digits(n->method, n->len, &ok);
	len = without_underscore(n->method, len, &ok);
	len = without_digits(n->method, len, &ok);
	len = without_underscore(n->method, len, &ok);
	len = without_underscore(n->method, len, &ok);
	if (!ok || len < 2)
		return NULL;
	/* The path may end with what is written as "_"; or that was the sign. */
	path = end_written_as(written, len - 1, file);
	if (!path && n->method[len - 1] == '_')
		path = end_written_as(written, len - 2, file);
	return path;
}

/* The last occurrence of @s in @path, or NULL. */
static const char *find_last(const char *path, const char *s)
{
	const char *found = NULL;

	while ((path = strstr(path, s)))
		found = path++;
	return found;
}

/* From the name of the gem on that @path is in, or NULL. */
static const char *path_in_gem(const char *path)
{
	const char *gem = find_last(path, "/gems/");

	if (!gem)
		return NULL;
	gem += strlen("/gems/");
	return *gem != '/' && strchr(gem, '/') ? gem : NULL;
}

/* Without the directory that the application is in, if its templates are where most have them. */
static const char *path_in_app(const char *path)
{
	static const char *const places[] = { "/app/views/", "/app/templates/", "/views/",
					      "/templates/" };

	for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
		const char *found = find_last(path, places[i]);

		if (found)
			return found + 1;
	}
	return path;
}

static bool has_prefix(const struct name_parts *n, const char *prefix)
{
	return n->len > strlen(prefix) && !memcmp(n->method, prefix, strlen(prefix));
}

static bool is_tilt(const struct name_parts *n)
{
	bool ok = has_prefix(n, "__tilt_");

	return ok && without_digits(n->method, n->len, &ok) == strlen("__tilt_");
}

/*
 * Whether @file is a template, and not a program with templates in it, "(__TEMPLATE__)" or "(eval".
 */
static bool is_template_file(const char *file)
{
	const char *slash = strrchr(file, '/'), *base = slash ? slash + 1 : file;
	const char *dot = strrchr(base, '.');

	return *file != '(' && dot && dot > base && dot[1] && strcmp(dot, ".rb") &&
	       strcmp(dot, ".ru");
}

static void add_template(const struct name_parts *n, const char *path, struct buf *out)
{
	buf_add(out, n->name, n->decoration);
	buf_addstr(out, path);
}

static bool add_tilt(const struct name_parts *n, const char *file, struct buf *out)
{
	const char *path = path_in_gem(file);

	if (!is_tilt(n))
		return false;
	if (is_template_file(file)) {
		add_template(n, path ? path : path_in_app(file), out);
	} else {
		buf_add(out, n->name, (size_t)(n->method - n->name));
		buf_addstr(out, "__tilt");
	}
	return true;
}

static int hex_value(char c)
{
	if (is_digit(c))
		return c - '0';
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/*
 * Append the bytes that @len digits write, the low half of each first. False if they write none.
 */
static bool add_bytes(const char *digits, size_t len, struct buf *out)
{
	for (size_t i = 0; i + 1 < len; i += 2) {
		int low = hex_value(digits[i]), high = hex_value(digits[i + 1]);

		if (low < 0 || high < 0)
			return false;
		buf_addch(out, (char)(high << 4 | low));
	}
	return len && len % 2 == 0;
}

static bool all_presentable(const char *s, size_t len)
{
	size_t n;

	for (; len; s += n, len -= n) {
		n = utf8_sequence(s, len);
		if (!n || !utf8_presentable(s, n))
			return false;
	}
	return true;
}

static bool add_attribute(const struct name_parts *n, const char *file, struct buf *out)
{
	_cleanup_buf_ struct buf attribute = BUF_INIT;
	const char *digits = n->method + strlen("__temp__");
	size_t len;
	bool writer;

	if (!has_prefix(n, "__temp__") ||
	    (!strstr(file, "/active_model/") && !strstr(file, "/active_record/")))
		return false;
	len = n->len - strlen("__temp__");
	writer = digits[len - 1] == '=';
	if (!add_bytes(digits, len - writer, &attribute) ||
	    !all_presentable(buf_str(&attribute), attribute.len))
		return false;
	buf_add(out, n->name, (size_t)(n->method - n->name));
	buf_add(out, buf_str(&attribute), attribute.len);
	buf_addstr(out, writer ? "=" : "");
	return true;
}

bool frame_label(enum frame_kind kind, const char *name, const char *file, struct buf *out)
{
	struct name_parts n;
	const char *path, *in_gem;

	/* All of them have it, and few others. A longer path is no file's. */
	if (kind != FRAME_RUBY || !strstr(name, "__") || !split_name(name, &n) ||
	    strnlen(file, PATH_MAX) == PATH_MAX)
		return false;
	path = action_view_path(&n, file);
	if (path) {
		in_gem = path_in_gem(path);
		add_template(&n, in_gem ? in_gem : path, out);
		return true;
	}
	return add_tilt(&n, file, out) || add_attribute(&n, file, out);
}

int profile_frame_set_label(struct profile *p, struct profile_frame *frame, struct buf *scratch)
{
	uint32_t label;
	int r;

	buf_reset(scratch);
	if (!frame_label(frame->kind, profile_str(p, frame->name), profile_str(p, frame->file),
			 scratch))
		return 0;
	if (buf_failed(scratch))
		return -ENOMEM;
	r = intern_str(&p->strings, buf_str(scratch), &label);
	if (r || label == frame->name)
		return r;
	frame->raw_name = frame->name;
	frame->name = label;
	return 0;
}
