// SPDX-License-Identifier: GPL-2.0-only
//
// callgrind_annotate: own and inclusive costs of functions, and of calls.
import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';

export function missing() {
	try {
		execFileSync('sh', ['-c', 'command -v callgrind_annotate'], { stdio: 'ignore' });
		return null;
	} catch {
		return 'no callgrind_annotate';
	}
}

export const open = dir => ({ dir });

// What is in a stack more often is one function.
const MAX_DEPTH = 32;

// In a directory of its own: it takes the current one off the names of some files only.
function annotate(consumer, ...args) {
	return execFileSync('callgrind_annotate', ['--auto=no', '--threshold=100', '--show-percs=no', ...args,
		'callgrind.out'], { cwd: consumer.dir, encoding: 'utf8', maxBuffer: 1 << 30, stdio: ['ignore', 'pipe', 'pipe'] });
}

const number = s => s === '.' ? 0 : +s.replaceAll(',', '');
const COSTS = /^ *([\d,.]+) +([\d,.]+) /;

// {"file:name [object]": [value, samples]}
function functions(text) {
	const rows = new Map();

	for (const line of text.split(/^-+$/m).at(-1).split('\n')) {
		const m = line.match(COSTS);

		if (m)
			rows.set(line.slice(m[0].length).trimStart(), [number(m[1]), number(m[2])]);
	}
	return rows;
}

const nameOf = name => name.replace(/^[ \t]+/, '').trimEnd() || '???';
const keyOf = f => `${nameOf(f.file)}:${nameOf(f.name)}`;
const titleOf = (recording, thread) => {
	const { tid, process } = recording.threads[thread];

	return ` (pid ${recording.processes[process].pid}, tid ${tid})`;
};

// Names may hold brackets, those of objects here no " [".
const withoutObject = row => row.slice(0, row.lastIndexOf(' [')).trimEnd();

// Rows without their object, those of recursions put to those of the functions if @merge, else left out.
function byFunction(rows, merge) {
	const sums = new Map(), threads = new Map();

	for (const [row, [value, samples]] of rows) {
		let key = withoutObject(row);
		const recursion = key.match(/'([2-9]|[1-9]\d+)$/);

		if (key.startsWith('[threads]:')) {
			key = key.slice(key.lastIndexOf(' (pid '));
			const at = [...threads.get(key) ?? [0, 0]];
			threads.set(key, [at[0] + value, at[1] + samples]);
			continue;
		}
		if (recursion && !merge)
			continue;
		key = recursion ? key.slice(0, recursion.index).trimEnd() : key;
		const at = sums.get(key) ?? [0, 0];
		sums.set(key, [at[0] + value, at[1] + samples]);
	}
	return { sums, threads };
}

const nonZero = map => new Map([...map].filter(([, [, samples]]) => samples));

// As KCachegrind reads numbers of functions (compressedFunction() of libcore/cachegrindloader.cpp): a number is the
// function that it stood at first, with the file of that place. Own costs by "file:name".
function ownByNumber(text) {
	const files = new Map(), functions = new Map(), own = new Map();
	let file, fn, isCall = false;
	const put = (map, number, value) => map.set(number, map.get(number) ?? value).get(number);

	for (const line of text.split('\n')) {
		const m = line.match(/^(c?)(fl|fi|fn)=\((\d+)\)(?: (.*))?$/);

		if (m?.[2] === 'fn') {
			const found = put(functions, m[3], `${file}:${m[4]}`);
			fn = m[1] ? fn : found;
		} else if (m) {
			file = put(files, m[3], m[4]);
		} else if (/^calls=/.test(line)) {
			isCall = true;
		} else if (/^\d+ \d+ \d+$/.test(line)) {
			const [, value, samples] = line.split(' ').map(Number);
			const at = own.get(fn) ?? [0, 0];

			if (!isCall)
				own.set(fn, [at[0] + value, at[1] + samples]);
			isCall = false;
		}
	}
	return own;
}

export function validate(consumer, recording, { check, checkMaps }) {
	const bytes = recording.export('callgrind');
	writeFileSync(join(consumer.dir, 'callgrind.out'), bytes);
	const sums = recording.sums(keyOf);
	const expected = (value, samples) => nonZero(new Map([...sums].map(([key, s]) => [key, [s[value], s[samples]]])));
	const own = byFunction(functions(annotate(consumer)), true);
	const inclusive = byFunction(functions(annotate(consumer, '--inclusive=yes')), false);

	checkMaps(nonZero(own.sums), expected('self', 'samples'), 'own');
	// With the object, which rows of callgrind_annotate end in.
	const numbered = new Map([...ownByNumber(bytes.toString())].map(([key, sums]) => [`${key} [`, sums]));
	checkMaps(nonZero(byFunction(numbered, true).sums), expected('self', 'samples'), 'own by number');
	checkMaps(nonZero(inclusive.sums), expected('total', 'total_samples'), 'inclusive');

	const all = recording.samples.reduce((sum, s) => sum + s.value, 0);
	for (const [row, [value, samples]] of functions(annotate(consumer, '--inclusive=yes')))
		check(withoutObject(row).endsWith(`'${MAX_DEPTH}`) || (value <= all && samples <= recording.samples.length),
			`more than 100 %: ${row.slice(0, 200)}`);

	const threads = new Map();
	for (const s of recording.samples) {
		const at = threads.get(titleOf(recording, s.thread)) ?? [0, 0];
		threads.set(titleOf(recording, s.thread), [at[0] + s.value, at[1] + 1]);
	}
	checkMaps(inclusive.threads, threads, 'threads');
	checkCalls(recording, annotate(consumer, '--inclusive=yes', '--tree=calling'), checkMaps);
}

// Calls between functions, of which each that is in the stack again is another one.
function checkCalls(recording, text, checkMaps) {
	const got = new Map(), expected = new Map();
	let caller;

	for (const line of text.split(/^-+$/m).at(-1).split('\n')) {
		const m = line.match(/^ *([\d,.]+) +([\d,.]+) +(\*|>) +(.*)$/);
		const name = m && withoutObject(m[4]).replace(/ \([\d,]+x\)$/, '').trimEnd();

		if (m && m[3] === '*')
			caller = name;
		else if (m && !caller.startsWith('[threads]'))
			got.set(`${caller} > ${name}`, [number(m[1]), number(m[2])]);
	}
	for (const s of recording.samples) {
		const keys = s.frames.map(keyOf).reverse(), seen = new Map(), calls = new Set();
		const names = keys.map(key => {
			const depth = Math.min((seen.get(key) ?? 0) + 1, MAX_DEPTH);
			seen.set(key, depth);
			return depth > 1 ? `${key}'${depth}` : key;
		});
		for (let i = 1; i < names.length; i++)
			calls.add(`${names[i - 1]} > ${names[i]}`);
		for (const call of calls) {
			const at = expected.get(call) ?? [0, 0];
			expected.set(call, [at[0] + s.value, at[1] + 1]);
		}
	}
	checkMaps(nonZero(got), expected, 'calls');
}
