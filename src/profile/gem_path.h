/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Which gem Ruby code belongs to, as the path of its file tells it.
 *
 * Nothing is looked up: what a recording says must be the same on any machine. So a gem that comes
 * with Ruby and is installed as gems are (a "bundled" one, such as minitest) is a gem like any
 * other, while a "default" one, such as json, has its code in Ruby's own library and no version
 * there.
 */
#ifndef RBPF_PROFILE_GEM_PATH_H
#define RBPF_PROFILE_GEM_PATH_H

#include <stddef.h>

/* Where Ruby code comes from: the first values of enum code_origin (view/label.h). */
enum gem_origin {
	GEM_APP,    /* the program itself, which is in no gem */
	GEM_GEM,    /* a gem, or a library that a package of the system has put in its place */
	GEM_STDLIB, /* Ruby's standard library, in which default gems are */
	GEM_CORE,   /* part of the interpreter: <internal:...> */
	GEM_ORIGINS,
	GEM_NONE = GEM_ORIGINS, /* no Ruby code */
	GEM_NOT_RECORDED,	/* who ended a wait, and may be anything */
};

/* Parts of a path. */
struct gem_part {
	const char *s;
	size_t len; /* 0: none */
};

struct gem {
	enum gem_origin origin;
	struct gem_part dir;	 /* of a gem in a directory of its own: "activerecord-7.1.3" */
	struct gem_part space;	 /* "net" of net/http.rb, which is net-http */
	struct gem_part name;	 /* "activerecord"; of the standard library "json" */
	struct gem_part version; /* "7.1.3", "3.4.0-x86_64-linux", a commit "0a1b2c3d4e5f" */
};

/* The parts of @ret are those of @path. */
void gem_of_path(const char *path, struct gem *ret);

#endif
