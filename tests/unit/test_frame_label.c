/* SPDX-License-Identifier: GPL-2.0-only */
/* Labels of templates and attributes; names as Rails 4.2 to 8.1, Tilt 1.4 to 2.7 make them. */
#include <criterion/criterion.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/buf.h"
#include "profile/frame_label.h"
#include "support/profile_builder.h"

struct label_case {
	const char *name, *file, *label; /* label NULL: the name */
};

static void check(const struct label_case *c)
{
	_cleanup_buf_ struct buf out = BUF_INIT;
	bool made;

	buf_addstr(&out, "^");
	made = frame_label(FRAME_RUBY, c->name, c->file, &out);
	cr_expect_eq(made, c->label != NULL, "%s in %s became %s", c->name, c->file, buf_str(&out));
	cr_expect_str_eq(buf_str(&out) + 1, c->label ? c->label : "", "%s in %s", c->name, c->file);
	cr_expect_eq(buf_str(&out)[0], '^', "it is appended");
}

static void check_all(const struct label_case *cases, size_t n)
{
	for (size_t i = 0; i < n; i++)
		check(&cases[i]);
}

Test(frame_label, action_view)
{
	static const struct label_case cases[] = {
		{ "_app_views_orders__order_html_erb__3472281419498755117_9700",
		  "/srv/shop/app/views/orders/_order.html.erb",
		  "app/views/orders/_order.html.erb" },
		/* a negative hash */
		{ "_app_views_orders__order_html_erb___3287421554183191233_840",
		  "/srv/shop/app/views/orders/_order.html.erb",
		  "app/views/orders/_order.html.erb" },
		{ "block in _app_views_orders_list_html_haml__125628335672719219_900",
		  "/srv/shop/app/views/orders/list.html.haml",
		  "block in app/views/orders/list.html.haml" },
		{ "block (2 levels) in _app_views_orders_list_xml_builder__1_2",
		  "/srv/shop/app/views/orders/list.xml.builder",
		  "block (2 levels) in app/views/orders/list.xml.builder" },
		{ "rescue in block in _app_views_a_json_jbuilder__1_2",
		  "/srv/shop/app/views/a.json.jbuilder",
		  "rescue in block in app/views/a.json.jbuilder" },
		/* before Rails 6.0 */
		{ "ensure in ActionView::CompiledTemplates#_app_views_a_slim__1_70201",
		  "/srv/shop/app/views/a.slim", "ensure in app/views/a.slim" },
		/* as many characters as underscores: capitals, digits, hyphens, not only ASCII */
		{ "_app_views____dmin_____enu__html_erb__1_2",
		  "/srv/shop/app/views/v2/Admin-42/Menu1.html.erb", NULL },
		{ "_app_views_v__A__dmin_______enu__html_erb__1_2",
		  "/srv/shop/app/views/v2/Admin-42/Menu1.html.erb", NULL },
		{ "_app_views_v___dmin_____enu__html_erb__1_2",
		  "/srv/shop/app/views/v2/Admin-42/Menu1.html.erb",
		  "app/views/v2/Admin-42/Menu1.html.erb" },
		{ "_app_views_caf__men__html_erb__1_2",
		  "/srv/caf\xc3\xa9/app/views/caf\xc3\xa9/men\xe2\x82\xac.html.erb",
		  "app/views/caf\xc3\xa9/men\xe2\x82\xac.html.erb" },
		/* the end of the path is written as what could be a sign */
		{ "_app_views_song_mp___1_2", "/srv/shop/app/views/song.mp3",
		  "app/views/song.mp3" },
		{ "_app_views_song_mp____1_2", "/srv/shop/app/views/song.mp3",
		  "app/views/song.mp3" },
		{ "_inline_template__2171862997796609069_1240", "inline template",
		  "inline template" },
		{ "_app_views_a_erb__1_2", "app/views/a.erb", "app/views/a.erb" },
		{ "_app_views_a_erb__1_2", "C:/shop/app/views/a.erb", "app/views/a.erb" },
		{ "_____app_views_a_erb__1_2", "C:\\app\\views\\a.erb", NULL },
		{ "____app_views_a_erb__1_2", "C:\\app\\views\\a.erb", "C:\\app\\views\\a.erb" },
		/* no app/views; not below Rails.root, or no Rails */
		{ "_lib_emails_hello_text_erb__1_2", "/srv/shop/lib/emails/hello.text.erb",
		  "lib/emails/hello.text.erb" },
		{ "__opt_views_a_erb__1_2", "/opt/views/a.erb", "/opt/views/a.erb" },
	};

	check_all(cases, ARRAY_SIZE(cases));
}

Test(frame_label, templates_of_gems_and_engines)
{
	static const struct label_case cases[] = {
		{ "__usr_lib_gems_devise_______app_views_devise_new_html_erb__1_2",
		  "/usr/lib/gems/devise-4.9.3/app/views/devise/new.html.erb",
		  "devise-4.9.3/app/views/devise/new.html.erb" },
		{ "_vendor_bundle_ruby_______gems_a_____app_views_b_erb__1_2",
		  "/srv/shop/vendor/bundle/ruby/3.1.0/gems/a-1.0/app/views/b.erb",
		  "a-1.0/app/views/b.erb" },
		{ "__b_bundler_gems_a__f_____b__b_erb__1_2", "/b/bundler/gems/a-0f1e23bc/b.erb",
		  NULL },
		{ "__b_bundler_gems_a__f_e__bc_b_erb__1_2", "/b/bundler/gems/a-0f1e23bc/b.erb",
		  "a-0f1e23bc/b.erb" },
		{ "_engines_billing_app_views_b_erb__1_2",
		  "/srv/shop/engines/billing/app/views/b.erb", "engines/billing/app/views/b.erb" },
		{ "__srv_gems_a_____gems_b_____c_erb__1_2", "/srv/gems/a-1.0/gems/b-2.0/c.erb",
		  "b-2.0/c.erb" },
		/* where the application is says nothing of its templates */
		{ "_app_views_b_erb__1_2", "/usr/lib/gems/a-1.0/test/dummy/app/views/b.erb",
		  "app/views/b.erb" },
		{ "_gems_b_erb__1_2", "/srv/shop/gems/b.erb", "gems/b.erb" },
		{ "__srv_gems_b_erb__1_2", "/srv/gems/b.erb", "/srv/gems/b.erb" },
		{ "__srv_gems__b_erb__1_2", "/srv/gems//b.erb", "/srv/gems//b.erb" },
	};

	check_all(cases, ARRAY_SIZE(cases));
}

Test(frame_label, names_that_only_look_like_templates)
{
	static const struct label_case cases[] = {
		/* the file says another thing, or nothing */
		{ "_app_views_orders__order_html_erb__3472281419498755117_9700", "", NULL },
		{ "_app_views_orders__order_html_erb__3472281419498755117_9700", "/srv/a.rb",
		  NULL },
		{ "_app_views_a_erb__1_2", "/srv/shop/myapp/views/a.erb", NULL },
		{ "_app_views_a_erb__1_2", "pp/views/a.erb", NULL },
		{ "_app_views_a_erb__1_2", "a.erb", NULL },
		{ "_app_views_a_erb__1_2", "/srv/shop/app/views/a.erb.rb", NULL },
		/* the name is another */
		{ "", "", NULL },
		{ "__", "a", NULL },
		{ "_a_1_2", "a", NULL },
		{ "_a__1", "a", NULL },
		{ "_a__1_", "a", NULL },
		{ "_a___2", "a", NULL },
		{ "_a__1_2x", "a", NULL },
		{ "_a__1_x2", "a", NULL },
		{ "a__1_2", "a", NULL },
		{ "A__1_2", "a", NULL },
		{ "___1_2", "", NULL },
		{ "___1_2", "/", NULL },
		{ "___1_2", "/srv/", NULL },
		{ "____1_2", "/", "/" },
		{ "____1_2", "/srv/", NULL },
		{ "xa__1_2", "a", NULL },
		{ "__1_2", "", NULL },
		{ "1__2_3", "1", NULL },
		{ "12345678901234567890", "a", NULL },
		{ "_", "", NULL },
		{ "block in ", "a", NULL },
		{ "block in __", "__", NULL },
		{ "GET _a__1_2", "a", NULL },
		{ "in _a__1_2", "a", NULL },
		{ "x\xc3\xa9_a__1_2", "a", NULL },
		{ "Foo#bar__1_2", "bar", NULL },
		{ "Foo::_a__1_2", "a", NULL },
		{ "_a__99999999999999999999999999999999999999_2", "a", "a" },
	};

	check_all(cases, ARRAY_SIZE(cases));
}

Test(frame_label, tilt)
{
	static const struct label_case cases[] = {
		{ "Tilt::CompiledTemplates#__tilt_60", "/srv/shop/views/orders/index.erb",
		  "views/orders/index.erb" },
		{ "block in Object#__tilt_70201480", "/srv/shop/views/index.slim",
		  "block in views/index.slim" },
		{ "Tilt::CompiledTemplates#__tilt_60", "/srv/shop/app/templates/a.html.erb",
		  "app/templates/a.html.erb" },
		{ "Tilt::CompiledTemplates#__tilt_60", "/gems/sidekiq-7.1.0/web/views/_nav.erb",
		  "sidekiq-7.1.0/web/views/_nav.erb" },
		{ "Views.__tilt_60", "/srv/views/a.erb", "views/a.erb" },
		{ "__tilt_60", "/srv/pages/index.haml", "/srv/pages/index.haml" },
		{ "__tilt_60", "index.haml", "index.haml" },
		{ "__tilt_60", "/srv/views/old/views/templates/a.erb", "views/templates/a.erb" },
		{ "__tilt_60", "/srv/app/views/views/a.erb", "app/views/views/a.erb" },
		{ "__tilt_60", "/srv/app/templates/views/a.erb", "app/templates/views/a.erb" },
		{ "__tilt_60", "/srv/admin/templates/a.erb", "templates/a.erb" },
		/* in a program, or in no file */
		{ "__tilt_60", "(eval at /srv/shop/views/a.rb:12)", "__tilt" },
		{ "Tilt::CompiledTemplates#__tilt_60", "(__TEMPLATE__)",
		  "Tilt::CompiledTemplates#__tilt" },
		{ "block in Object#__tilt_60", "/srv/shop/views/app.rb", "block in Object#__tilt" },
		{ "__tilt_60", "/srv/shop/config.ru", "__tilt" },
		{ "__tilt_60", "/srv/shop/bin/shop", "__tilt" },
		{ "__tilt_60", "/srv/shop/.irbrc", "__tilt" },
		{ "__tilt_60", "/srv/shop/views/a.", "__tilt" },
		{ "__tilt_60", "", "__tilt" },
		/* others */
		{ "__tilt_", "/srv/views/a.erb", NULL },
		{ "__tilt_6x", "/srv/views/a.erb", NULL },
		{ "__tilt_6_0", "/srv/views/a.erb", NULL },
		{ "my__tilt_60", "/srv/views/a.erb", NULL },
		{ "Tilt__tilt_60", "/srv/views/a.erb", NULL },
	};

	check_all(cases, ARRAY_SIZE(cases));
}

#define READ "/gems/activerecord-5.2.8/lib/active_record/attribute_methods/read.rb"

Test(frame_label, attributes)
{
	static const struct label_case cases[] = {
		{ "Order::GeneratedAttributeMethods#__temp__e616d656", READ,
		  "Order::GeneratedAttributeMethods#name" },
		{ "Order::GeneratedAttributeMethods#__temp__e616d656=", READ,
		  "Order::GeneratedAttributeMethods#name=" },
		{ "block in __temp__d697023607c6",
		  "/g/activemodel-6.1.7/lib/active_model/attribute_methods.rb", "block in my cpl" },
		{ "__temp__3ca9", READ, "\xc3\x9a" },
		/* others */
		{ "__temp__e616d656", "/srv/shop/app/models/order.rb", NULL },
		{ "__temp__", READ, NULL },
		{ "__temp__=", READ, NULL },
		{ "__temp__e616d65", READ, NULL },
		{ "__temp__e616d65=6", READ, NULL },
		{ "__temp__e616d656==", READ, NULL },
		{ "__temp__g616d656", READ, NULL },
		{ "my__temp__e616d656", READ, NULL },
		{ "__temp__00", READ, NULL },
		{ "__temp__a0", READ, NULL },
		{ "__temp__b1", READ, NULL },
		{ "__temp__3c", READ, NULL },
		{ "__temp__2e08ea", READ, NULL },
	};

	check_all(cases, ARRAY_SIZE(cases));
}

/*
 * Stable as they are: what each looks like is what real programs of these kinds were seen to show.
 */
Test(frame_label, others_keep_their_names)
{
	static const char *const names[] = {
		"block in <class:App>",
		"block (2 levels) in <main>",
		"__pry__",
		"<main>",
		"Order#_run_save_callbacks",
		"RSpec::ExampleGroups::Foo::Bar_2#helper",
		"Foo#__method__",
		"Foo#__send__",
		"call",
		"Rails::Engine#call",
		"[unknown]",
		"Caf\xc3\xa9#\"men\xc3\xbc\"",
		"Foo#`",
		"Foo#[]=",
	};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		check(&(struct label_case) { names[i], "/srv/shop/app/views/a.erb", NULL });
}

Test(frame_label, only_ruby_frames)
{
	_cleanup_buf_ struct buf out = BUF_INIT;

	for (enum frame_kind kind = FRAME_RUBY + 1; kind < FRAME_KIND_COUNT; kind++)
		cr_expect_not(frame_label(kind, "_a__1_2", "a", &out), "%d", kind);
	cr_expect(frame_label(FRAME_RUBY, "_a__1_2", "a", &out));
}

/* A path that no file can have is not repeated for each frame that names it. */
Test(frame_label, long_names)
{
	_cleanup_buf_ struct buf name = BUF_INIT, file = BUF_INIT, out = BUF_INIT;

	buf_addstr(&name, "_");
	buf_add_repeat(&name, 'a', PATH_MAX - 1);
	buf_addstr(&name, "__1_2");
	buf_add_repeat(&file, 'a', PATH_MAX - 1);
	cr_expect(frame_label(FRAME_RUBY, buf_str(&name), buf_str(&file), &out));
	cr_expect_str_eq(buf_str(&out), buf_str(&file));
	buf_addch(&file, 'a');
	cr_expect_not(frame_label(FRAME_RUBY, "__tilt_1", buf_str(&file), &out));
	buf_add_repeat(&name, '1', 1 << 20);
	cr_expect(frame_label(FRAME_RUBY, buf_str(&name), buf_str(&file) + 1, &out));
	buf_add_repeat(&name, 'x', 1);
	cr_expect_not(frame_label(FRAME_RUBY, buf_str(&name), buf_str(&file) + 1, &out));
}

Test(frame_label, frame_of_a_profile)
{
	struct profile_builder b;
	struct profile_frame f = { .kind = FRAME_RUBY, .module = PROFILE_NONE };
	const struct profile_frame *in;
	uint32_t id;

	builder_init(&b);
	f.name = builder_str(&b, "_app_views_a_erb__1_2");
	f.file = builder_str(&b, "/srv/shop/app/views/a.erb");
	id = builder_add_frame(&b, &f);
	in = &b.out.profile.frames[id];
	cr_expect_str_eq(profile_str(&b.out.profile, in->name), "app/views/a.erb");
	cr_expect_eq(in->raw_name, f.name);
	cr_expect_eq(builder_add_frame(&b, &f), id, "the same again");
	f.name = builder_str(&b, "Foo#bar");
	id = builder_add_frame(&b, &f);
	in = &b.out.profile.frames[id];
	cr_expect_eq(in->name, f.name);
	cr_expect_eq(in->raw_name, 0);
	f.raw_name = f.name;
	cr_expect_eq(sink_frame(&b.out.sink, &f, &id), -EINVAL, "a label is not given");
	builder_deinit(&b);
}
