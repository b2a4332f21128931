/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Which gem Ruby code belongs to, as the path of its file tells it.
 *
 * Nothing is looked up: what a recording says must be the same on any machine. So a gem that comes
 * with Ruby and is installed as gems are (a "bundled" one, such as minitest) is a gem like any
 * other, while a "default" one, such as json, has its code in Ruby's own library and no version
 * there.
 */
#ifndef RBPF_VIEW_GEM_H
#define RBPF_VIEW_GEM_H

#include <stddef.h>
#include <stdint.h>

struct buf;
struct profile;

/* Where Ruby code comes from: the first values of enum code_origin (label.h). */
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

/* The same of a frame: GEM_NONE if that is no Ruby code, GEM_NOT_RECORDED. */
void gem_of_frame(const struct profile *p, uint32_t frame, struct gem *ret);

/*
 * Whose the time of a stack is: that of its innermost frame among those with the highest claim.
 * Programs and libraries have the highest, the interpreter's own code has one where there are none
 * of these, what is no Ruby code has none: 0.
 */
unsigned int gem_claim(enum gem_origin origin);

/*
 * By stack id: the frame whose gem has its time, if need be one that is no Ruby code; PROFILE_NONE
 * of the empty stack. @ret: free(). Returns 0 or -ENOMEM.
 */
int gem_frames(const struct profile *p, uint32_t **ret);

/* "app", "gem", "stdlib", "core", "none", "not-recorded" */
const char *gem_origin_word(enum gem_origin origin);

/* Append the name, "net-http"; nothing if it is in no gem. */
void gem_name(const struct gem *gem, struct buf *out);

/*
 * Append what it is to people: "activerecord 7.1.3", "net-http", "[application]", "[ruby core]",
 * "[no Ruby code]", "[not recorded]".
 */
void gem_label(const struct gem *gem, struct buf *out);

#endif
