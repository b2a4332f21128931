/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * libFuzzer target: strings, arrays, classes, IDs, iseqs and method entries read from memory that
 * may hold anything. What is accepted must be sane; the rest is refused without a wild read or a
 * leak.
 *
 * The image is a real one, so that there is something to name; the input is a list of changes to
 * it: each 4 bytes say where (in the heap) and how many words, then come the words. A word whose
 * top byte is 0xa0 is an address in the heap. The first byte chooses the version.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "ruby/class.h"
#include "ruby/iseq.h"
#include "ruby/method.h"
#include "ruby/object.h"
#include "support/ruby_image.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

#define CHECK(cond)                                                                                \
	do {                                                                                       \
		if (!(cond)) {                                                                     \
			fprintf(stderr, "fuzz_ruby_names: %s\n", #cond);                           \
			abort();                                                                   \
		}                                                                                  \
	} while (0)

static const struct image_line lines[] = { { 0, 1 }, { 3, 2 }, { 60, 3 }, { 580, 4 } };

struct objects {
	uint64_t start; /* of what the input changes */
	uint64_t iseq, block, me, meta, string, array, id;
};

static struct objects build(struct ruby_image *img)
{
	struct image_iseq method = {
		.type = RUBY_ISEQ_METHOD, .label = "foo", .size = 700, .lines = lines, .n_lines = 4
	};
	struct image_iseq block = { .type = RUBY_ISEQ_RESCUE,
				    .label = "rescue in block in foo",
				    .base = "foo",
				    .real = "/real/x.rb" };
	uint64_t v[3] = { 8, 8, 8 }, foo;
	struct objects o;

	o.start = image_alloc(img, 8);
	foo = image_class(img, "Foo");
	o.meta = image_singleton(img, foo);
	o.me = image_ment(img, o.meta, "foo", IMAGE_CFUNC);
	o.id = image_id(img, "name");
	o.string = image_string_heap(img, "hello", 5);
	v[1] = o.string;
	o.array = image_array_embed(img, v, 3);
	block.local = o.iseq = image_iseq(img, &method);
	o.block = image_iseq(img, &block);
	return o;
}

static void change(struct ruby_image *img, uint64_t start, const uint8_t *data, size_t len)
{
	while (len >= 4) {
		uint32_t at = (uint32_t)(data[0] | data[1] << 8) * 8, n = data[2];

		data += 4;
		len -= 4;
		for (uint32_t i = 0; i < n && len >= 8; i++, data += 8, len -= 8) {
			uint64_t v;

			memcpy(&v, data, 8);
			if (v >> 56 == 0xa0)
				v = start + (v & 0xffff);
			if (image_find(img, start + at + i * 8, 8))
				image_put64(img, start + at + i * 8, v);
		}
	}
}

static void check_iseq(struct ruby_image *img, uint64_t addr)
{
	struct memory_span spans[RUBY_ISEQ_SPANS];
	struct ruby_iseq_id fresh;
	struct ruby_iseq q;

	if (ruby_iseq_read(&img->vm, addr, &q))
		return;
	CHECK(q.decoration && q.name && q.path);
	CHECK(q.n_lines <= q.size);
	CHECK(strlen(q.name) <= RUBY_STRING_MAX && strlen(q.path) <= RUBY_STRING_MAX);
	for (uint64_t pos = 0; pos <= q.size && pos < 3000; pos++)
		ruby_iseq_line(&q, q.encoded + pos * 8);
	ruby_iseq_line(&q, q.encoded + 8ull * q.size);
	ruby_iseq_check_spans(&img->vm, &q, &fresh, spans);
	memory_read_spans(&img->vm.mem, spans, RUBY_ISEQ_SPANS);
	for (size_t i = 0; i < RUBY_ISEQ_SPANS; i++)
		CHECK(spans[i].ok);
	CHECK(ruby_iseq_check(&img->vm, &q, &fresh));
	CHECK(ruby_iseq_words_check(&q));
	ruby_iseq_deinit(&q);
}

static void check_method(struct ruby_image *img, uint64_t addr, bool with_name)
{
	struct ruby_method m;

	if (ruby_method_read(&img->vm, addr, with_name, &m))
		return;
	CHECK(m.prefix && (m.name != NULL) == with_name);
	CHECK(ruby_method_words_check(&m, 0));
	ruby_method_deinit(&m);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct buf out = BUF_INIT;
	struct ruby_image *img;
	uint64_t value;
	struct objects o;

	if (!len)
		return 0;
	img = image_new(image_versions[data[0] % IMAGE_VERSIONS].minor);
	o = build(img);
	change(img, o.start, data + 1, len - 1);

	if (!ruby_string_read(&img->vm, o.string, &out))
		CHECK(out.len <= RUBY_STRING_MAX);
	for (uint64_t i = 0; i < 4; i++)
		ruby_array_get(&img->vm, o.array, i, &value);
	ruby_id_name(&img->vm, o.id, &out);
	ruby_owner_prefix(&img->vm, o.meta, &out);
	ruby_symbols_check(&img->vm, o.start);
	check_method(img, o.me, true);
	check_method(img, o.me, false);
	check_iseq(img, o.iseq);
	check_iseq(img, o.block);
	if (img->facts.class_form != IMAGE_CLASS_CLASSEXT)
		ruby_class_keys_learn(&img->vm, o.meta, img->vm.vm);
	buf_deinit(&out);
	image_free(img);
	return 0;
}
