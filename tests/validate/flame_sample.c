/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * A flame graph to look at, and to test, without a recording: a Rails application as it might be,
 * or what breaks pictures.
 *
 * usage: flame_sample [rails|awkward|deep] [icicle|inverted|module|hash|thread|process]… > out.svg
 */
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "base/buf.h"
#include "base/err.h"
#include "export/flame.h"
#include "support/profile_builder.h"

#define GEMS "/usr/local/bundle/gems/"
#define MAX_CALLEES 6

/* A function and what it calls, with weights; what is left of 100 is its own. */
struct function {
	enum frame_kind kind;
	const char *name;
	const char *file;
	unsigned int line;
	struct {
		int percent;
		const char *callee;
	} calls[MAX_CALLEES];
};

static const struct function rails[] = {
	{ FRAME_RUBY, "block in Puma::ThreadPool#spawn_thread", GEMS "puma-6.4.2/lib/puma/thread_pool.rb", 106, { { 100, "Puma::Server#process_client" } } },
	{ FRAME_RUBY, "Puma::Server#process_client", GEMS "puma-6.4.2/lib/puma/server.rb", 448, { { 93, "Puma::Request#handle_request" }, { 5, "Puma::Client#try_to_finish" } } },
	{ FRAME_RUBY, "Puma::Client#try_to_finish", GEMS "puma-6.4.2/lib/puma/client.rb", 150, { { 60, "Puma::HttpParser#execute" }, { 35, "BasicSocket#read_nonblock" } } },
	{ FRAME_CFUNC, "Puma::HttpParser#execute", "", 0, { { 0, "" } } },
	{ FRAME_RUBY, "BasicSocket#read_nonblock", "<internal:socket>", 22, { { 80, "BasicSocket#__read_nonblock" } } },
	{ FRAME_CFUNC, "BasicSocket#__read_nonblock", "", 0, { { 70, "do_syscall_64" } } },
	{ FRAME_RUBY, "Puma::Request#handle_request", GEMS "puma-6.4.2/lib/puma/request.rb", 49, { { 92, "Rails::Engine#call" }, { 5, "IO#write" } } },
	{ FRAME_CFUNC, "IO#write", "", 0, { { 85, "do_syscall_64" } } },
	{ FRAME_RUBY, "Rails::Engine#call", GEMS "railties-7.1.3/lib/rails/engine.rb", 530, { { 99, "ActionDispatch::HostAuthorization#call" } } },
	{ FRAME_RUBY, "ActionDispatch::HostAuthorization#call", GEMS "actionpack-7.1.3/lib/action_dispatch/middleware/host_authorization.rb", 131, { { 99, "Rack::Sendfile#call" } } },
	{ FRAME_RUBY, "Rack::Sendfile#call", GEMS "rack-3.0.9/lib/rack/sendfile.rb", 114, { { 99, "ActionDispatch::Executor#call" } } },
	{ FRAME_RUBY, "ActionDispatch::Executor#call", GEMS "actionpack-7.1.3/lib/action_dispatch/middleware/executor.rb", 12, { { 98, "ActiveSupport::Cache::Strategy::LocalCache::Middleware#call" } } },
	{ FRAME_RUBY, "ActiveSupport::Cache::Strategy::LocalCache::Middleware#call", GEMS "activesupport-7.1.3/lib/active_support/cache/strategy/local_cache_middleware.rb", 26, { { 99, "Rack::MethodOverride#call" } } },
	{ FRAME_RUBY, "Rack::MethodOverride#call", GEMS "rack-3.0.9/lib/rack/method_override.rb", 16, { { 97, "ActionDispatch::Cookies#call" }, { 2, "Rack::Request::Helpers#POST" } } },
	{ FRAME_RUBY, "Rack::Request::Helpers#POST", GEMS "rack-3.0.9/lib/rack/request.rb", 480, { { 60, "StringIO#read" } } },
	{ FRAME_CFUNC, "StringIO#read", "", 0, { { 20, "gc_sweep_step" } } },
	{ FRAME_RUBY, "ActionDispatch::Cookies#call", GEMS "actionpack-7.1.3/lib/action_dispatch/middleware/cookies.rb", 704, { { 90, "Rack::Session::Abstract::Persisted#call" }, { 7, "ActiveSupport::MessageEncryptor#decrypt_and_verify" } } },
	{ FRAME_RUBY, "ActiveSupport::MessageEncryptor#decrypt_and_verify", GEMS "activesupport-7.1.3/lib/active_support/message_encryptor.rb", 241, { { 70, "OpenSSL::Cipher#update" } } },
	{ FRAME_CFUNC, "OpenSSL::Cipher#update", "", 0, { { 90, "aes_gcm_dec_update" } } },
	{ FRAME_NATIVE, "aes_gcm_dec_update", "/usr/lib/x86_64-linux-gnu/libcrypto.so.3", 0, { { 0, "" } } },
	{ FRAME_RUBY, "Rack::Session::Abstract::Persisted#call", GEMS "rack-session-2.0.0/lib/rack/session/abstract/id.rb", 272, { { 98, "ActionDispatch::Routing::RouteSet#call" } } },
	{ FRAME_RUBY, "ActionDispatch::Routing::RouteSet#call", GEMS "actionpack-7.1.3/lib/action_dispatch/routing/route_set.rb", 878, { { 94, "ActionController::Metal#dispatch" }, { 5, "ActionDispatch::Journey::Router#find_routes" } } },
	{ FRAME_RUBY, "ActionDispatch::Journey::Router#find_routes", GEMS "actionpack-7.1.3/lib/action_dispatch/journey/router.rb", 108, { { 30, "Regexp#match" } } },
	{ FRAME_CFUNC, "Regexp#match", "", 0, { { 80, "match_at" } } },
	{ FRAME_NATIVE, "match_at", "/usr/local/lib/libruby.so.3.3.6", 0, { { 0, "" } } },
	{ FRAME_RUBY, "ActionController::Metal#dispatch", GEMS "actionpack-7.1.3/lib/action_controller/metal.rb", 248, { { 98, "AbstractController::Callbacks#process_action" } } },
	{ FRAME_RUBY, "AbstractController::Callbacks#process_action", GEMS "actionpack-7.1.3/lib/abstract_controller/callbacks.rb", 258, { { 44, "CartsController#show" }, { 30, "CheckoutController#quote" }, { 16, "Admin::ReportsController#index" }, { 8, "ApplicationController#authenticate" } } },
	{ FRAME_RUBY, "ApplicationController#authenticate", "/app/app/controllers/application_controller.rb", 31, { { 80, "User.find_by_token" } } },
	{ FRAME_RUBY, "User.find_by_token", "/app/app/models/user.rb", 18, { { 90, "ActiveRecord::Relation#load" } } },
	{ FRAME_RUBY, "CartsController#show", "/app/app/controllers/carts_controller.rb", 12, { { 36, "Cart#total" }, { 40, "ActionView::Template#render" }, { 20, "ActiveRecord::Relation#load" } } },
	{ FRAME_RUBY, "CheckoutController#quote", "/app/app/controllers/checkout_controller.rb", 27, { { 50, "Cart#total" }, { 20, "ShippingRates#lookup" }, { 24, "JSON::Ext::Generator::GeneratorMethods::Hash#to_json" } } },
	{ FRAME_CFUNC, "JSON::Ext::Generator::GeneratorMethods::Hash#to_json", "", 0, { { 55, "generate_json" }, { 10, "gc_mark_children" } } },
	{ FRAME_NATIVE, "generate_json", "/usr/local/lib/ruby/3.3.0/x86_64-linux/json/ext/generator.so", 0, { { 30, "convert_UTF8_to_JSON" } } },
	{ FRAME_NATIVE, "convert_UTF8_to_JSON", "/usr/local/lib/ruby/3.3.0/x86_64-linux/json/ext/generator.so", 0, { { 0, "" } } },
	{ FRAME_RUBY, "ShippingRates#lookup", "/app/app/services/shipping_rates.rb", 44, { { 80, "Net::HTTP#request" } } },
	{ FRAME_RUBY, "Net::HTTP#request", "/usr/local/lib/ruby/3.3.0/net/http.rb", 2361, { { 40, "IO#write" }, { 35, "BasicSocket#read_nonblock" } } },
	{ FRAME_RUBY, "Cart#total", "/app/app/models/cart.rb", 57, { { 94, "Array#each" } } },
	{ FRAME_RUBY, "Array#each", "<internal:array>", 49, { { 96, "block in Cart#total" } } },
	{ FRAME_RUBY, "block in Cart#total", "/app/app/models/cart.rb", 58, { { 40, "LineItem#price" }, { 25, "BigDecimal#*" }, { 15, "BigDecimal#+" } } },
	{ FRAME_CFUNC, "BigDecimal#*", "", 0, { { 60, "BigDecimal_mult" }, { 12, "gc_sweep_step" } } },
	{ FRAME_CFUNC, "BigDecimal#+", "", 0, { { 50, "BigDecimal_mult" } } },
	{ FRAME_NATIVE, "BigDecimal_mult", "/usr/local/lib/ruby/3.3.0/x86_64-linux/bigdecimal.so", 0, { { 20, "__memset_avx2_unaligned_erms" } } },
	{ FRAME_NATIVE, "__memset_avx2_unaligned_erms", "/usr/lib/x86_64-linux-gnu/libc.so.6", 0, { { 10, "asm_exc_page_fault" } } },
	{ FRAME_RUBY, "LineItem#price", "/app/app/models/line_item.rb", 21, { { 50, "Discount#apply" }, { 20, "Hash#fetch" } } },
	{ FRAME_RUBY, "Discount#apply", "/app/app/models/discount.rb", 9, { { 40, "Discount#apply" }, { 30, "Integer#<=>" }, { 12, "#<Class:Discount>.rules \"cached\" & cold" } } },
	{ FRAME_RUBY, "#<Class:Discount>.rules \"cached\" & cold", "/app/app/models/discount.rb", 3, { { 30, "Hash#fetch" } } },
	{ FRAME_CFUNC, "Integer#<=>", "", 0, { { 0, "" } } },
	{ FRAME_CFUNC, "Hash#fetch", "", 0, { { 30, "rb_hash_aref" } } },
	{ FRAME_NATIVE, "rb_hash_aref", "/usr/local/lib/libruby.so.3.3.6", 0, { { 0, "" } } },
	{ FRAME_RUBY, "Admin::ReportsController#index", "/app/app/controllers/admin/reports_controller.rb", 8, { { 60, "Report::Monthly#rows" }, { 30, "ActionView::Template#render" } } },
	{ FRAME_RUBY, "Report::Monthly#rows", "/app/app/models/report/monthly.rb", 15, { { 50, "ActiveRecord::Relation#load" }, { 40, "Enumerable#group_by" } } },
	{ FRAME_CFUNC, "Enumerable#group_by", "", 0, { { 85, "block in Report::Monthly#rows" } } },
	{ FRAME_RUBY, "block in Report::Monthly#rows", "/app/app/models/report/monthly.rb", 19, { { 50, "Time#strftime" }, { 25, "[unknown]" } } },
	{ FRAME_CFUNC, "Time#strftime", "", 0, { { 0, "" } } },
	{ FRAME_UNKNOWN, "[unknown]", "", 0, { { 0, "" } } },
	{ FRAME_RUBY, "ActionView::Template#render", GEMS "actionview-7.1.3/lib/action_view/template.rb", 257, { { 97, "_app_views_carts_show_html_erb___2391" } } },
	{ FRAME_RUBY, "_app_views_carts_show_html_erb___2391", "/app/app/views/carts/show.html.erb", 1, { { 45, "ActionView::Helpers::RenderingHelper#render" }, { 12, "ActiveSupport::SafeBuffer#concat" }, { 20, "ERB::Escape.html_escape" } } },
	{ FRAME_CFUNC, "ERB::Escape.html_escape", "", 0, { { 20, "gc_sweep_step" } } },
	{ FRAME_RUBY, "ActiveSupport::SafeBuffer#concat", GEMS "activesupport-7.1.3/lib/active_support/core_ext/string/output_safety.rb", 68, { { 40, "String#<<" } } },
	{ FRAME_CFUNC, "String#<<", "", 0, { { 50, "__memmove_avx_unaligned_erms" } } },
	{ FRAME_NATIVE, "__memmove_avx_unaligned_erms", "/usr/lib/x86_64-linux-gnu/libc.so.6", 0, { { 10, "asm_exc_page_fault" } } },
	{ FRAME_RUBY, "ActionView::Helpers::RenderingHelper#render", GEMS "actionview-7.1.3/lib/action_view/helpers/rendering_helper.rb", 29, { { 96, "block in ActionView::CollectionRenderer#render_collection" } } },
	{ FRAME_RUBY, "block in ActionView::CollectionRenderer#render_collection", GEMS "actionview-7.1.3/lib/action_view/renderer/collection_renderer.rb", 131, { { 98, "_app_views_carts__item_html_erb___877" } } },
	{ FRAME_RUBY, "_app_views_carts__item_html_erb___877", "/app/app/views/carts/_item.html.erb", 1, { { 20, "ERB::Escape.html_escape" }, { 20, "ActiveSupport::NumberHelper.number_to_currency" }, { 20, "I18n::Backend::Base#translate" }, { 12, "ActiveSupport::SafeBuffer#concat" } } },
	{ FRAME_RUBY, "ActiveSupport::NumberHelper.number_to_currency", GEMS "activesupport-7.1.3/lib/active_support/number_helper.rb", 53, { { 40, "BigDecimal#*" }, { 30, "String#gsub" } } },
	{ FRAME_CFUNC, "String#gsub", "", 0, { { 50, "match_at" }, { 20, "gc_sweep_step" } } },
	{ FRAME_RUBY, "I18n::Backend::Base#translate", GEMS "i18n-1.14.1/lib/i18n/backend/base.rb", 28, { { 30, "Hash#fetch" }, { 30, "String#gsub" } } },
	{ FRAME_RUBY, "ActiveRecord::Relation#load", GEMS "activerecord-7.1.3/lib/active_record/relation.rb", 689, { { 98, "ActiveRecord::Querying#_query_by_sql" } } },
	{ FRAME_RUBY, "ActiveRecord::Querying#_query_by_sql", GEMS "activerecord-7.1.3/lib/active_record/querying.rb", 62, { { 50, "ActiveRecord::ConnectionAdapters::PostgreSQL::DatabaseStatements#exec_no_cache" }, { 46, "ActiveRecord::Result#hash_rows" } } },
	{ FRAME_RUBY, "ActiveRecord::ConnectionAdapters::PostgreSQL::DatabaseStatements#exec_no_cache", GEMS "activerecord-7.1.3/lib/active_record/connection_adapters/postgresql_adapter.rb", 803, { { 90, "PG::Connection#exec_params" } } },
	{ FRAME_CFUNC, "PG::Connection#exec_params", "", 0, { { 60, "PQexecParams" }, { 20, "do_syscall_64" } } },
	{ FRAME_NATIVE, "PQexecParams", "/usr/lib/x86_64-linux-gnu/libpq.so.5", 0, { { 40, "pqParseInput3" }, { 45, "do_syscall_64" } } },
	{ FRAME_NATIVE, "pqParseInput3", "/usr/lib/x86_64-linux-gnu/libpq.so.5", 0, { { 0, "" } } },
	{ FRAME_RUBY, "ActiveRecord::Result#hash_rows", GEMS "activerecord-7.1.3/lib/active_record/result.rb", 148, { { 30, "Hash#[]=" }, { 25, "PG::Result#values" }, { 14, "gc_mark_children" } } },
	{ FRAME_CFUNC, "PG::Result#values", "", 0, { { 20, "gc_sweep_step" } } },
	{ FRAME_CFUNC, "Hash#[]=", "", 0, { { 30, "rb_hash_aset" }, { 15, "gc_mark_children" } } },
	{ FRAME_NATIVE, "rb_hash_aset", "/usr/local/lib/libruby.so.3.3.6", 0, { { 30, "gc_mark_children" } } },
	{ FRAME_GC, "[gc] sweeping", "", 0, { { 0, "" } } },
	{ FRAME_GC, "[gc] marking", "", 0, { { 0, "" } } },
	{ FRAME_KERNEL, "do_syscall_64", "", 0, { { 50, "tcp_sendmsg" }, { 30, "sock_read_iter" } } },
	{ FRAME_KERNEL, "tcp_sendmsg", "", 0, { { 60, "tcp_write_xmit" } } },
	{ FRAME_KERNEL, "tcp_write_xmit", "", 0, { { 50, "ip_queue_xmit" } } },
	{ FRAME_KERNEL, "ip_queue_xmit", "", 0, { { 0, "" } } },
	{ FRAME_KERNEL, "sock_read_iter", "", 0, { { 40, "copy_user_enhanced_fast_string" } } },
	{ FRAME_KERNEL, "copy_user_enhanced_fast_string", "", 0, { { 0, "" } } },
	{ FRAME_KERNEL, "asm_exc_page_fault", "", 0, { { 60, "clear_page_erms" } } },
	{ FRAME_KERNEL, "clear_page_erms", "", 0, { { 0, "" } } },
};

static const struct function *find(const char *name)
{
	if (!strcmp(name, "gc_sweep_step"))
		name = "[gc] sweeping";
	if (!strcmp(name, "gc_mark_children"))
		name = "[gc] marking";
	for (size_t i = 0; i < ARRAY_SIZE(rails); i++)
		if (!strcmp(rails[i].name, name))
			return &rails[i];
	return NULL;
}

/* The same on every machine. */
static unsigned int rnd(unsigned int below)
{
	static uint64_t state = 88172645463325252ull;

	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return (unsigned int)(state % below);
}

static uint32_t random_stack(struct profile_builder *b, uint32_t stack, const struct function *f)
{
	while (f) {
		int dice = (int)rnd(100);
		const struct function *next = NULL;

		stack = builder_stack(b, stack,
				      builder_frame(b, f->kind, f->name, f->file,
						    f->line ? f->line + 1 : 0, f->line));
		for (size_t i = 0; i < MAX_CALLEES && f->calls[i].percent; i++) {
			if (dice < f->calls[i].percent) {
				next = find(f->calls[i].callee);
				break;
			}
			dice -= f->calls[i].percent;
		}
		f = next;
	}
	return stack;
}

static void build_rails(struct profile_builder *b)
{
	uint32_t threads[6];

	for (size_t i = 0; i < ARRAY_SIZE(threads); i++) {
		char name[32];
		uint32_t process = i % 3 ? b->profile.n_processes - 1u :
					   builder_process(b, 4242 + (uint32_t)i, "puma: cluster worker [shop]");

		snprintf(name, sizeof(name), "puma srv tp %03zu", i % 3 + 1);
		threads[i] = builder_thread(b, process, 4250 + (uint32_t)i, name);
	}
	for (size_t i = 0; i < 11876; i++) {
		uint32_t thread = threads[rnd(6)];
		uint32_t stack;
		unsigned int dice = rnd(1000);

		stack = builder_stack(b, 0, builder_frame(b, FRAME_RUBY, "Thread.new", "<internal:thread>", 0, 0));
		if (dice < 12) {
			uint32_t native = builder_frame(b, FRAME_NATIVE, "rb_thread_schedule", "/usr/local/lib/libruby.so.3.3.6", 0, 0);

			builder_sample(b, thread, builder_stack(b, stack, native), 10000000 + rnd(1000000), 0);
		} else {
			stack = random_stack(b, stack, &rails[0]);
			builder_sample(b, thread, stack, 9500000 + rnd(1000000),
				       dice == 500 ? SAMPLE_TRUNCATED : dice < 16 ? SAMPLE_UNRESOLVED : 0);
		}
		b->now -= BUILDER_PERIOD - 2526000;
	}
}

static void build_awkward(struct profile_builder *b)
{
	static const char *const paths[] = {
		"<main>|Foo", "<main>|Foo#bar", "<main>|Foo|x", "<main>|Foo.baz",
		"<main>|block (2 levels) in <top (required)>", "<main>|Integer#<=>",
		"<main>|#<Class:Foo>.build \"x\" & y", "<main>|Foo#a;b", "<main>|Worker 12",
		"<main>|Worker 12|inner", "<main>|", "<main>||below the unnamed",
		"<main>|Größe#straße|日本語#メソッド|💎#🔥", "<main>|a  b\tc|]]>", "<main>|&amp;<![CDATA[",
		"<main>|bad \xff\xfe\x01 bytes", "<main>|Very::Long::Namespace::Indeed#and_a_method_name_that_goes_on",
	};
	uint32_t thread = builder_thread(b, builder_process(b, 1, "/opt/my app/bin/ruby x.rb"), 1, "ruby: puma w 1");
	uint32_t stack = builder_path(b, "<main>");
	char *huge = malloc(65537);

	for (size_t i = 0; i < ARRAY_SIZE(paths); i++)
		builder_add(b, thread, builder_path(b, paths[i]), i + 1);
	for (size_t i = 0; i < 200; i++)
		stack = builder_stack(b, stack, builder_frame(b, FRAME_RUBY, "Tree#walk", "(eval at /app/a b.rb:3)", 5, 4));
	builder_add(b, thread, stack, 20);
	memset(huge, 'x', 65536);
	huge[65536] = 0;
	builder_add(b, thread, builder_path(b, huge), 12);
	free(huge);
	builder_add(b, thread, 0, 2);
	b->profile.totals.lost = 3;
	b->profile.complete = false;
}

static void build_deep(struct profile_builder *b)
{
	uint32_t thread = builder_thread(b, builder_process(b, 7, "ruby deep.rb"), 7, "ruby");
	uint32_t stack = 0;

	for (size_t i = 0; i < 10000; i++) {
		stack = builder_stack(b, stack, builder_frame(b, FRAME_RUBY, i % 2 ? "Deep#odd" : "Deep#even", "/app/deep.rb", 3, i % 2 ? 2 : 9));
		if (i % 100 == 99)
			builder_add(b, thread, stack, 1);
	}
}

int main(int argc, char **argv)
{
	struct profile_builder b;
	struct flame_options opts = { .command = "flame_sample" };
	struct buf out = BUF_INIT;
	struct err err = { 0 };
	const char *what = argc > 1 ? argv[1] : "rails";
	int r;

	builder_init(&b);
	for (int i = 2; i < argc; i++) {
		opts.icicle |= !strcmp(argv[i], "icicle");
		opts.inverted |= !strcmp(argv[i], "inverted");
		if (!strcmp(argv[i], "module"))
			opts.color = FLAME_COLOR_MODULE;
		if (!strcmp(argv[i], "hash"))
			opts.color = FLAME_COLOR_HASH;
		if (!strcmp(argv[i], "thread"))
			opts.split = TREE_SPLIT_THREAD;
		if (!strcmp(argv[i], "process"))
			opts.split = TREE_SPLIT_PROCESS;
	}
	if (!strcmp(what, "awkward"))
		build_awkward(&b);
	else if (!strcmp(what, "deep"))
		build_deep(&b);
	else
		build_rails(&b);
	builder_finish(&b);
	r = flame_render(&b.profile, &opts, &out, &err);
	if (r)
		fprintf(stderr, "flame_sample: %s\n", err.msg);
	else
		fwrite(out.data, 1, out.len, stdout);
	buf_deinit(&out);
	builder_deinit(&b);
	return r != 0;
}
