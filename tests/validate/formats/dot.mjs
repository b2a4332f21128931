// SPDX-License-Identifier: GPL-2.0-only
//
// graphviz: it draws the graph as SVG, and gives back the nodes and edges that it read, as JSON.
import { execFileSync } from 'node:child_process';
import { basename } from 'node:path';

const dot = (format, input) => execFileSync('dot', [`-T${format}`], { input, maxBuffer: 1 << 30 }).toString();

export function missing() {
	try {
		execFileSync('dot', ['-V'], { stdio: 'ignore' });
		return null;
	} catch {
		return 'no dot (Debian: graphviz)';
	}
}

// Names are cut after 200 characters.
const cut = s => [...s].length > 200 ? [...s].slice(0, 200).join('') + '…' : s;
const put = (map, key, row) => map.set(key, [...map.get(key) ?? [], row].sort());

export const open = dir => ({ dir });

export function validate(consumer, recording, { check, checkMaps }) {
	const text = recording.export('dot');
	const graph = JSON.parse(dot('json', text));
	const nodes = graph.objects ?? [], edges = graph.edges ?? [];
	const keyOf = f => JSON.stringify([f.kind, f.name, f.place, f.funcLine]);
	const all = recording.withPlaceholder();
	const total = all.samples.reduce((sum, s) => sum + s.value, 0);
	const shown = f => [cut(f.name), f.file ? cut(basename(f.file)) + (f.funcLine ? `:${f.funcLine}` : '') : ''].join('\n');
	const first = label => label.replaceAll('\\"', '"').split(/(?<!\\)\\n/).slice(0, 2).map(l => l.replaceAll('\\\\', '\\'));
	const rows = new Map(), expected = new Map();
	const sums = [...all.sums(keyOf)].map(([key, s]) => {
		const [, name, file, funcLine] = JSON.parse(key);

		return { key, label: shown({ name, file, funcLine }), ...s };
	}).filter(s => s.total).sort((a, b) => b.total - a.total);
	// Those with a share of a 200th, at most 80. Where the 80th and the 81st are equal, either may be there.
	const drawn = sums.filter(s => s.total >= Math.floor(total / 200)).slice(0, 80);

	check((dot('svg', text).match(/<g id="node/g) ?? []).length === drawn.length, `nodes in the SVG`);
	check(nodes.length === drawn.length, `${nodes.length} nodes, not ${drawn.length}`);
	if (sums.length <= 80 || sums[79].total !== sums[80].total) {
		for (const n of nodes) {
			const [name, place] = first(n.label);

			put(rows, name + '\n' + (/^[0-9.,]+( [a-zµ]+)? \([0-9.]+%\)$/i.test(place) ? '' : place), `${n.self} ${n.total}`);
		}
		for (const s of drawn)
			put(expected, s.label, `${s.self} ${s.total}`);
		checkMaps(rows, expected, 'boxes');
	}
	// Values of edges, whose ends are known by their totals.
	const ends = sums.length === drawn.length ? all.edges(keyOf) : null;

	if (ends) {
		const totals = new Map(sums.map(s => [s.key, `${s.self} ${s.total}`]));
		const got = edges.map(e => `${nodes[e.tail].self} ${nodes[e.tail].total} > ${nodes[e.head].self} ${nodes[e.head].total}: ${e.value}`);
		const want = [...ends].filter(([, v]) => v && v >= Math.floor(total / 1000)).map(([edge, v]) => [...edge.split('\n'), v])
			.filter(([a, b]) => a && b).map(([a, b, v]) => `${totals.get(a)} > ${totals.get(b)}: ${v}`);

		check(JSON.stringify(got.sort()) === JSON.stringify(want.sort()), `edges`);
	}
}
