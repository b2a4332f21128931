/* SPDX-License-Identifier: GPL-2.0-only */
/* The options of record; what it does is in record.c. */
#include "cmd/record.h"

#include <errno.h>
#include <string.h>

#include "base/array.h"
#include "base/buf.h"
#include "base/err.h"
#include "cmd/command.h"
#include "cmd/output.h"
#include "cmd/open_recording.h"
#include "engine/engine.h"
#include "export/export.h"

#define DEFAULT_FREQUENCY 99  /* Hz */
#define DEFAULT_MAX_COST  0.5 /* percent */

/* What is parsed; the format then becomes an exporter. */
struct record_line {
	struct record_options opts;
	unsigned int format; /* index of cmd_format_choice(), or OPTION_UNSET */
};

#define OPT(member) .offset = offsetof(struct record_line, opts.member)

static const struct {
	const char *name, *help;
} modes[] = {
	[RECORD_CPU] = { "cpu", "CPU time" },
	[RECORD_WALL] = { META_MODE_WALL,
			  "wall-clock time: CPU time and each wait, shown together" },
	[RECORD_STATES] = { "states", "CPU time and each wait, with what the thread waited for" },
};

const char *record_mode_name(size_t mode)
{
	return mode < ARRAY_SIZE(modes) ? modes[mode].name : NULL;
}

const char *record_mode_hint(const char *word)
{
	if (strcmp(word, "offcpu") && strcmp(word, "off-cpu"))
		return NULL;
	return "--mode states records waits beside CPU time: 'rbpf report --event wait'";
}

bool record_mode_waits(unsigned int mode)
{
	return mode != RECORD_CPU;
}

static const char *mode_help(size_t mode)
{
	return mode < ARRAY_SIZE(modes) ? modes[mode].help : NULL;
}

static const struct option_spec what_specs[] = {
	{
		.letter = 'p',
		.name = "pid",
		.type = OPTION_PIDS,
		OPT(pids),
		.arg = "LIST",
		.help = "record these processes (pids separated by commas)",
		.complete = COMPLETE_RUBY_PID,
	},
	{
		.name = "all-ruby",
		.type = OPTION_FLAG,
		OPT(all_ruby),
		.help = "record every Ruby on the machine, also those that start later",
	},
	{
		.name = "comm",
		.type = OPTION_STRING,
		OPT(comm),
		.arg = "RE",
		.help = "record every Ruby whose command line or name matches",
	},
	{
		.name = "cgroup",
		.type = OPTION_STRING,
		OPT(cgroup),
		.arg = "PATH",
		.help = "record every Ruby in this control group or below it",
		.complete = COMPLETE_FILE,
	},
	{
		.name = "container",
		.type = OPTION_STRING,
		OPT(container),
		.arg = "ID",
		.help = "record every Ruby in the container whose id begins with ID",
	},
	{
		.name = "user",
		.type = OPTION_STRING,
		OPT(user),
		.arg = "USER",
		.help = "record every Ruby of this user (name or uid)",
	},
	{
		.name = "children",
		.type = OPTION_SWITCH,
		OPT(children),
		.help = "record the child processes, too: those that run, and new ones",
		.initial = "yes",
	},
	{
		.name = "native",
		.type = OPTION_SWITCH,
		OPT(native),
		.help = "unwind native stacks, too, and merge them with the Ruby stacks",
		.initial = "yes",
	},
	{
		.name = "mode",
		.type = OPTION_CHOICE,
		OPT(mode),
		.arg = "MODE",
		.help = "what to record",
		.initial = "cpu",
		.choice = record_mode_name,
		.choice_hint = record_mode_hint,
		.choice_help = mode_help,
	},
	{
		.name = "waker",
		.type = OPTION_FLAG,
		OPT(waker),
		.help = "with --mode states: record who ends each wait, too",
	},
	{
		.name = "requests",
		.type = OPTION_SWITCH,
		OPT(requests),
		.help = "tell which request or job each sample is of",
		.initial = "yes",
	},
	{
		.name = "request-paths",
		.type = OPTION_FLAG,
		OPT(request_paths),
		.help = "of a request of which only the server is known, not the controller, tell "
			"method and path, without ids",
	},
	{
		.name = "request-rules",
		.type = OPTION_STRING,
		OPT(request_rules),
		.arg = "FILE",
		.help = "tell requests by the rules in this file, too: rbpf-requests(5)",
		.complete = COMPLETE_FILE,
	},
	{
		.name = "peers",
		.type = OPTION_SWITCH,
		OPT(peers),
		.help = "tell who is at the other end of a socket that is waited for, and which "
			"file",
		.initial = "yes",
	},
	{
		.name = "sources",
		.type = OPTION_SWITCH,
		OPT(sources),
		.help = "keep the Ruby source files that have samples, for rbpf annotate",
		.initial = "yes",
	},
	RECORD_ARGUMENTS_OPTION(OPT),
	{
		.name = "kernel",
		.type = OPTION_SWITCH,
		OPT(kernel),
		.help = "include kernel frames in native stacks",
	},
	{
		.name = "inlines",
		.type = OPTION_SWITCH,
		OPT(inlines),
		.help = "show inlined functions and source lines of native code, where there is "
			"debug information",
	},
	{
		.letter = 'd',
		.name = "duration",
		.type = OPTION_DURATION,
		OPT(duration_ns),
		.arg = "TIME",
		.help = "stop after this time (30, 500ms, 5m); without it, when the processes have "
			"ended or at Ctrl-C",
	},
	RECORD_FREQUENCY_OPTIONS(OPT),
	{
		.name = "max-stack",
		.type = OPTION_U64,
		OPT(max_stack),
		.arg = "N",
		.help = "keep the innermost N frames of a stack, 16 to 4096",
		.initial = "4096",
		.min = 16,
		.max = 4096,
	},
	{
		.name = "ring",
		.type = OPTION_SIZE,
		OPT(ring_bytes),
		.arg = "SIZE",
		.help = "size of the buffer between kernel and rbpf, a power of two from 64K to 1G",
		.initial = "8M",
		.min = 64 << 10,
		.max = 1 << 30,
	},
	{
		.name = "memlimit",
		.type = OPTION_SIZE,
		OPT(memory_limit),
		.arg = "SIZE",
		.help = "memory that rbpf may take before it forgets names, which it then reads "
			"again",
		.initial = "512M",
		.min = 32 << 20,
		.max = 1ull << 40,
	},
	{
		.name = "guarded",
		.type = OPTION_FLAG,
		OPT(guarded),
		.help = "read the memory of processes in a helper process, so that no process can "
			"block rbpf; rbpf then uses 1.5 to 3 times the CPU time",
	},
	{
		.name = "priority",
		.type = OPTION_SWITCH,
		OPT(priority),
		.help = "run before all ordinary processes, for at most 20 % of one CPU",
		.initial = "yes",
	},
};

static const struct option_spec output_specs[] = {
	{
		.letter = 'o',
		.name = "output",
		.type = OPTION_STRING,
		OPT(output),
		.arg = "FILE",
		.help = "write the recording to this file; - is stdout; out.svg stands for "
			"-f flame -o out.svg",
		.initial = CMD_DEFAULT_RECORDING,
		.complete = COMPLETE_FILE,
	},
	{
		.name = "max-size",
		.type = OPTION_SIZE,
		OPT(max_bytes),
		.arg = "SIZE",
		.help = "end when the recording has reached this size; in any case before its file "
			"system is full",
		.min = 64 << 10,
		.max = 1ull << 50,
	},
	{
		.letter = 'f',
		.name = "format",
		.type = OPTION_CHOICE,
		.offset = offsetof(struct record_line, format),
		.arg = "FORMAT",
		.help = "also export to FILE.SUFFIX at the end",
		.choice = cmd_format_choice,
	},
	{
		.name = "force",
		.type = OPTION_FLAG,
		OPT(force),
		.help = "replace an output file that is not a recording, or is another user's",
	},
	{
		.name = "sync",
		.type = OPTION_FLAG,
		OPT(sync),
		.help = "write the recording to disk about once a second, in case of a power loss",
	},
};

static const struct option_spec program_specs[] = {
	{
		.name = "as-root",
		.type = OPTION_FLAG,
		OPT(as_root),
		.help = "run CMD as root, not as the user who ran sudo",
	},
	{
		.name = "exit-with-child",
		.type = OPTION_FLAG,
		OPT(exit_with_child),
		.help = "exit with the status of CMD, not with that of rbpf",
	},
};

static const struct option_group what_group = {
	.title = "What to record",
	.options = what_specs,
	.n = ARRAY_SIZE(what_specs),
};

static const struct option_group output_group = {
	.title = "Output",
	.options = output_specs,
	.n = ARRAY_SIZE(output_specs),
};

static const struct option_group program_group = {
	.title = "Running a program",
	.options = program_specs,
	.n = ARRAY_SIZE(program_specs),
};

static int usage(struct err *err, const char *message, const char *hint)
{
	err_set(err, -EINVAL, ERR_USAGE, "%s", message);
	if (hint)
		err_hint(err, "%s", hint);
	return -EINVAL;
}

/* Options that go with --all-ruby only; any of them is enough to mean it. */
static bool selects(const struct record_options *opts)
{
	return opts->comm || opts->cgroup || opts->container || opts->user;
}

int record_take_targets(struct record_options *opts, const struct option_rest *rest,
			struct err *err)
{
	opts->command = rest->n ? rest->argv : NULL;
	opts->all_ruby |= selects(opts);
	if (opts->pids.n && opts->command)
		return usage(err, "-p PID and -- CMD exclude each other",
			     "-d 30s ends the recording of a process after a time");
	if (opts->all_ruby && opts->pids.n)
		return usage(err, "-p PID and --all-ruby exclude each other",
			     "--comm, --cgroup, --container and --user imply --all-ruby");
	if (opts->all_ruby && opts->command)
		return usage(err, "--all-ruby and -- CMD exclude each other",
			     "--comm, --cgroup, --container and --user imply --all-ruby");
	if (!opts->pids.n && !opts->command && !opts->all_ruby)
		return usage(err, "nothing to record: give -p PID, --all-ruby or -- CMD",
			     "'rbpf ps' lists Ruby processes");
	if (opts->all_ruby && !opts->children)
		return usage(err, "--all-ruby and --no-children exclude each other", NULL);
	if (!opts->command && opts->as_root)
		return usage(err, "--as-root needs a program to run (-- CMD)", NULL);
	if (!opts->command && opts->exit_with_child)
		return usage(err, "--exit-with-child needs a program to run (-- CMD)", NULL);
	return 0;
}

void record_take_frequency(struct record_options *opts)
{
	if (opts->max_cost < 0)
		opts->max_cost = opts->frequency ? 0 : DEFAULT_MAX_COST;
	if (!opts->frequency)
		opts->frequency = DEFAULT_FREQUENCY;
}

int record_take_live(struct record_options *opts, const struct option_rest *rest, struct err *err)
{
	opts->max_stack = RBPF_MAX_FRAMES;
	opts->ring_bytes = ENGINE_RING_BYTES;
	opts->peers = true;
	record_take_frequency(opts);
	return record_take_targets(opts, rest, err);
}

static bool ends_with(const char *s, const char *suffix)
{
	size_t len = strlen(s), n = strlen(suffix);

	return len > n && strcmp(s + len - n, suffix) == 0;
}

/* The exporter whose files are called like @path, or NULL. */
static const struct exporter *exporter_by_suffix(const char *path)
{
	const struct exporter *best = NULL;

	for (size_t i = 0; i < n_exporters; i++)
		if (ends_with(path, exporters[i].suffix) &&
		    (!best || strlen(exporters[i].suffix) > strlen(best->suffix)))
			best = &exporters[i];
	return best;
}

static int refuse_suffix(const struct record_options *opts, const struct exporter *named,
			 struct err *err)
{
	err_set(err, -EINVAL, ERR_USAGE, "-f %s does not go with -o %s: that is a file of -f %s",
		opts->exporter->name, opts->output, named->name);
	err_hint(err, "-o NAME%s names the export, any other -o the recording",
		 opts->exporter->suffix);
	return -EINVAL;
}

/*
 * No export is called so, and whoever asks for such a file would take the recording for a picture
 * or a text.
 */
static int refuse_strange_suffix(const struct record_options *opts, unsigned int format,
				 struct err *err)
{
	static const char *const others[] = { ".html", ".txt", ".png", ".pdf", ".pprof",
					      ".prof", ".gz",  ".csv", ".jfr", ".collapsed" };
	const char *path = opts->output;

	for (size_t i = 0; i < ARRAY_SIZE(others); i++) {
		if (!ends_with(path, others[i]))
			continue;
		err_set(err, -EINVAL, ERR_USAGE, "-o %s: no recording and no export is called *%s",
			path, others[i]);
		if (format != OPTION_UNSET)
			err_hint(err, "-o NAME%s names the export",
				 cmd_format_exporter(format)->suffix);
		else if (!strcmp(others[i], ".html"))
			err_hint(err,
				 "-o out.svg draws the flame graph; of a recording 'rbpf timeline "
				 "> page.html' and 'rbpf heatmap > page.html' make pages");
		else
			err_hint(err,
				 "-o out.svg draws the flame graph; 'rbpf export --help' lists the "
				 "other formats");
		return -EINVAL;
	}
	return 0;
}

/*
 * Where recording and export go. "-o out.svg", with -f flame or without -f, asks for the flame
 * graph by its name: the recording it is made from then has the default name. Otherwise -o names
 * the recording, and the export stands beside it. @path holds the composed name.
 */
static int take_outputs(struct record_options *opts, unsigned int format, struct buf *path,
			struct err *err)
{
	const struct exporter *named = exporter_by_suffix(opts->output);
	bool to_stdout = strcmp(opts->output, "-") == 0;

	if (cmd_to_terminal(opts->output))
		return cmd_refuse_terminal("a recording", "-o FILE writes it to a file", err);
	if (!named && refuse_strange_suffix(opts, format, err))
		return -EINVAL;
	if (format == OPTION_UNSET && !named)
		return 0;
	if (to_stdout)
		return usage(err, "--format needs a recording in a file, not on stdout", NULL);
	opts->exporter = format == OPTION_UNSET ? named : cmd_format_exporter(format);
	if (named && named != opts->exporter)
		return refuse_suffix(opts, named, err);
	if (named) {
		opts->export_path = opts->output;
		opts->output = CMD_DEFAULT_RECORDING;
		return 0;
	}
	buf_addstr(path, opts->output);
	buf_addstr(path, opts->exporter->suffix);
	if (buf_failed(path))
		return err_oom(err);
	opts->export_path = buf_str(path);
	return 0;
}

static int prepare(struct record_line *line, const struct option_rest *rest, struct buf *path,
		   struct err *err)
{
	struct record_options *opts = &line->opts;
	int r;

	r = record_take_targets(opts, rest, err);
	if (r)
		return r;
	if (opts->request_paths && !opts->requests)
		return usage(err, "--request-paths and --no-requests exclude each other", NULL);
	if (opts->request_rules && !opts->requests)
		return usage(err, "--request-rules and --no-requests exclude each other", NULL);
	if (opts->waker && !record_mode_waits(opts->mode))
		return usage(err, "--waker needs --mode states", NULL);
	if (opts->ring_bytes & (opts->ring_bytes - 1))
		return usage(err, "--ring must be a power of two", "8M, 16M, 32M and so on");
	record_take_frequency(opts);
	return take_outputs(opts, line->format, path, err);
}

static int record_main(struct cmd_context *ctx, int argc, char **argv, struct err *err)
{
	struct record_line line = { .opts.max_cost = RECORD_COST_UNSET, .format = OPTION_UNSET };
	_cleanup_buf_ struct buf path = BUF_INIT;
	struct option_rest rest;
	int r;

	r = command_parse(&command_record, ctx, &line, argc, argv, &rest, err);
	if (!r)
		r = prepare(&line, &rest, &path, err);
	if (!r)
		r = record_run(&line.opts, ctx, err);
	else if (r == COMMAND_DONE)
		r = 0;
	command_release(&command_record, &line);
	return r;
}

static const char *const usages[] = { "-p PID[,PID...] [OPTION...]", "--all-ruby [OPTION...]",
				      "[OPTION...] -- CMD [ARG...]", NULL };

static const struct option_group *const groups[] = { &what_group, &output_group, &program_group };

static const struct command_example examples[] = {
	{ "sudo rbpf record -p 4242 -d 30s",
	  "record process 4242 and its children for 30 seconds" },
	{ "sudo rbpf record --all-ruby -d 1m",
	  "record every Ruby on the machine for a minute, also short-lived ones" },
	{ "sudo rbpf record -F 999 -o boot.data -- bin/rails runner 1",
	  "run a program as yourself, and record it from start to end" },
	{ "sudo rbpf record -p 4242 -d 30s -f flame -o out.svg",
	  "record, and draw the flame graph at the end" },
	{ NULL, NULL },
};

const struct command command_record = {
	.name = "record",
	.summary = "record what Ruby processes spend CPU time on",
	.usage = usages,
	.about = "Samples the Ruby and native stacks of running processes, or of a program that it "
		 "runs, and writes them to a recording, which report, flame and export read. "
		 "Nothing is loaded into the processes, and they are not stopped.\n\n"
		 "Ctrl-C ends the recording and keeps it; a second Ctrl-C also stops naming the "
		 "frames that have no name yet. Needs root.",
	.groups = groups,
	.n_groups = ARRAY_SIZE(groups),
	.args = ARGS_PROGRAM,
	.examples = examples,
	.run = record_main,
};
