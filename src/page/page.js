// What the flame graph and the other pages of rbpf have in common: numbers and text, elements, the
// data of a page, the list of keys.
'use strict';
const page = (() => {

// Elements.
function make(parent, name, attributes, text) {
	const e = document.createElementNS(parent.namespaceURI, name);
	for (const key in attributes)
		e.setAttribute(key, attributes[key]);
	if (text !== undefined)
		e.textContent = text;
	return parent.appendChild(e);
}

function set(e, name, value) {
	value = String(value);
	if (e.getAttribute(name) !== value)
		e.setAttribute(name, value);
}

// By mouse, or by Enter and Space of who has the focus on it.
function onActivate(e, f) {
	e.addEventListener('click', f);
	e.addEventListener('keydown', ev => {
		if (ev.key !== 'Enter' && ev.key !== ' ')
			return;
		ev.preventDefault();
		ev.stopPropagation();
		f(ev);
	});
}

// Numbers, as number.h writes them.
function percent(part, whole) {
	const p = whole ? part / whole * 100 : 0;
	if (p === 0 || p === 100)
		return p + '%';
	return p < 0.005 ? '<0.01%' : p.toFixed(p < 0.995 ? 2 : 1) + '%';
}

const count = n => String(n).replace(/\B(?=(\d{3})+$)/g, ',');

// With three digits or more.
function duration(ns) {
	if (!ns)
		return '0 s';
	for (const [unit, size] of [['s', 1e9], ['ms', 1e6], ['µs', 1e3]]) {
		const v = ns / size;
		if (v < 0.9995)
			continue;
		const digits = v < 9.995 ? 2 : v < 99.95 ? 1 : 0, [whole, part] = v.toFixed(digits).split('.');
		return count(whole) + (part ? '.' + part : '') + ' ' + unit;
	}
	return Math.round(ns) + ' ns';
}

const bytes = n => n < 1000 ? n + ' B' : n < 1e6 ? (n / 1e3).toFixed(1) + ' kB' :
	n < 1e9 ? (n / 1e6).toFixed(1) + ' MB' : (n / 1e9).toFixed(1) + ' GB';

// A value of an event in its unit.
const amount = (v, unit) => unit === 'ns' ? duration(v) : unit === 'bytes' ? bytes(v) : count(v);

// A time that an option of the command line takes, exactly.
function option(ns) {
	const s = String(Math.round(ns)).padStart(10, '0');
	return `${s.slice(0, -9)}.${s.slice(-9)}`.replace(/\.?0+$/, '') + 's';
}

const quote = s => /^[\w./:=@%+,-]+$/.test(s) ? s : `'${s.replace(/'/g, "'\\''")}'`;

// The command line that draws the flame graph of what the page shows, with more @options.
function flameCommand(about, options) {
	const filters = about.filters.slice();
	if (!filters.includes('--event') && !filters.includes('--state') && !about.usual_event)
		filters.push('--event', about.event);
	const recording = /^-./.test(about.recording) ? './' + about.recording : about.recording;
	return ['rbpf flame', ...[...filters, ...options, recording].map(quote), '> out.svg'].join(' ');
}

// Round times for an axis of @n marks from @from to @to, with their texts.
function marks(from, to, n) {
	const rough = (to - from) / n, power = 10 ** Math.floor(Math.log10(rough));
	const step = [1, 2, 5, 10].map(f => f * power).find(s => s >= rough) || power;
	const list = [];
	const [unit, size] = step >= 1e9 ? ['s', 1e9] : step >= 1e6 ? ['ms', 1e6] :
		step >= 1e3 ? ['µs', 1e3] : ['ns', 1];
	for (let i = Math.ceil(from / step); i * step <= to; i++) {
		const at = i * step;
		list.push([at, unit === 's' || at % 1e9 === 0 ? count(+(at / 1e9).toFixed(3)) + ' s' :
			at >= 1e9 ? (at / 1e9).toFixed(Math.max(0, Math.ceil(-Math.log10(step / 1e9) - 1e-9))) + ' s' :
				count(Math.round(at / size)) + ' ' + unit]);
	}
	return list;
}

// Text that fits into cells of monospace, by the rules of flame_text.c.
const isWide = c => c >= 0x2e80 || c >= 0x1100 && c < 0x1160;
const ascii = s => /^[\0-\x7f]*$/.test(s);

function cells(s) {
	let n = 0;
	if (ascii(s))
		return s.length;
	for (const c of s)
		n += isWide(c.codePointAt(0)) ? 2 : 1;
	return n;
}

function cutMiddle(s, room) {
	const chars = [...s], tail = room - 1 >> 1, head = room - 1 - tail;
	let used = 0, left = cells(s), i = 0;
	for (; used + cells(chars[i]) <= head; i++)
		used += cells(chars[i]);
	left -= used;
	let k = i;
	while (left > tail)
		left -= cells(chars[k++]);
	return chars.slice(0, i).join('') + '…' + chars.slice(k).join('');
}

function fit(s, room) {
	if (room < 3)
		return '';
	if (cells(s) <= room)
		return s;
	s = s.replace(/^block (?:\((\d+) levels\) )?in /, (_, levels) => `blk${levels || ''} `);
	if (cells(s) <= room)
		return s;
	s = s.replace(/[\w\u0080-\uffff]+::(?=[\w\u0080-\uffff])/g, '');
	return cells(s) <= room ? s : cutMiddle(s, room);
}

// The data of a page (html.h).
const json = id => JSON.parse(document.getElementById(id).textContent);

// Reads numbers of base64 one by one: LEB128, each call the next.
function numbers(id) {
	const packed = atob(document.getElementById(id).textContent);
	let at = 0;
	return {
		byte: () => packed.charCodeAt(at++),
		next() {
			let v = 0, factor = 1, b;
			do {
				b = packed.charCodeAt(at++);
				v += (b & 127) * factor;
				factor *= 128;
			} while (b > 127);
			return v;
		},
	};
}

// What page_tree_write() has packed: for each node its parent, its label and, if @more, what follows.
function nodes(id, labels, more) {
	const data = numbers(id), n = data.next(), list = [{parent: null, name: 'all', place: ''}];
	for (let i = 1; i <= n; i++) {
		const parent = list[i - data.next()], [name, place] = labels[data.next()];
		list.push({parent, name, place, ...more && more(data)});
	}
	return list;
}

// The list of keys, a box of HTML wherever it is.
function keysBox(parent, keys) {
	const box = parent.appendChild(document.createElementNS('http://www.w3.org/1999/xhtml', 'div'));
	box.className = 'keys';
	box.setAttribute('role', 'dialog');
	box.setAttribute('aria-label', 'Keys');
	const table = make(box, 'table', {});
	for (const [key, what] of keys) {
		const row = make(table, 'tr', {});
		make(row, 'th', {}, key);
		make(row, 'td', {}, what);
	}
	return box;
}

// Call @f when colours may have changed: they are read from styles where a canvas is painted.
function onColors(f) {
	for (const query of ['(prefers-color-scheme:dark)', '(prefers-contrast:more)', 'print'])
		matchMedia(query).addEventListener('change', f);
}

const color = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

// The head of a page, with what @about says of the recording.
function head(about) {
	document.body.className = 'page';
	const header = make(document.body, 'header', {});
	make(header, 'h1', {}, about.title);
	make(header, 'p', {class: 'facts'}, about.facts.join(' · '));
	if (about.warnings.length)
		make(header, 'p', {class: 'warn'}, about.warnings.join(' · '));
	for (const note of about.notes)
		make(header, 'p', {class: 'note'}, note);
	return header;
}

function foot(about) {
	const p = make(document.body, 'footer', {}).appendChild(document.createElement('p'));
	p.textContent = [about.generator, about.command && 'recorded by: ' + about.command,
		about.drawn_by && 'drawn by: ' + about.drawn_by].filter(Boolean).join(' · ');
	return p;
}

return {make, set, onActivate, percent, count, duration, amount, option, quote, flameCommand, marks, cells, fit,
	json, numbers, nodes, keysBox, onColors, color, head, foot};
})();
