/* SPDX-License-Identifier: GPL-2.0-only */
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "elf/debug_file.h"
#include "support/elf_builder.h"
#include "support/little_endian.h"

#define ID     "\x12\x34\x56\x78\x9a\xbc\xde\xf0"
#define ID_LEN 8
#define BY_ID  "/usr/lib/debug/.build-id/12/3456789abcdef0.debug"
#define EXE    "/opt/bin/exe"

/* ---- a directory with two roots ---- */

struct fixture {
	char dir[64];
	char target[80], own[80];
	const char *v[2];
	struct debug_roots roots;
	char where[PATH_MAX];
};

static void setup(struct fixture *f)
{
	*f = (struct fixture) { .dir = "/tmp/rbpf-debug-file-XXXXXX" };
	cr_assert_not_null(mkdtemp(f->dir));
	snprintf(f->target, sizeof(f->target), "%s/target", f->dir);
	snprintf(f->own, sizeof(f->own), "%s/own", f->dir);
	cr_assert_eq(mkdir(f->target, 0755), 0);
	cr_assert_eq(mkdir(f->own, 0755), 0);
	f->v[0] = f->target;
	f->v[1] = f->own;
	f->roots = (struct debug_roots) { f->v, 2, debug_file_open_regular, NULL };
	strcpy(f->where, "untouched");
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

static void teardown(struct fixture *f)
{
	cr_assert_eq(nftw(f->dir, remove_one, 16, FTW_DEPTH | FTW_PHYS), 0);
}

/* The path of @name in @root, whose directories are made. */
static const char *make_path(const char *root, const char *name)
{
	static char path[PATH_MAX];
	char *slash;

	snprintf(path, sizeof(path), "%s%s", root, name);
	for (slash = path + strlen(root) + 1; (slash = strchr(slash, '/')); slash++) {
		*slash = '\0';
		cr_assert(!mkdir(path, 0755) || errno == EEXIST, "%s", path);
		*slash = '/';
	}
	return path;
}

static void put(const char *root, const char *name, const struct buf *bytes)
{
	const char *path = make_path(root, name);
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	cr_assert_geq(fd, 0, "%s", path);
	cr_assert_eq(write(fd, bytes->data, bytes->len), (ssize_t)bytes->len);
	close(fd);
}

/* ---- files ---- */

static void add_build_id(struct elf_builder *b, const char *id, size_t len)
{
	Elf64_Nhdr nhdr = { .n_namesz = 4, .n_descsz = (uint32_t)len, .n_type = NT_GNU_BUILD_ID };
	struct buf note = BUF_INIT;

	buf_add(&note, &nhdr, sizeof(nhdr));
	buf_add(&note, "GNU", 4);
	buf_add(&note, id, len);
	buf_add_repeat(&note, '\0', -len % 4);
	elf_builder_section(b, ".note.gnu.build-id", SHT_NOTE, 0, note.data, note.len);
	buf_deinit(&note);
}

/* A debug file, with a build-id unless it is NULL; @what makes two of them differ. */
static struct buf debug_bytes(const char *id, const char *what)
{
	struct elf_builder b;
	struct buf bytes;

	elf_builder_init(&b);
	if (id)
		add_build_id(&b, id, ID_LEN);
	elf_builder_section(&b, ".debug_info", SHT_PROGBITS, 0, what, strlen(what));
	elf_builder_finish(&b);
	bytes = b.bytes;
	b.bytes = (struct buf)BUF_INIT;
	elf_builder_deinit(&b);
	return bytes;
}

static uint32_t crc_of(const struct buf *bytes)
{
	return (uint32_t)crc32(0, (void *)bytes->data, (uInt)bytes->len);
}

/* A stripped file with a build-id and a link to "exe.debug", unless they are NULL. */
static int stripped(const char *id, const struct buf *linked)
{
	struct buf link = BUF_INIT;
	struct elf_builder b;
	int fd;

	elf_builder_init(&b);
	if (id)
		add_build_id(&b, id, ID_LEN);
	if (linked) {
		buf_add(&link, "exe.debug\0\0", 12);
		buf_add_le32(&link, crc_of(linked));
		elf_builder_section(&b, ".gnu_debuglink", SHT_PROGBITS, 0, link.data, link.len);
	}
	elf_builder_finish(&b);
	fd = elf_builder_memfd(b.bytes.data, b.bytes.len);
	elf_builder_deinit(&b);
	buf_deinit(&link);
	return fd;
}

/* The debug file of @fd is the one at @path in @root; NULL: there is none. */
static void expect_debug_file(struct fixture *f, int fd, const char *root, const char *path)
{
	int found = debug_file_open(fd, EXE, &f->roots, f->where, NULL, sizeof(f->where));
	char wanted[PATH_MAX];
	struct stat a, b;

	if (!path) {
		cr_expect_eq(found, -ENOENT, "found %s", f->where);
		cr_expect_str_eq(f->where, "untouched");
		return;
	}
	snprintf(wanted, sizeof(wanted), "%s%s", root, path);
	cr_assert_geq(found, 0, "%s not found", wanted);
	cr_expect_str_eq(f->where, wanted);
	cr_expect(!fstat(found, &a) && !stat(wanted, &b) && a.st_ino == b.st_ino);
	close(found);
}

/* ---- tests ---- */

Test(debug_file, by_build_id)
{
	struct buf own = debug_bytes(ID, "own"), target = debug_bytes(ID, "target");
	int fd = stripped(ID, NULL);
	struct fixture f;

	setup(&f);
	expect_debug_file(&f, fd, NULL, NULL);
	put(f.own, BY_ID, &own);
	expect_debug_file(&f, fd, f.own, BY_ID);
	put(f.target, BY_ID, &target);
	expect_debug_file(&f, fd, f.target, BY_ID);
	teardown(&f);
	close(fd);
	buf_deinit(&own);
	buf_deinit(&target);
}

Test(debug_file, by_link)
{
	static const char *const places[] = { "/usr/lib/debug/opt/bin/exe.debug",
					      "/opt/bin/.debug/exe.debug", "/opt/bin/exe.debug" };
	struct buf bytes = debug_bytes(NULL, "any");
	int fd = stripped(NULL, &bytes);
	struct fixture f;

	setup(&f);
	expect_debug_file(&f, fd, NULL, NULL);
	for (int root = 1; root >= 0; root--) {
		for (size_t i = 0; i < 3; i++) {
			put(f.v[root], places[i], &bytes);
			expect_debug_file(&f, fd, f.v[root], places[i]);
		}
	}
	teardown(&f);
	close(fd);
	buf_deinit(&bytes);
}

/* What is at the right place and is another file's is passed over. */
Test(debug_file, of_another_file)
{
	struct buf right = debug_bytes(NULL, "right"), other = debug_bytes(NULL, "other");
	struct buf id = debug_bytes(ID, "id"), other_id = debug_bytes("\x12\x34other!", "id");
	int fd = stripped(ID, &right), linked = stripped(NULL, &right);
	struct fixture f;

	setup(&f);
	put(f.target, BY_ID, &other_id);
	put(f.target, "/opt/bin/exe.debug", &other_id);
	put(f.target, "/opt/bin/.debug/exe.debug", &other);
	expect_debug_file(&f, fd, NULL, NULL);
	expect_debug_file(&f, linked, NULL, NULL);
	put(f.own, "/usr/lib/debug/opt/bin/exe.debug", &right);
	expect_debug_file(&f, fd, f.own, "/usr/lib/debug/opt/bin/exe.debug");
	expect_debug_file(&f, linked, f.own, "/usr/lib/debug/opt/bin/exe.debug");
	/* A build-id proves it without a checksum. */
	put(f.target, "/opt/bin/exe.debug", &id);
	expect_debug_file(&f, fd, f.target, "/opt/bin/exe.debug");
	teardown(&f);
	close(fd);
	close(linked);
	buf_deinit(&right);
	buf_deinit(&other);
	buf_deinit(&id);
	buf_deinit(&other_id);
}

/* The stripped file itself has the build-id, too. */
Test(debug_file, without_debug_information)
{
	struct buf bytes = BUF_INIT;
	struct elf_builder b;
	struct fixture f;
	int fd;

	elf_builder_init(&b);
	add_build_id(&b, ID, ID_LEN);
	elf_builder_section(&b, ".debug_info", SHT_NOBITS, 0, NULL, 0);
	elf_builder_finish(&b);
	fd = stripped(ID, &b.bytes);
	setup(&f);
	put(f.target, BY_ID, &b.bytes);
	put(f.target, "/opt/bin/exe.debug", &b.bytes);
	buf_addstr(&bytes, "no ELF file");
	put(f.own, BY_ID, &bytes);
	expect_debug_file(&f, fd, NULL, NULL);
	teardown(&f);
	close(fd);
	elf_builder_deinit(&b);
	buf_deinit(&bytes);
}

Test(debug_file, links_stay_within_their_root)
{
	struct buf inside = debug_bytes(ID, "inside"), outside = debug_bytes(ID, "outside");
	int fd = stripped(ID, NULL);
	char escape[PATH_MAX];
	struct fixture f;

	setup(&f);
	put(f.dir, "/outside", &outside);
	snprintf(escape, sizeof(escape), "%s/outside", f.dir);
	cr_assert_eq(symlink(escape, make_path(f.target, BY_ID)), 0);
	expect_debug_file(&f, fd, NULL, NULL);
	put(f.target, "/elsewhere", &inside);
	cr_assert_eq(unlink(make_path(f.target, BY_ID)), 0);
	cr_assert_eq(symlink("/elsewhere", make_path(f.target, BY_ID)), 0);
	cr_expect_geq(fd = debug_file_open(fd, EXE, &f.roots, f.where, NULL, sizeof(f.where)), 0);
	close(fd);
	teardown(&f);
	buf_deinit(&inside);
	buf_deinit(&outside);
}

Test(debug_file, not_a_regular_file)
{
	int fd = stripped(ID, NULL);
	struct fixture f;

	setup(&f);
	cr_assert_eq(mkfifo(make_path(f.target, BY_ID), 0644), 0);
	cr_assert_eq(mkdir(make_path(f.own, BY_ID), 0755), 0);
	expect_debug_file(&f, fd, NULL, NULL);
	teardown(&f);
	close(fd);
}

Test(debug_file, nothing_to_go_by)
{
	static const char *const links[] = { "../exe.debug", "", "no end" };
	struct fixture f;
	int fd;

	setup(&f);
	fd = stripped(NULL, NULL);
	expect_debug_file(&f, fd, NULL, NULL);
	close(fd);
	fd = elf_builder_memfd("#!/bin/sh\n", 10);
	expect_debug_file(&f, fd, NULL, NULL);
	cr_expect_eq(debug_file_open_shared(fd, EXE, &f.roots), -ENOENT);
	close(fd);
	expect_debug_file(&f, -1, NULL, NULL);
	for (size_t i = 0; i < 3; i++) {
		struct elf_builder b;

		elf_builder_init(&b);
		elf_builder_section(&b, ".gnu_debuglink", SHT_PROGBITS, 0, links[i],
				    strlen(links[i]));
		elf_builder_section(&b, ".gnu_debugaltlink", SHT_PROGBITS, 0, links[i],
				    strlen(links[i]));
		elf_builder_finish(&b);
		fd = elf_builder_memfd(b.bytes.data, b.bytes.len);
		expect_debug_file(&f, fd, NULL, NULL);
		cr_expect_eq(debug_file_open_shared(fd, EXE, &f.roots), -ENOENT);
		close(fd);
		elf_builder_deinit(&b);
	}
	teardown(&f);
}

/* ---- shared files ---- */

/* Put a debug file at @path that shares what @name holds. Returns a descriptor of it. */
static int put_sharing(const char *root, const char *path, const char *name)
{
	struct buf link = BUF_INIT;
	struct elf_builder b;
	int fd;

	buf_add(&link, name, strlen(name) + 1);
	buf_add(&link, ID, ID_LEN);
	elf_builder_init(&b);
	elf_builder_section(&b, ".gnu_debugaltlink", SHT_PROGBITS, 0, link.data, link.len);
	elf_builder_finish(&b);
	put(root, path, &b.bytes);
	fd = open(make_path(root, path), O_RDONLY | O_CLOEXEC);
	cr_assert_geq(fd, 0);
	elf_builder_deinit(&b);
	buf_deinit(&link);
	return fd;
}

static void expect_shared(const struct fixture *f, int fd, bool there, const char *what)
{
	char link[64], real[PATH_MAX];
	ssize_t n;
	int found;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, real, sizeof(real) - 1);
	cr_assert_gt(n, 0);
	real[n] = '\0';
	found = debug_file_open_shared(fd, real, &f->roots);

	cr_expect_eq(found >= 0, there, "%s", what);
	if (found >= 0)
		close(found);
}

Test(debug_file, shared)
{
	struct buf right = debug_bytes(ID, "right"), other = debug_bytes("\x12\x34other!", "id");
	struct fixture f;
	int absolute, relative;

	setup(&f);
	absolute = put_sharing(f.target, "/usr/lib/debug/a.debug", "/usr/lib/debug/.dwz/all");
	expect_shared(&f, absolute, false, "none");
	put(f.target, "/usr/lib/debug/.dwz/all", &other);
	expect_shared(&f, absolute, false, "another's");
	put(f.own, "/usr/lib/debug/.dwz/all", &right);
	expect_shared(&f, absolute, true, "by an absolute name");

	/* Relative to the file, of which only the path in rbpf's own root is known. */
	f.v[1] = "";
	relative = put_sharing(f.own, "/usr/lib/debug/x86/b.debug", "../.dwz/all");
	expect_shared(&f, relative, true, "by a relative name");
	expect_shared(&f, absolute, false, "no absolute name in that root");

	put(f.target, BY_ID, &right);
	expect_shared(&f, absolute, true, "by build-id");
	teardown(&f);
	close(absolute);
	close(relative);
	buf_deinit(&right);
	buf_deinit(&other);
}
