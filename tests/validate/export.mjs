// SPDX-License-Identifier: GPL-2.0-only
//
// What the consumers of rbpf's exports make of them, compared with `rbpf report --json`.
//
// usage: node export.mjs RECORDING...      as export.sh starts it
//
// A consumer knows functions by less than rbpf does, such as by their names alone. What it must show
// is computed from the samples of `rbpf export -f json`, with the consumer's own idea of a function;
// with rbpf's idea the same computation must give the rows of the report.
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, join } from 'node:path';

import * as callgrind from './formats/callgrind.mjs';
import * as chrome from './formats/chrome.mjs';
import * as dot from './formats/dot.mjs';
import * as firefox from './formats/firefox.mjs';
import * as folded from './formats/folded.mjs';
import * as json from './formats/json.mjs';
import * as perfScript from './formats/perf_script.mjs';
import * as pprof from './formats/pprof.mjs';
import * as samplingProf from './formats/sampling_prof.mjs';
import * as speedscope from './formats/speedscope.mjs';
import * as stackprof from './formats/stackprof.mjs';

const formats = { json, speedscope, firefox, pprof, callgrind, 'perf-script': perfScript, chrome, stackprof,
	'sampling-prof': samplingProf, dot, folded };
const only = process.env.ONLY?.split(',');

let passed = 0, failed = 0;
const skipped = [];
function check(condition, what) {
	if (condition)
		passed++;
	else if (++failed < 50)
		console.log(`FAIL: ${what}`);
}

const rbpf = (...args) => execFileSync(process.env.RBPF, args, { maxBuffer: 1 << 30 });

// Compare two maps of numbers or texts, key by key.
function checkMaps(got, expected, what) {
	const short = s => JSON.stringify(s)?.slice(0, 200);

	check(got.size === expected.size, `${what}: ${got.size} entries, not ${expected.size}`);
	for (const [key, value] of expected)
		check(JSON.stringify(got.get(key)) === JSON.stringify(value),
			`${what}: ${short(key)}: ${short(got.get(key))}, not ${short(value)}`);
	for (const key of got.keys())
		if (!expected.has(key))
			check(false, `${what}: ${short(key)} is not expected`);
}

// Samples in the order of the recording, but for waits that are behind a later sample of their thread: these are where they
// belong, before the first such one.
function inThreadOrder(samples) {
	const latest = new Map(), late = new Map();

	for (const s of samples) {
		const last = latest.get(s.thread) ?? 0;

		if (s.ts_ns < last && s.frames[0]?.kind === 'wait')
			late.set(s.thread, [...late.get(s.thread) ?? [], s]);
		latest.set(s.thread, Math.max(last, s.ts_ns));
	}
	const left = new Map([...late].map(([thread, waits]) => [thread, [...waits].sort((a, b) => a.ts_ns - b.ts_ns)]));
	const all = new Set([...late.values()].flat());

	return samples.flatMap(s => {
		const before = [];

		if (all.has(s))
			return before;
		while (left.get(s.thread)?.[0]?.ts_ns < s.ts_ns)
			before.push(left.get(s.thread).shift());
		return [...before, s];
	});
}

// A recording as `rbpf export -f json` has it, with frames and samples as the exports show them.
class Recording {
	constructor(file) {
		this.file = file;
		this.name = basename(file, '.data');
		Object.assign(this, JSON.parse(rbpf('export', '-f', 'json', '--stack', 'mixed', '-i', file)));
		for (const frame of this.frames)
			Object.assign(frame, this.functionOf(frame));
		for (const sample of this.samples) {
			sample.frames = this.framesOf(sample.stack);
			sample.requestName = this.requestOf(sample);
		}
		this.allSamples = this.samples;
		this.events = this.meta.events.map(e => e.name);
		this.hasWaits = this.events.includes('wait');
		this.samples = this.of(this.events[0]).samples;
	}

	// The same recording with the samples of one event.
	of(event) {
		const names = event === 'wall' ? ['cpu', 'wait'] : [event];
		const samples = inThreadOrder(this.allSamples.filter(s => names.includes(this.events[s.event ?? 0])));

		return Object.assign(Object.create(Recording.prototype), this, { samples, event });
	}

	// For formats that count samples: a wait is one for each ms, or µs if all are less than a second; what rounding takes from one stack
	// the next one gets. What is short may get none.
	counted() {
		if (!['wait', 'wall', 'caused', 'gvl-caused', 'lock-caused', 'wakeup'].includes(this.event))
			return this;
		const stacks = new Map();
		const interval = this.samples.reduce((sum, s) => sum + s.value, 0) < 1e9 ? 1e3 : 1e6;
		let rest = interval / 2;

		for (const s of this.samples)
			stacks.set(s.stack, { ...s, value: s.value + (stacks.get(s.stack)?.value ?? 0) });
		const samples = [...stacks.values()].sort((a, b) => a.stack - b.stack).flatMap(s => {
			const n = Math.floor((s.value + rest) / interval);

			rest += s.value - n * interval;
			return Array(n).fill({ ...s, value: interval });
		});
		return Object.assign(Object.create(Recording.prototype), this, { samples, interval });
	}

	// What formats show that are of all the time of threads.
	ofAllTime() {
		return this.of(this.hasWaits ? 'wall' : this.events[0]);
	}

	// As exports name it; undefined if there is none.
	requestOf({ request }) {
		return request ? this.requests[request].name : undefined;
	}

	// As `rbpf report --states` names what a thread does.
	stateOf(sample) {
		const { kind, reason } = sample.frames[0] ?? {};

		if (kind === 'wait')
			return reason.replace(/^wait-/, '').replace(/^cpu$/, 'wait-cpu');
		if (!sample.flags.includes('kernel'))
			return 'user';
		return sample.flags.includes('page-fault') ? 'minor-fault' : 'system';
	}

	waits(sample) {
		return sample.frames[0]?.kind === 'wait';
	}

	// As exports name the function of a frame.
	functionOf(frame) {
		const cfunc = frame.kind === 'cfunc';
		const module = frame.module === null ? '' : this.modules[frame.module].path;

		return {
			name: frame.label || '[unnamed]',
			file: cfunc ? '' : frame.path,
			// For formats that have one place, whatever it is.
			place: cfunc ? '' : frame.path || module,
			funcLine: cfunc ? 0 : frame.func_line,
		};
	}

	// The frames of a stack, the innermost first.
	framesOf(stack) {
		const frames = [];

		for (; this.stacks[stack].frame !== null; stack = this.stacks[stack].parent)
			frames.push(this.frames[this.stacks[stack].frame]);
		return frames;
	}

	// Self and total samples and values by @key of a frame, which may be null: of no function. @own finds the
	// frame with the self time.
	sums(key, { samples = this.samples, own = frames => frames[0] } = {}) {
		const sums = new Map();
		const at = k => {
			if (!sums.has(k))
				sums.set(k, { samples: 0, total_samples: 0, self: 0, total: 0 });
			return sums.get(k);
		};

		for (const { frames, value } of samples) {
			const keys = frames.map(key).filter(k => k !== null);

			for (const k of new Set(keys)) {
				at(k).total_samples++;
				at(k).total += value;
			}
			if (keys.length) {
				const k = key(own(frames.filter(f => key(f) !== null)));

				at(k).samples++;
				at(k).self += value;
			}
		}
		return sums;
	}

	// Values by "caller\ncallee": once a sample, however often it has that call. "" where there is none.
	edges(key, { samples = this.samples } = {}) {
		const edges = new Map();

		for (const { frames, value } of samples) {
			const keys = frames.map(key);
			const calls = keys.map((k, i) => `${keys[i + 1] ?? ''}\n${k}`);

			for (const call of new Set(keys.length ? [...calls, `${keys[0]}\n`] : []))
				edges.set(call, (edges.get(call) ?? 0) + value);
		}
		return edges;
	}

	// For formats that have no samples without a function.
	withPlaceholder() {
		const none = { kind: 'unknown', name: '[no stack]', file: '', funcLine: 0, line: 0 };
		const samples = this.samples.map(s => s.frames.length ? s : { ...s, frames: [none] });

		return Object.assign(Object.create(Recording.prototype), this, { samples });
	}

	export(format, ...args) {
		return rbpf('export', '-f', format, '-i', this.file, ...args);
	}
}

function checkReport(recording, event) {
	const rows = JSON.parse(rbpf('report', '--json', '-n', '0', '--stack', 'mixed', '--event', event, '-i', recording.file)).rows;
	const got = new Map(), expected = new Map();
	const put = (map, key, row) => map.set(key, [...map.get(key) ?? [], row].sort());

	for (const r of rows)
		put(got, JSON.stringify([r.kind, r.label, r.path, r.line]),
			[r.samples, r.total_samples, r.self_ns, r.total_ns].join());
	const sums = recording.of(event).sums(f => JSON.stringify([f.kind, f.label, f.kind === 'cfunc' ? '' : f.path,
		f.funcLine, f.kind === 'cfunc' ? '' : f.file || recording.modules[f.module]?.path]),
	// The time of a wait is the method's that waits.
	{ own: frames => frames.find(f => f.kind !== 'wait') ?? frames.at(-1) });
	for (const [key, s] of sums)
		put(expected, JSON.stringify(JSON.parse(key).slice(0, 4)),
			[s.samples, s.total_samples, s.self, s.total].join());
	checkMaps(got, expected, `${recording.name}: report --event ${event}`);
}

// What tells methods apart in the rows of a report.
const rowKey = r => r.kind === 'none' ? '' : JSON.stringify([r.kind, r.label, r.path, r.line, r.module]);

// Of methods that rows do not tell apart, which have several rows of one key, the edges are left out.
function checkSandwich(recording) {
	const { methods } = JSON.parse(rbpf('report', '--json', '-n', '0', '--stack', 'mixed', '--sandwich', '.*',
		'-i', recording.file));
	const moduleOf = f => f.module === null || f.module === undefined ? '' : basename(recording.modules[f.module].path);
	const cfunc = f => f.kind === 'cfunc';
	const full = f => JSON.stringify([f.kind, f.label, cfunc(f) ? '' : f.path, cfunc(f) ? 0 : f.funcLine, moduleOf(f),
		cfunc(f) ? '' : f.file]);
	const short = k => k && JSON.stringify(JSON.parse(k).slice(0, 5));
	const counts = new Map();
	const got = new Map(), expected = new Map();

	for (const m of methods)
		counts.set(rowKey(m), (counts.get(rowKey(m)) ?? 0) + 1);
	const isPlain = (...keys) => keys.every(k => !k || counts.get(k) === 1);
	for (const m of methods)
		for (const [rows, edge] of [[m.callers, r => [rowKey(r), rowKey(m)]], [m.callees, r => [rowKey(m), rowKey(r)]]])
			for (const r of rows)
				if (isPlain(...edge(r)))
					got.set(edge(r).join('\n'), r.total_ns);
	for (const [edge, value] of recording.edges(full)) {
		const keys = edge.split('\n').map(short);

		if (isPlain(...keys))
			expected.set(keys.join('\n'), value);
	}
	checkMaps(got, expected, `${recording.name}: report --sandwich`);
	check(expected.size > 3, `${recording.name}: report --sandwich: there is little to compare`);
}

// Lines have the samples with a Ruby frame that executes them.
function checkAnnotate(recording) {
	const paths = new Set(recording.samples.flatMap(s => s.frames).filter(f => f.kind === 'ruby' && f.path && f.line).map(f => f.path));

	for (const path of [...paths].slice(0, 3)) {
		const { files } = JSON.parse(rbpf('annotate', '--json', '--stack', 'mixed', '-i', recording.file, path));
		const isLine = f => f.kind === 'ruby' && f.path === path && f.line;
		const sums = recording.sums(f => isLine(f) ? f.line : -1);
		const got = new Map(), expected = new Map();

		for (const l of files.find(f => f.path === path)?.lines ?? [])
			got.set(l.line, [l.samples, l.total_samples, l.self_ns, l.total_ns].join());
		for (const [line, s] of sums)
			if (line !== -1)
				expected.set(line, [s.samples, s.total_samples, s.self, s.total].join());
		checkMaps(got, expected, `${recording.name}: annotate ${path.slice(0, 80)}`);
	}
}

const dir = mkdtempSync(join(tmpdir(), 'rbpf-export-'));
const recordings = process.argv.slice(2).map(file => new Recording(file));

for (const recording of recordings) {
	for (const event of [...recording.events, ...recording.hasWaits ? ['wall'] : []])
		checkReport(recording, event);
	checkSandwich(recording);
	checkAnnotate(recording);
}
for (const [name, format] of Object.entries(formats)) {
	const missing = format.missing?.();

	if (only && !only.includes(name))
		continue;
	if (missing) {
		skipped.push(`${name}: ${missing}`);
		continue;
	}
	const consumer = await format.open(dir);
	for (const recording of recordings)
		await format.validate(consumer, recording, {
			check: (condition, what) => check(condition, `${recording.name}: ${name}: ${what}`),
			checkMaps: (got, expected, what) => checkMaps(got, expected, `${recording.name}: ${name}: ${what}`),
		});
	await format.close?.(consumer);
}
rmSync(dir, { recursive: true, force: true });
for (const what of skipped)
	console.log(`skipped: ${what}`);
console.log(`${passed} passed, ${failed} failed`);
process.exit(failed ? 1 : skipped.length ? 77 : 0);
