// SPDX-License-Identifier: GPL-2.0-only
//
// stackprof's own reports, of the gem as Debian has it: functions, calls, lines, stacks; and speedscope's importer
// of its raw stacks.
import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';

import * as speedscope from './speedscope.mjs';

// What the report knows of the file, and what it prints of it.
const READER = `
require "stackprof"
require "stringio"
file = ARGV[0]
report = StackProf::Report.from_file(file)
text = StringIO.new
report.print_text(false, nil, nil, nil, nil, nil, text)
frames = report.data[:frames].map { |id, f| [id, f[:name], f[:file], f[:line], f[:samples], f[:total_samples], f[:edges] || {}, f[:lines] || {}] }
$stdout = stacks = StringIO.new
report.print_stackcollapse
$stdout = STDOUT
puts JSON.generate({ samples: report.overall_samples, gc: report.data[:gc_samples], mode: report.modeline, frames: frames,
	text: text.string, stacks: stacks.string }, max_nesting: false)
`;

export function missing() {
	try {
		execFileSync('ruby', ['-e', 'require "stackprof"'], { stdio: 'ignore' });
		return null;
	} catch {
		return 'no stackprof (Debian: ruby-stackprof)';
	}
}

export const open = speedscope.open, close = speedscope.close;

const keyOf = f => JSON.stringify([f.kind, f.name, f.file, f.funcLine, f.place]);
const put = (map, key, row) => map.set(key, [...map.get(key) ?? [], row].sort());

// Functions that a file does not tell apart are several rows of one key.
function checkFrames(recording, got, checkMaps) {
	const ids = new Map(got.frames.map(([id, name, file, line]) => [`${id}`, JSON.stringify([name, file, line ?? 0])]));
	const rows = new Map(), calls = new Map(), lines = new Map();
	const expected = { rows: new Map(), calls: new Map(), lines: new Map() };
	const short = key => JSON.stringify(JSON.parse(key).slice(1, 4));

	for (const [id, , , , self, total, edges, counts] of got.frames) {
		put(rows, ids.get(`${id}`), `${self} ${total}`);
		for (const [to, n] of Object.entries(edges))
			put(calls, `${ids.get(`${id}`)}\n${ids.get(to)}`, n);
		for (const [line, [lineTotal, lineSelf]] of Object.entries(counts))
			put(lines, `${ids.get(`${id}`)}:${line}`, `${lineSelf} ${lineTotal}`);
	}
	for (const [key, s] of recording.sums(keyOf))
		put(expected.rows, short(key), `${s.samples} ${s.total_samples}`);
	for (const [edge, n] of recording.edges(keyOf, { samples: recording.samples.map(s => ({ ...s, value: 1 })) })) {
		const [caller, callee] = edge.split('\n');

		if (caller && callee)
			put(expected.calls, `${short(caller)}\n${short(callee)}`, n);
	}
	for (const [key, s] of recording.sums(f => JSON.stringify([keyOf(f), f.kind === 'cfunc' ? 0 : f.line]))) {
		const [function_, line] = JSON.parse(key);

		if (line)
			put(expected.lines, `${short(function_)}:${line}`, `${s.samples} ${s.total_samples}`);
	}
	checkMaps(rows, expected.rows, 'frames');
	checkMaps(calls, expected.calls, 'calls');
	checkMaps(lines, expected.lines, 'lines');
}

// The text report has the functions by name: "TOTAL (pct) SAMPLES (pct) FRAME".
function checkText(recording, text, check, checkMaps) {
	const got = new Map(), expected = new Map();

	for (const line of text.split('\n')) {
		const m = line.match(/^ *(\d+) +\( *[\d.]+%\) +(\d+) +\( *[\d.]+%\) {5}(.*)$/);

		if (m)
			put(got, m[3], `${m[2]} ${m[1]}`);
	}
	for (const [key, s] of recording.sums(keyOf))
		put(expected, JSON.parse(key)[1], `${s.samples} ${s.total_samples}`);
	checkMaps(got, expected, 'text');
	check(text.includes(`Samples: ${recording.samples.length} (0.00% miss rate)`), 'the header of the text');
}

function checkStacks(recording, text, checkMaps) {
	const got = new Map(), expected = new Map();
	const add = (map, key, n) => map.set(key, (map.get(key) ?? 0) + n);

	for (const [, stack, n] of text.matchAll(/^(.*) (\d+)$/gm))
		add(got, stack, +n);
	for (const s of recording.samples)
		add(expected, s.frames.map(f => f.name).reverse().join(';'), 1);
	checkMaps(got, expected, 'stacks');
}

// speedscope tells functions apart by id and line, and shows n samples as n intervals, or the time of each.
async function checkSpeedscope(consumer, recording, bytes, { unit }, check, checkMaps) {
	const { profiles, errors, said } = await speedscope.load(consumer, `${recording.name}.json`, bytes);
	const rounded = (name, file, line, self, total) => [name, file, line, Math.round(self / 1000), Math.round(total / 1000)];

	check(!errors.length, errors.join('; '));
	check(said.includes('Importing as stackprof profile'), `imported: ${said.join('; ')}`);
	if (errors.length)
		return;
	const rows = recording.sums(keyOf, { samples: recording.samples.map(s => ({ ...s, value: unit ?? s.value / 1000 })) });
	const total = profiles[0].total, expected = recording.samples.reduce((sum, s) => sum + (unit ?? s.value / 1000), 0);

	// What is left over at the end, of stacks that are shorter than a sample.
	check(Math.abs(total - expected) <= (unit ? recording.stacks.length : recording.interval / 1000), `speedscope: ${total}, not ${expected}`);
	if (unit)
		checkMaps(speedscope.rows(profiles[0].frames.map(([name, file, line, self, t]) => rounded(name, file, line, self, t))),
			speedscope.rows([...rows].map(([key, s]) => rounded(...JSON.parse(key).slice(1, 4), s.self, s.total))), 'speedscope');
}

async function validateEvent(consumer, original, event, check, checkMaps) {
	const bytes = original.export('stackprof', '--event', event);
	const uncounted = original.of(event), recording = uncounted.counted().withPlaceholder();
	const isCounted = uncounted.counted() !== uncounted;
	const gc = uncounted.samples.filter(s => s.flags.includes('gc'));
	const path = join(consumer.dir, 'stackprof.json');

	writeFileSync(path, bytes);
	const got = JSON.parse(execFileSync('ruby', ['-e', READER, path], { encoding: 'utf8', maxBuffer: 1 << 30,
		env: { ...process.env, RUBYOPT: '', LC_ALL: 'C.UTF-8' } }));

	check(got.samples === recording.samples.length, `${got.samples} samples`);
	check(got.gc === (isCounted ? Math.round(gc.reduce((sum, s) => sum + s.value, 0) / recording.interval) : gc.length), `${got.gc} of them in GC`);
	check(got.mode === (event === 'cpu' ? got.mode : `wall(${recording.interval / 1000})`), `${got.mode}`);
	checkFrames(recording, got, checkMaps);
	checkText(recording, got.text, check, checkMaps);
	checkStacks(recording, got.stacks, checkMaps);
	const unit = event === 'cpu' ? JSON.parse(bytes).interval : undefined;
	await checkSpeedscope(consumer, isCounted ? Object.assign(uncounted, { interval: recording.interval }) : recording, bytes, { unit }, check, checkMaps);
}

export async function validate(consumer, recording, { check, checkMaps }) {
	for (const event of [...recording.events, ...recording.hasWaits ? ['wall'] : []])
		await validateEvent(consumer, recording, event, (ok, what) => check(ok, `${event}: ${what}`),
			(got, expected, what) => checkMaps(got, expected, `${event}: ${what}`));
}
