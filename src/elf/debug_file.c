/* SPDX-License-Identifier: GPL-2.0-only */
#include "elf/debug_file.h"

#include <elfutils/libdwelf.h>
#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "base/cleanup.h"
#include "base/hex.h"
#include "target/target_file.h"

#define DEBUG_DIR "/usr/lib/debug"
#define MAX_ID	  64	       /* bytes of a build-id; it has 20, or 16 */
#define MAX_BYTES (1ull << 30) /* of a file; dwarf.h reads no larger ones either */

/* What names a file and what proves that it is the one. */
struct debug_id {
	unsigned char id[MAX_ID];
	size_t id_len;	     /* 0: none */
	char link[NAME_MAX]; /* "": none */
	uint32_t crc;	     /* with link */
};

struct lookup {
	const struct debug_id *id;
	const struct debug_roots *roots;
	const char *root;
	uid_t owner;	    /* of the file that the debug file is looked for */
	char *where, *real; /* of size bytes; NULL: not asked for */
	size_t size;
};

static void cleanup_elf(Elf **elf)
{
	elf_end(*elf);
}
#define _cleanup_elf_ _cleanup_(cleanup_elf)

/* Read, not mapped: the file may be a hostile target's, and shrink meanwhile. */
static Elf *elf_open(int fd)
{
	struct stat st;

	if (fstat(fd, &st) || (uint64_t)st.st_size > MAX_BYTES)
		return NULL;
	elf_version(EV_CURRENT);
	return elf_begin(fd, ELF_C_READ, NULL);
}

static Elf_Scn *find_section(Elf *elf, const char *section, GElf_Shdr *shdr)
{
	Elf_Scn *scn = NULL;
	const char *name;
	size_t names;

	if (elf_getshdrstrndx(elf, &names))
		return NULL;
	while ((scn = elf_nextscn(elf, scn))) {
		name = gelf_getshdr(scn, shdr) ? elf_strptr(elf, names, shdr->sh_name) : NULL;
		if (name && !strcmp(name, section))
			return scn;
	}
	return NULL;
}

static void set_id(struct debug_id *w, const void *id, ssize_t len)
{
	if (len < 2 || len > MAX_ID)
		return;
	memcpy(w->id, id, (size_t)len);
	w->id_len = (size_t)len;
}

/* ---- is it the one? ---- */

static bool crc_of(int fd, uint32_t *ret)
{
	unsigned char chunk[65536];
	uint64_t pos = 0;
	uLong crc = 0;
	ssize_t n;

	while ((n = pread(fd, chunk, sizeof(chunk), (off_t)pos)) > 0) {
		crc = crc32(crc, chunk, (uInt)n);
		pos += (uint64_t)n;
		if (pos > MAX_BYTES)
			return false;
	}
	*ret = (uint32_t)crc;
	return n == 0;
}

/*
 * A build-id proves as much as a checksum of the file and costs nothing; tools that rewrite a debug
 * file leave it alone. But the stripped file itself has it too, so there must also be something to
 * read.
 */
static bool matches_id(const struct debug_id *w, int fd)
{
	_cleanup_elf_ Elf *elf = elf_open(fd);
	GElf_Shdr shdr;
	const void *id;
	uint32_t crc;
	ssize_t len;

	if (!elf || elf_kind(elf) != ELF_K_ELF || !find_section(elf, ".debug_info", &shdr) ||
	    shdr.sh_type == SHT_NOBITS)
		return false;
	len = dwelf_elf_gnu_build_id(elf, &id);
	if (w->id_len && len > 0)
		return w->id_len == (size_t)len && !memcmp(w->id, id, w->id_len);
	return w->link[0] && crc_of(fd, &crc) && crc == w->crc;
}

/* The path of @fd as its mount namespace has it, "" if it is not known. */
static void path_of(int fd, char *ret, size_t size)
{
	char link[64];
	ssize_t n;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	n = readlink(link, ret, size - 1);
	ret[n > 0 ? n : 0] = '\0';
}

int debug_file_open_regular(void *arg, uid_t owner, const char *root, const char *path, char *real,
			    size_t size)
{
	const struct target_file_request req = {
		.kind = TARGET_FILE_DEBUG, .root = root, .owner = owner, .path = path
	};
	int fd = target_file_open(&req);

	(void)arg;
	if (fd >= 0)
		path_of(fd, real, size);
	return fd;
}

static uid_t owner_of(int fd)
{
	struct stat st;

	return fstat(fd, &st) ? (uid_t)-1 : st.st_uid;
}

/* Try one path, within the root. */
__attribute__((format(printf, 2, 3))) static int try_path(const struct lookup *l, const char *fmt,
							  ...)
{
	char path[PATH_MAX], real[PATH_MAX] = "";
	_cleanup_close_ int fd = -1;
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(path, sizeof(path), fmt, ap);
	va_end(ap);
	if (n < 0 || (size_t)n >= sizeof(path))
		return -ENOENT;
	fd = l->roots->open(l->roots->arg, l->owner, l->root, path, real, sizeof(real));
	if (fd < 0 || !matches_id(l->id, fd))
		return -ENOENT;
	if (l->where)
		snprintf(l->where, l->size, "%s%s", l->root, path);
	if (l->real)
		snprintf(l->real, l->size, "%s", real);
	return take_fd(&fd);
}

static int try_build_id(const struct lookup *l)
{
	const struct debug_id *w = l->id;
	char hex[2 * MAX_ID + 1];

	if (!w->id_len)
		return -ENOENT;
	hex_of_bytes(w->id, w->id_len, hex);
	return try_path(l, DEBUG_DIR "/.build-id/%.2s/%s.debug", hex, hex + 2);
}

/* ---- an ELF file's debug file ---- */

static void read_debug_id(int fd, struct debug_id *w)
{
	_cleanup_elf_ Elf *elf = elf_open(fd);
	const char *link;
	GElf_Word crc;
	const void *id;
	ssize_t len;

	if (!elf || elf_kind(elf) != ELF_K_ELF)
		return;
	len = dwelf_elf_gnu_build_id(elf, &id);
	set_id(w, id, len);
	link = dwelf_elf_gnu_debuglink(elf, &crc);
	if (!link || strchr(link, '/') || strlen(link) >= sizeof(w->link))
		return;
	strcpy(w->link, link);
	w->crc = crc;
}

static int try_link(const struct lookup *l, const char *path)
{
	const char *slash = strrchr(path, '/'), *link = l->id->link;
	int dir = slash ? (int)(slash - path) : 0;
	int fd;

	if (!link[0])
		return -ENOENT;
	fd = try_path(l, "%.*s/%s", dir, path, link);
	if (fd < 0)
		fd = try_path(l, "%.*s/.debug/%s", dir, path, link);
	if (fd < 0)
		fd = try_path(l, DEBUG_DIR "%.*s/%s", dir, path, link);
	return fd;
}

int debug_file_open(int fd, const char *path, const struct debug_roots *roots, char *where,
		    char *real, size_t size)
{
	struct debug_id w = { 0 };
	struct lookup l = { .id = &w,
			    .roots = roots,
			    .owner = owner_of(fd),
			    .where = where,
			    .real = real,
			    .size = size };
	int found = -ENOENT;
	size_t i;

	read_debug_id(fd, &w);
	for (i = 0; i < roots->n && found < 0; i++) {
		l.root = roots->v[i];
		found = try_build_id(&l);
		if (found < 0)
			found = try_link(&l, path);
	}
	return found;
}

/* ---- a file that debug files share ---- */

/* .gnu_debugaltlink: the name, a NUL and the build-id. */
static void read_shared(int fd, struct debug_id *w, char *name, size_t size)
{
	_cleanup_elf_ Elf *elf = elf_open(fd);
	Elf_Data *data;
	GElf_Shdr shdr;
	Elf_Scn *scn;
	size_t len;

	scn = elf ? find_section(elf, ".gnu_debugaltlink", &shdr) : NULL;
	data = scn ? elf_getdata(scn, NULL) : NULL;
	if (!data || !data->d_buf)
		return;
	len = strnlen(data->d_buf, data->d_size);
	if (len >= size || len == data->d_size)
		return;
	memcpy(name, data->d_buf, len + 1);
	set_id(w, (char *)data->d_buf + len + 1, (ssize_t)(data->d_size - len - 1));
}

int debug_file_open_shared(int fd, const char *real, const struct debug_roots *roots)
{
	struct debug_id w = { 0 };
	struct lookup l = { .id = &w, .roots = roots, .owner = owner_of(fd) };
	const char *slash = strrchr(real, '/');
	int dir = slash ? (int)(slash - real) : 0;
	char name[PATH_MAX] = "";
	int found = -ENOENT;
	size_t i;

	read_shared(fd, &w, name, sizeof(name));
	if (!w.id_len)
		return -ENOENT;
	for (i = 0; i < roots->n && found < 0; i++) {
		l.root = roots->v[i];
		found = try_build_id(&l);
		if (found < 0)
			found = name[0] == '/' ? try_path(&l, "%s", name)
					       : try_path(&l, "%.*s/%s", dir, real, name);
	}
	return found;
}
