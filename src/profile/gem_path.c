/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Where Ruby code is installed:
 *
 *	…/gems/NAME-VERSION/…, also of Bundler's vendor/bundle and Debian's rubygems-integration
 *	…/bundler/gems/NAME-COMMIT/…
 *	…/lib/ruby/3.3.0/…, /usr/share/ruby/… (Fedora), …/share/rubygems/…: the standard library
 *	…/lib/ruby/vendor_ruby/…, …/site_ruby/…, …/site_ruby/3.3.0/…: what is there without RubyGems
 */
#include "profile/gem_path.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

#include "base/array.h"

#define DIGITS	   "0123456789"
#define MIN_COMMIT 7 /* digits of a shortened id of git */

static bool starts_with(const char *s, const char *prefix)
{
	return !strncmp(s, prefix, strlen(prefix));
}

/* What is behind @infix in @path; NULL if it is not there. */
static const char *behind(const char *path, const char *infix)
{
	const char *at = strstr(path, infix);

	return at ? at + strlen(infix) : NULL;
}

/* ---- gems ---- */

static bool is_commit(const char *s, size_t len)
{
	return len >= MIN_COMMIT && strspn(s, DIGITS "abcdef") == len;
}

/* "7", "7.1.3", "1.13.10-x86_64-linux", but not "2fa" */
static bool is_version(const char *s, size_t len)
{
	size_t digits = strspn(s, DIGITS);

	return digits && (digits >= len || s[digits] == '.' || s[digits] == '-');
}

/* Where in a directory's name the version begins; @len if it has none. */
static size_t find_version(const char *dir, size_t len)
{
	for (size_t i = 1; i + 1 < len; i++)
		if (dir[i] == '-' && is_version(dir + i + 1, len - i - 1))
			return i + 1;
	for (size_t i = len; i-- > 1;)
		if (dir[i] == '-')
			return is_commit(dir + i + 1, len - i - 1) ? i + 1 : len;
	return len;
}

static bool is_gem_dir(const char *dir, struct gem *ret)
{
	size_t len = strcspn(dir, "/");
	size_t version = find_version(dir, len);

	/* A file, or the 3.3.0 of lib/ruby/gems/3.3.0, is not a gem's directory. */
	if (!dir[len] || is_version(dir, len))
		return false;
	ret->origin = GEM_GEM;
	ret->dir = (struct gem_part) { dir, len };
	ret->name = (struct gem_part) { dir, version < len ? version - 1 : len };
	ret->version = (struct gem_part) { dir + version, len - version };
	return true;
}

/*
 * Gems may have folders of gems in them, and programs, too: the innermost one with a version, or
 * else the innermost.
 */
static bool find_gem(const char *path, struct gem *ret)
{
	bool found = false;

	for (const char *dir = path; (dir = behind(dir, "/gems/")); dir--) {
		struct gem gem = { 0 };

		if (!is_gem_dir(dir, &gem) || (found && ret->version.len && !gem.version.len))
			continue;
		*ret = gem;
		found = true;
	}
	return found;
}

/* ---- what is installed without a directory of its own ---- */

/* "3.3.0/" */
static size_t version_dir(const char *s)
{
	size_t len = strspn(s, DIGITS ".");

	return len && isdigit((unsigned char)s[0]) && s[len] == '/' ? len + 1 : 0;
}

/* "x86_64-linux/", which has rbconfig.rb */
static size_t arch_dir(const char *s)
{
	size_t len = strcspn(s, "/");
	const char *os = memmem(s, len, "-linux", strlen("-linux"));

	return s[len] && (os || memmem(s, len, "-darwin", strlen("-darwin"))) ? len + 1 : 0;
}

/* The name up to the end of the directory, or of the file without ".rb". */
static struct gem_part part_of(const char *s)
{
	size_t len = strcspn(s, "/");

	if (!s[len] && len > 3 && !strcmp(s + len - 3, ".rb"))
		len -= 3;
	return (struct gem_part) { s, len };
}

/* Libraries that share a folder are gems each: net/http.rb is of net-http. */
static void name_library(const char *s, struct gem *ret)
{
	ret->name = part_of(s);
	if (starts_with(s, "net/") || starts_with(s, "io/")) {
		ret->space = ret->name;
		ret->name = part_of(s + ret->space.len + 1);
	}
}

/* What is behind the directory of the standard library; NULL if @path is in none. */
static const char *in_stdlib(const char *path)
{
	static const char *const places[] = { "/lib/ruby/", "-linux-gnu/ruby/" };
	const char *s = behind(path, "/share/ruby/"); /* of one version */

	for (size_t i = 0; i < ARRAY_SIZE(places) && !s; i++) {
		s = behind(path, places[i]);
		s = s && version_dir(s) ? s : NULL;
	}
	return s;
}

/* What is behind the directory of libraries that were installed without RubyGems; or NULL. */
static const char *in_site(const char *path)
{
	const char *s = behind(path, "/vendor_ruby/");

	return s ? s : behind(path, "/site_ruby/");
}

/* RubyGems reads the descriptions of gems as Ruby code; some systems give it a directory. */
static bool is_rubygems(const char *path)
{
	return behind(path, "/share/rubygems") || behind(path, "/specifications/");
}

static bool find_library(const char *path, struct gem *ret)
{
	const char *s = in_site(path);

	ret->origin = s ? GEM_GEM : GEM_STDLIB;
	if (!s)
		s = in_stdlib(path);
	if (!s && is_rubygems(path))
		s = "rubygems";
	if (!s)
		return false;
	s += version_dir(s);
	s += arch_dir(s);
	name_library(s, ret);
	/* Packages of the system and 'gem update --system' put these where other gems are. */
	if (starts_with(s, "rubygems") || starts_with(s, "bundler"))
		ret->origin = GEM_STDLIB;
	return true;
}

void gem_of_path(const char *path, struct gem *ret)
{
	*ret = (struct gem) { 0 };
	if (starts_with(path, "<internal:"))
		ret->origin = GEM_CORE;
	else if (!find_gem(path, ret) && !find_library(path, ret))
		*ret = (struct gem) { .origin = GEM_APP };
}
