/* SPDX-License-Identifier: GPL-2.0-only */
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/attributes.h"
#include "base/buf.h"
#include "export/protobuf.h"
#include "target/maps.h"
#include "target/memory.h"
#include "target/otel_context.h"

/* ---- payloads ---- */

/* A KeyValue with @value, a whole AnyValue, as field @number of @to. */
static void pair(struct buf *to, uint32_t number, const char *key, const void *value, size_t len)
{
	struct buf kv _cleanup_buf_ = BUF_INIT;

	protobuf_bytes(&kv, 1, key, strlen(key));
	protobuf_bytes(&kv, 2, value, len);
	protobuf_bytes(to, number, buf_str(&kv), kv.len);
}

static void text(struct buf *to, uint32_t number, const char *key, const char *value)
{
	struct buf any _cleanup_buf_ = BUF_INIT;

	protobuf_bytes(&any, 1, value, strlen(value));
	pair(to, number, key, buf_str(&any), any.len);
}

/* A context of one attribute of the resource. */
static void context_of(struct buf *to, const char *key, const char *value)
{
	struct buf resource _cleanup_buf_ = BUF_INIT;

	text(&resource, 1, key, value);
	protobuf_bytes(to, 1, buf_str(&resource), resource.len);
}

static const char *parse(const struct buf *payload, struct buf *out)
{
	buf_reset(out);
	cr_assert_eq(otel_context_parse(buf_str(payload), payload->len, out), 0);
	return buf_str(out);
}

Test(otel_context, values_of_each_type)
{
	struct buf resource = BUF_INIT, payload = BUF_INIT, out = BUF_INIT;

	text(&resource, 1, "service.name", "shop, \x1b[31mred");
	pair(&resource, 1, "bool", "\x10\x01", 2);
	pair(&resource, 1, "int", "\x18\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11);
	pair(&resource, 1, "double", "\x21\0\0\0\0\0\0\xf8\x3f", 9);
	pair(&resource, 1, "array", "\x2a\x03\x0a\x01x", 5);
	pair(&resource, 1, "bytes", "\x3a\x01x", 3);
	pair(&resource, 1, "nothing", "", 0);
	protobuf_u64(&resource, 2, 5);
	text(&payload, 2, "service.name", "a second one of this key");
	text(&payload, 2, "later", "yes");
	protobuf_bytes(&payload, 1, buf_str(&resource), resource.len);
	protobuf_bytes(&payload, 9, "of tomorrow", 11);
	cr_expect_str_eq(parse(&payload, &out), "service.name=shop%2C \uFFFD[31mred,bool=true,"
						"int=-2,double=1.5,later=yes");
	buf_deinit(&resource);
	buf_deinit(&payload);
	buf_deinit(&out);
}

Test(otel_context, limits)
{
	struct buf payload = BUF_INIT, out = BUF_INIT, value = BUF_INIT;
	char key[OTEL_MAX_KEY + 2] = "", name[16];
	size_t n = 0;
	const char *c;

	memset(key, 'k', OTEL_MAX_KEY + 1);
	buf_add_repeat(&value, 'v', OTEL_MAX_VALUE + 1);
	text(&payload, 2, key, "its key is too long");
	text(&payload, 2, key + 1, buf_str(&value));
	parse(&payload, &out);
	cr_expect_eq(out.len, OTEL_MAX_KEY + 1 + OTEL_MAX_VALUE);
	for (int i = 0; i < 2 * OTEL_MAX_ATTRIBUTES; i++) {
		snprintf(name, sizeof(name), "n%d", i);
		text(&payload, 2, name, "");
	}
	for (c = parse(&payload, &out); *c; c++)
		n += *c == '=';
	cr_expect_eq(n, OTEL_MAX_ATTRIBUTES);
	/* Those that do not fit are left out, a short one behind them is not. */
	buf_reset(&payload);
	for (int i = 0; i < 2 * OTEL_MAX_TEXT / OTEL_MAX_VALUE; i++) {
		snprintf(name, sizeof(name), "n%02d", i);
		text(&payload, 2, name, buf_str(&value));
	}
	text(&payload, 2, "z", "short");
	cr_expect(strstr(parse(&payload, &out), "v,z=short"));
	cr_expect(out.len <= OTEL_MAX_TEXT && out.len > OTEL_MAX_TEXT - OTEL_MAX_VALUE - 8);
	buf_deinit(&payload);
	buf_deinit(&out);
	buf_deinit(&value);
}

/* Cut anywhere it is refused or a shorter one, and never read beyond its end (ASan). */
Test(otel_context, cut_and_malformed)
{
	static const char *const bad[] = { "\x0a",
					   "\x0a\x7f",
					   "\x0b",
					   "\x0c",
					   "\x0f",
					   "\x09\x01",
					   "\x0d\x01",
					   "\x12\x02\x0a\x05",
					   "\x0a\x02\x0a\x05",
					   "\x12\x06\x0a\x01k\x12\x01\x0a",
					   "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01" };
	struct buf payload = BUF_INIT, out = BUF_INIT;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		cr_expect_eq(otel_context_parse(bad[i], strlen(bad[i]), &out), -EBADMSG, "%zu", i);
		cr_expect_eq(out.len, 0, "%zu", i);
	}
	context_of(&payload, "service.name", "shop");
	text(&payload, 2, "k", "v");
	for (size_t len = 0; len < payload.len; len++) {
		_cleanup_free_ char *part = malloc(len);
		int r;

		memcpy(part, buf_str(&payload), len);
		buf_reset(&out);
		r = otel_context_parse(part, len, &out);
		cr_expect(r == -EBADMSG ? !out.len : !r, "%zu", len);
		cr_expect(r || !out.len || !strcmp(buf_str(&out), "service.name=shop"), "%zu", len);
	}
	buf_deinit(&payload);
	buf_deinit(&out);
}

/* ---- the mapping ---- */

struct header {
	char signature[8];
	uint32_t version, size;
	uint64_t published, payload;
};

/* Publish in this process as OTEP 4719 says; NULL: the kernel has no memfd. */
static struct header *publish(const struct buf *payload)
{
	int fd = memfd_create("OTEL_CTX", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	struct header *h;

	cr_assert_geq(fd, 0);
	cr_assert_eq(ftruncate(fd, 4096), 0);
	h = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
	close(fd);
	cr_assert_neq(h, MAP_FAILED);
	*h = (struct header) { .version = 2,
			       .size = (uint32_t)payload->len,
			       .payload = (uintptr_t)payload->data,
			       .published = 12345 };
	memcpy(h->signature, "OTEL_CTX", 8);
	return h;
}

static int read_own(struct buf *out)
{
	const struct memory mem = memory_process(getpid());
	struct maps maps = MAPS_INIT;
	int r;

	buf_reset(out);
	cr_assert_eq(maps_read(getpid(), &maps, NULL), 0);
	r = otel_context_read(&mem, &maps, out);
	maps_deinit(&maps);
	return r;
}

Test(otel_context, read_of_a_live_process)
{
	struct buf payload = BUF_INIT, large = BUF_INIT, out = BUF_INIT;
	struct header *h;

	cr_expect_eq(read_own(&out), -ENOENT, "nothing is published");
	context_of(&payload, "service.name", "shop");
	h = publish(&payload);
	cr_expect_eq(read_own(&out), 0);
	cr_expect_str_eq(buf_str(&out), "service.name=shop");
	h->published = 0;
	cr_expect_eq(read_own(&out), -EAGAIN, "it is being changed");
	h->published = 2;
	while (large.len <= OTEL_MAX_PAYLOAD)
		context_of(&large, "service.name", "shop");
	h->size = (uint32_t)large.len;
	h->payload = (uintptr_t)large.data;
	cr_expect_eq(read_own(&out), -EBADMSG, "too large, though well-formed");
	h->size = 0;
	cr_expect_eq(read_own(&out), 0);
	cr_expect_eq(out.len, 0);
	h->size = 8;
	h->payload = 8;
	cr_expect_eq(read_own(&out), -EAGAIN, "no memory is there");
	h->version = 3;
	cr_expect_eq(read_own(&out), -ENOENT);
	h->version = 2;
	h->signature[7] = 'x';
	cr_expect_eq(read_own(&out), -ENOENT);
	cr_expect_eq(out.len, 0);
	publish(&payload);
	cr_expect_eq(read_own(&out), 0, "of two mappings the one that is a context");
	buf_deinit(&payload);
	buf_deinit(&large);
	buf_deinit(&out);
}

/* A publisher that changes its context between the reads of the header and of what follows. */
static struct header changing;
static char payloads[2][64];
static unsigned int changes;

static void read_and_change(const struct memory *mem, struct memory_span *spans, size_t n)
{
	(void)mem;
	for (size_t i = 0; i < n; i++) {
		memcpy(spans[i].dst, (const void *)(uintptr_t)spans[i].addr, spans[i].len);
		spans[i].ok = true;
	}
	if (changes) {
		changing.published++;
		memcpy(payloads[0], payloads[1], sizeof(payloads[0]));
		changes--;
	}
}

Test(otel_context, changed_while_it_is_read)
{
	const struct memory mem = { .read_spans = read_and_change };
	struct maps maps = { .contexts = { (uintptr_t)&changing }, .n_contexts = 1 };
	struct buf payload = BUF_INIT, out = BUF_INIT;

	context_of(&payload, "a", "new");
	memcpy(payloads[1], payload.data, payload.len);
	changing = (struct header) { .version = 2,
				     .size = (uint32_t)payload.len,
				     .payload = (uintptr_t)payloads[0],
				     .published = 1 };
	memcpy(changing.signature, "OTEL_CTX", 8);
	memcpy(payloads[0], payload.data, payload.len);
	memcpy(memmem(payloads[0], payload.len, "new", 3), "old", 3);
	changes = 1;
	cr_expect_eq(otel_context_read(&mem, &maps, &out), 0);
	cr_expect_str_eq(buf_str(&out), "a=new", "neither the old one nor a mixture");
	buf_reset(&out);
	changes = 1000;
	cr_expect_eq(otel_context_read(&mem, &maps, &out), -EAGAIN);
	cr_expect_gt(changes, 900, "it is given up");
	buf_deinit(&payload);
	buf_deinit(&out);
}

Test(otel_context, names_of_mappings)
{
	static const char lines[] = "1000-2000 rw-p 00000000 00:01 5   /memfd:OTEL_CTX (deleted)\n"
				    "2000-3000 rw-p 00000000 00:00 0   [anon:OTEL_CTX]\n"
				    "3000-4000 rw-p 00000000 00:00 0   [anon_shmem:OTEL_CTX]\n"
				    "4000-5000 rw-p 00000000 00:00 0   [anon:OTEL_CT]\n"
				    "5000-5800 rw-p 00000000 00:00 0   /tmp/memfd:OTEL_CTX\n"
				    "5800-6000 rw-p 00000000 00:01 6   /memfd:OTEL_C (deleted)\n"
				    "6000-7000 rw-p 00000000 00:00 0   [anon:OTEL_CTX]\n"
				    "7000-8000 rw-p 00000000 00:00 0   [anon:OTEL_CTX]\n";
	struct maps maps = MAPS_INIT;

	cr_assert_eq(maps_parse(lines, &maps), 0);
	cr_assert_eq(maps.n_contexts, MAPS_MAX_CONTEXTS);
	cr_expect(maps.contexts[0] == 0x1000 && maps.contexts[1] == 0x2000);
	cr_expect(maps.contexts[2] == 0x3000 && maps.contexts[3] == 0x6000);
	maps_deinit(&maps);
}
