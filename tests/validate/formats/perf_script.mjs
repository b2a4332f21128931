// SPDX-License-Identifier: GPL-2.0-only
//
// speedscope's importer of the text of `perf script`, which makes time of the distance of samples; and
// a parser of our own for what it does not look at, the values.
import * as speedscope from './speedscope.mjs';

export const { open, close } = speedscope;

// As src/export/perf_script.c writes names.
const functionOf = f => f.name.replace(/^[ \t]+/, '').replace(/->/g, '=>').replace(/\+0x/g, '+ 0x')
	.replace(/[;()\t]/g, c => ({ ';': ':', '(': '[', ')': ']', '\t': ' ' })[c]) || '_';
const fileOf = f => f.kind === 'kernel' ? '[kernel.kallsyms]' : f.place
	.replace(/[ \t()]/g, c => `\\x${c.charCodeAt(0).toString(16).padStart(2, '0')}`) || f.kind;
// speedscope tells unknown functions apart by their files, which it adds to the name.
const shownAs = f => functionOf(f) === '[unknown]' ? `??? (${fileOf(f)})` : functionOf(f);
const keyOf = f => JSON.stringify([shownAs(f), fileOf(f)]);

// A thread as its samples start.
function threadOf(recording, thread) {
	const { tid, name, process } = recording.threads[thread];
	let comm = (name || '[unnamed]').replace(/[ \t]/g, '_').replace(/;/g, ':').replace(/^#/, '_');

	comm = [...comm].length === 1 && comm.length === 1 ? `${comm}_` : comm;
	return [comm, recording.processes[process].pid, tid];
}

function parse(text) {
	return text.split('\n\n').filter(block => !/^(#|$)/.test(block)).map(block => {
		const [head, ...lines] = block.split('\n');
		const m = head.match(/^(\S.+?)\s+(\d+)\/(\d+) \[(\d+)\] +(\d+\.\d{6}): +(\d+) (\S+): $/);
		const frames = lines.map(line => line.match(/^\t *([0-9a-f]+) (.+) \((\S*)\)$/)?.slice(1));

		return m && frames.every(f => f) ? { comm: m[1], pid: +m[2], tid: +m[3], cpu: +m[4], time: m[5], value: +m[6],
			event: m[7], frames: frames.map(f => [f[1], f[2]]) } : { bad: block };
	});
}

// The weights that speedscope gives to samples of these times: up to the middle between two.
function weights(times) {
	const found = [];
	let start = times[0];

	for (let i = 1; i < times.length; i++) {
		const middle = (times[i] + times[i - 1]) / 2;

		found.push(middle - start);
		start = middle;
	}
	found.push(times.length > 1 ? times.at(-1) - start : 1);
	return found;
}

export async function validate(consumer, recording, { check, checkMaps }) {
	const bytes = recording.export('perf-script');
	const got = parse(bytes.toString());
	const micros = ns => `${Math.floor(ns / 1e9)}.${String(Math.floor(ns % 1e9 / 1e3)).padStart(6, '0')}`;

	check(got.length === recording.samples.length, `${got.length} samples`);
	// As stackcollapse-perf.pl --all tells frames of the kernel; and those of [vdso], which perf calls so, too.
	const isKernel = ([, file]) => /^\[|vmlinux$/.test(file) && !/unknown|^\[vdso\]$/.test(file);
	for (const [i, s] of recording.samples.entries())
		check(got[i]?.frames?.every((f, k) => isKernel(f) === (s.frames[k].kind === 'kernel')), `sample ${i}: frames of the kernel`);
	for (const [i, s] of recording.samples.entries()) {
		const [comm, pid, tid] = threadOf(recording, s.thread);
		const expected = { comm, pid, tid, cpu: s.cpu, time: micros(s.ts_ns), value: s.value, event: 'cpu-clock',
			frames: s.frames.map(f => [functionOf(f), fileOf(f)]) };

		check(JSON.stringify(got[i]) === JSON.stringify(expected),
			`sample ${i}: ${JSON.stringify(got[i])?.slice(0, 300)}, not ${JSON.stringify(expected).slice(0, 300)}`);
	}

	const { profiles, errors, said } = await speedscope.load(consumer, `${recording.name}.linux-perf.txt`, bytes);
	check(!errors.length, errors.join('; '));
	check(said.includes('Importing as output of linux perf script'), `imported: ${said.join('; ')}`);

	const threads = new Map();
	for (const s of recording.samples) {
		const [comm, pid, tid] = threadOf(recording, s.thread);
		const name = `${comm} pid: ${pid} tid: ${tid}`;

		threads.set(name, [...threads.get(name) ?? [], { ...s, time: +micros(s.ts_ns) }]);
	}
	check(profiles.length === threads.size, `${profiles.length} profiles, not ${threads.size}`);
	for (const profile of profiles) {
		const samples = threads.get(profile.name) ?? [];
		const weight = weights(samples.map(s => s.time));
		const sums = recording.sums(keyOf, { samples: samples.map((s, i) => ({ ...s, value: weight[i] })) });
		const rounded = (name, file, self, total) => [JSON.stringify([name, file]), [self, total].map(v => v.toFixed(5))];

		checkMaps(new Map(profile.frames.filter(f => f[4] > 1e-7).map(([name, file, , self, total]) => rounded(name, file, self, total))),
			new Map([...sums].filter(([, s]) => s.total > 1e-7)
				.map(([key, s]) => rounded(...JSON.parse(key), s.self, s.total))), profile.name);
	}
}
