// SPDX-License-Identifier: GPL-2.0-only
//
// What Chromium makes of the pages of timeline and heatmap, by mouse and by keys. What they show adds up
// to what `rbpf report` says of the same recording.
//
// usage: node pages.mjs RECORDING LONG-RECORDING [SCREENSHOT-DIR]     both of pages_sample; of the second
//        too little fits into a page
//
// Prints a line for each failure and "N passed, N failed"; fails if anything did.
import { createRequire } from 'node:module';
import { execFileSync, execSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

const require = createRequire(join(process.env.NODE_MODULES ?? process.cwd(), 'package.json'));
const { chromium } = require('playwright-core');
const rbpf = process.env.RBPF ?? './rbpf';
const [recording, long, shots] = process.argv.slice(2);
const STATES = ['user', 'system', 'minor-fault', 'wait-cpu', 'throttled', 'gvl', 'lock', 'fault', 'disk', 'network', 'pipe', 'timer', 'join',
	'child', 'stopped', 'other', 'idle'];

let passed = 0, failed = 0;
function check(condition, what) {
	if (condition) {
		passed++;
	} else {
		failed++;
		console.log(`FAIL: ${what}`);
	}
}
const near = (a, b, tolerance) => Math.abs(a - b) <= tolerance;

const dir = mkdtempSync(join(tmpdir(), 'rbpf-pages-'));
const browser = await chromium.launch({
	executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
	args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run',
		'--disable-background-networking', '--disable-component-update', '--disable-sync', `--disk-cache-dir=${dir}`],
});
const report = (...args) => JSON.parse(execFileSync(rbpf, ['report', '--json', ...args], { maxBuffer: 1 << 28 }));
let pages = 0;
function make(command, ...args) {
	const file = join(dir, `page${pages++}.html`);
	execFileSync(rbpf, [command, '-o', file, ...args]);
	return file;
}

const errors = [];
async function withPage(file, options, body) {
	const context = await browser.newContext({ viewport: { width: 1400, height: 900 }, ...options });
	const page = await context.newPage();
	page.on('pageerror', e => errors.push(e.message));
	page.on('dialog', d => { errors.push(`a name was run: ${d.message()}`); d.dismiss(); });
	page.on('console', m => m.type() === 'error' && errors.push(m.text()));
	page.on('request', r => r.url().startsWith('file:') || errors.push(`request: ${r.url()}`));
	await page.goto(pathToFileURL(file).href + (options.hash ?? ''));
	await settle(page);
	await body(page);
	await context.close();
}
const settle = page => page.evaluate(() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done))));
const shoot = async (page, name) => {
	if (shots)
		await page.screenshot({ path: join(shots, `${name}.png`) });
};
const key = async (page, ...keys) => {
	for (const k of keys)
		await page.keyboard.press(k);
	await settle(page);
};
const visible = (page, selector) => page.evaluate(s => {
	const e = document.querySelector(s);
	return !!e && !e.hidden && getComputedStyle(e).display !== 'none';
}, selector);

// What is wrong with any page: markup of names, elements that names made, what overflows.
async function checkPage(page, what) {
	const made = await page.evaluate(() => [...document.querySelectorAll('img,b[onerror],iframe,object')].length);
	check(made === 0, `${what}: no name has become markup`);
	check(await page.evaluate(() => document.documentElement.scrollWidth <= window.innerWidth), `${what}: nothing is wider than the window`);
	check(await page.evaluate(() => {
		const run = document.createElement('script');
		run.textContent = 'window.injected = true';
		document.body.append(run);
		const style = document.createElement('style');
		style.textContent = 'h1{font-size:99px}';
		document.body.append(style);
		return !window.injected && getComputedStyle(document.querySelector('h1')).fontSize !== '99px';
	}), `${what}: the policy stops scripts and styles that are not its own`);
	check(errors.splice(0).every(e => e.includes('Content Security Policy') || e.includes('Content-Security-Policy')), `${what}: no errors`);
}

// Colours: what is text can be read.
const luminance = css => {
	const [r, g, b] = css.match(/[\d.]+/g).slice(0, 3).map(v => (v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
	return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};
async function checkColors(file, name) {
	for (const options of [{ colorScheme: 'light' }, { colorScheme: 'dark' }, { colorScheme: 'dark', contrast: 'more' }])
		await withPage(file, options, async page => {
			const what = `${name}, ${Object.values(options).join(' ')}`;
			const [background, texts] = await page.evaluate(() => [getComputedStyle(document.body).backgroundColor,
				[...document.querySelectorAll('h1,p,.legend span,button:enabled,.row .name *')].map(e => getComputedStyle(e).color)]);
			check((luminance(background) < 0.05) === (options.colorScheme === 'dark'), `${what}: background`);
			const least = Math.min(...texts.map(c => {
				const [high, low] = [luminance(c), luminance(background)].sort((x, y) => y - x);
				return (high + 0.05) / (low + 0.05);
			}));
			check(least >= (options.contrast ? 7 : 4.5), `${what}: contrast ${least.toFixed(1)}`);
			await shoot(page, what.replace(/\W+/g, '-'));
		});
	await withPage(file, { colorScheme: 'dark' }, async page => {
		await page.emulateMedia({ media: 'print', colorScheme: 'dark' });
		const background = await page.evaluate(() => getComputedStyle(document.body).backgroundColor);
		check(luminance(background) > 0.9, `${name}: printed on white`);
		check(!await visible(page, '.bar'), `${name}: buttons are not printed`);
	});
}

// --- timeline ---

// Each row against the report; and its spans, whose CPU time is that of the samples.
async function checkSums(page, args, what) {
	const states = report('--states', '--event', 'wall', ...args), sampled = report('--by', 'thread', '--event', 'wall', ...args);
	const rows = await page.evaluate(() => timeline.rows.map(row => ({ tid: row.tid, pid: row.pid, states: row.states,
		name: row.name, sum: row.sum, spans: [...row.spans.value].reduce((a, b) => a + b, 0),
		byState: [...row.spans.value].reduce((sums, v, i) => (sums[row.spans.head[i] & 31] += v, sums), Array(row.states.length).fill(0)),
		samples: [...row.spans.samples].reduce((a, b) => a + b, 0) })));
	check(rows.length === states.rows.length, `${what}: as many rows as threads`);
	const colors = await page.evaluate(words => words.map(word => getComputedStyle(document.documentElement).getPropertyValue(`--state-${word}`)), STATES);
	check(colors.every(c => c) && new Set(colors).size === STATES.length, `${what}: each state has a colour of its own`);
	for (const row of rows) {
		const want = states.rows.find(r => r.tid === row.tid && r.pid === row.pid);
		check(want && STATES.every((s, i) => want.states[s] === row.states[i]), `${what}: states of ${row.tid}`);
		check(want && want.name.startsWith(row.name), `${what}: name of ${row.tid}`);
		check(row.states.every((v, i) => v === row.byState[i]), `${what}: spans of ${row.tid} add up by state`);
		const self = sampled.rows.find(r => r.tid === row.tid);
		check(self && self.self_ns === row.spans && self.samples === row.samples, `${what}: spans of ${row.tid} are its samples`);
	}
	const order = rows.map(row => row.pid);
	check(order.every((pid, i) => !i || pid === order[i - 1] || !order.slice(0, i).includes(pid)), `${what}: grouped by process`);
}

const timeline = make('timeline', recording);
await withPage(timeline, {}, async page => {
	await checkSums(page, [recording], 'timeline');
	await shoot(page, 'timeline');
	check(!(await page.evaluate(() => document.querySelector('.note'))), 'timeline: nothing is merged');
	check(await page.evaluate(() => timeline.rows.every((row, r) => {
		const s = row.spans;
		for (let i = 1; i < s.n; i++)
			if (s.start[i] < s.start[i - 1] + s.len[i - 1] - 1)
				return false;
		return true;
	})), 'timeline: spans of a thread do not overlap');
	const texts = await page.evaluate(() => document.body.innerText);
	check(texts.includes('<script>alert(1)</script>') && texts.includes('</script><img src=x onerror=alert(1)>'), 'timeline: names are text');

	// the pixels of a row: what gather() says of a column is what is painted
	const painted = await page.evaluate(() => {
		const row = timeline.rows[0], context = row.canvas.getContext('2d');
		const w = row.canvas.width, height = Math.round(20 * Math.min(2, devicePixelRatio));
		const data = context.getImageData(0, 0, w, height).data;
		let colored = 0;
		for (let i = 3; i < data.length; i += 4)
			colored += data[i] > 0;
		// spans do not overlap, so the time that is known is that of all
		return [colored / w / height, row.spans.len.reduce((a, b) => a + b, 0) / (timeline.view.to - timeline.view.from)];
	});
	check(near(painted[0], painted[1], 0.01), `timeline: the painted part ${painted[0].toFixed(3)} is the known time ${painted[1].toFixed(3)}`);

	// zoom by wheel, drag and keys
	const view = () => page.evaluate(() => ({ ...timeline.view }));
	const whole = await view(), width = v => v.to - v.from;
	const box = await page.locator('.row canvas').first().boundingBox();
	await page.mouse.move(box.x + box.width / 4, box.y + 10);
	await page.mouse.wheel(0, -600);
	await settle(page);
	const wheeled = await view(), at = whole.from + width(whole) / 4;
	check(width(wheeled) < width(whole) / 2 && near((at - wheeled.from) / width(wheeled), 0.25, 0.01), 'timeline: the wheel zooms, what is under the mouse stays');
	const sums = await page.evaluate(() => timeline.rows.map(row => [...timeline.gather(row)]));
	const naive = await page.evaluate(() => timeline.rows.map(({ spans: s }) => {
		const ret = Array(15).fill(0), { from, to } = timeline.view;
		for (let i = 0; i < s.n; i++) {
			const part = Math.max(0, Math.min(to, s.start[i] + s.len[i]) - Math.max(from, s.start[i]));
			ret[s.head[i] & 31] += s.len[i] ? s.value[i] * part / s.len[i] : 0;
		}
		return ret;
	}));
	check(sums.every((row, r) => row.slice(0, 14).every((v, i) => near(v, naive[r][i], 2))), 'timeline: sums of what is shown');
	check((await page.evaluate(() => location.hash)).length > 3, 'timeline: the zoom is in the URL');
	await page.reload();
	await settle(page);
	check(near(width(await view()), width(wheeled), 2), 'timeline: the zoom after a reload');
	await key(page, '0');
	check(width(await view()) === width(whole), 'timeline: 0 shows all');
	await page.mouse.move(box.x + 100, box.y + 10);
	await page.mouse.down();
	await page.mouse.move(box.x + 300, box.y + 10, { steps: 4 });
	check(await visible(page, '#band'), 'timeline: what is dragged is seen');
	await page.mouse.up();
	await settle(page);
	check(near(width(await view()) / width(whole), 200 / box.width, 0.003), 'timeline: a drag zooms');
	await key(page, 'Escape', '+', '+');
	check(near(width(await view()), width(whole) / 4, 2), 'timeline: + zooms');
	const before = await view();
	await key(page, 'ArrowRight');
	check(near((await view()).from - before.from, width(before) / 5, 2), 'timeline: an arrow moves');
	await key(page, '-', '-', '-');
	check(width(await view()) === width(whole), 'timeline: - ends at all');

	// a span by mouse: its state, length and stack
	const target = await page.evaluate(() => {
		const row = timeline.rows[1], s = row.spans;
		let i = 0;
		for (let k = 0; k < s.n; k++)
			if (s.len[k] > s.len[i])
				i = k;
		timeline.setView(s.start[i] - s.len[i], s.start[i] + 2 * s.len[i]);
		return i;
	});
	await settle(page);
	const second = await page.locator('.row canvas').nth(1).boundingBox();
	await page.mouse.click(second.x + second.width / 2, second.y + 10);
	await settle(page);
	const chosen = await page.evaluate(() => ({ i: timeline.chosen.i, text: document.querySelector('#details').innerText,
		code: document.querySelector('#details code').textContent,
		value: timeline.chosen.row.spans.value[timeline.chosen.i], depth: document.querySelectorAll('#details li').length }));
	check(chosen.i === target, 'timeline: a click chooses the span');
	check(chosen.text.includes('/app/<x> & y.rb:7') && chosen.depth > 2, 'timeline: its stack is shown');
	await shoot(page, 'timeline-span');
	// the command line draws that very span: run by a shell, as it was copied
	const svg = join(dir, 'span.svg');
	execSync(chosen.code.replace('rbpf', `'${rbpf}'`).replace('out.svg', `'${svg}'`));
	check(readFileSync(svg, 'utf8').includes(`data-total="${chosen.value}"`), 'timeline: the command line draws the span');
	await key(page, 'n');
	check(await page.evaluate(() => timeline.chosen.i) === target + 1, 'timeline: n is the next span');
	await key(page, 'N', 'N');
	check(await page.evaluate(() => timeline.chosen.i) === target - 1, 'timeline: N the one before');
	await key(page, 'z');
	const span = await page.evaluate(() => [timeline.chosen.row.spans.len[timeline.chosen.i], timeline.view.to - timeline.view.from]);
	check(near(span[1], Math.max(1000, 2 * Math.max(span[0], 1000)), 2), 'timeline: z zooms to it');
	await key(page, 'ArrowDown');
	check(await page.evaluate(() => timeline.current.i) === 2, 'timeline: the row below');
	await key(page, '?');
	check(await visible(page, '.keys'), 'timeline: ? shows keys');
	await shoot(page, 'timeline-help');
	await key(page, 'Escape');
	check(!await visible(page, '.keys'), 'timeline: Esc hides them');

	// a request
	await key(page, 'Escape', 'Escape', '0');
	const served = page.locator('.row.served canvas');
	check(await served.count() === 2, 'timeline: two rows serve requests');
	const lane = await served.first().boundingBox();
	await page.mouse.click(lane.x + lane.width / 2, lane.y + 27);
	await settle(page);
	const requestText = await page.evaluate(() => document.querySelector('#details h2').textContent);
	check(/^(OrdersController#index|<i>Carts<\/i>#show|UsersController#create): /.test(requestText), `timeline: a request: ${requestText}`);

	// legend
	const totals = report('--states', recording).rows.reduce((sum, row) => sum + row.states.gvl, 0);
	check(await page.evaluate(i => timeline.about.all.states[i], STATES.indexOf('gvl')) === totals, 'timeline: the legend has the sum of all');
	const pixel = () => page.evaluate(() => [...timeline.rows[0].canvas.getContext('2d').getImageData(0, 0, 600, 18).data].filter((v, i) => i % 4 === 3 && v).length);
	const full = await pixel();
	await page.locator('.legend button').nth(0).click();
	await settle(page);
	check(await pixel() < full && await page.getAttribute('.legend button', 'aria-checked') === 'false', 'timeline: a state can be hidden');
	await page.locator('.legend button').nth(0).click();
	await settle(page);
	check(await pixel() === full, 'timeline: and shown again');
	await checkPage(page, 'timeline');
});
await checkColors(timeline, 'timeline');
await withPage(make('timeline', '--from', '3s', '--to', '5s', '--pid', '40', recording), {}, async page => {
	await checkSums(page, ['--from', '3s', '--to', '5s', '--pid', '40', recording], 'timeline of a part');
	check(await page.evaluate(() => timeline.view.from === 3e9 && timeline.view.to === 5e9), 'timeline of a part: that part is shown');
});

// of CPU time alone: the numbers are those of report --by thread
await withPage(make('timeline', '--event', 'cpu', recording), {}, async page => {
	const want = report('--by', 'thread', '--event', 'cpu', recording).rows;
	const rows = await page.evaluate(() => timeline.rows.map(row => ({ tid: row.tid, sum: row.sum })));
	check(rows.length === want.length && rows.every(row => want.find(r => r.tid === row.tid).self_ns === row.sum), 'timeline of CPU time: sums');
});

// more than fits: merged, said so, and nothing is lost
const merged = make('timeline', '--max-size', '200K', long);
check(statSync(merged).size < 200 * 1024 + 60000, `merged: the page has ${statSync(merged).size} bytes`);
await withPage(merged, {}, async page => {
	await checkSums(page, [long], 'merged');
	check((await page.textContent('.note')).includes('are merged'), 'merged: it says so');
	check(await page.evaluate(() => timeline.about.width) > 1e6, 'merged: there is a width');
	await shoot(page, 'timeline-merged');
});

// --- heat map ---
const heatmap = make('heatmap', recording);
const total = report('--by', 'process', recording).rows.reduce((sum, row) => sum + row.self_ns, 0);
const framesOf = svg => [...svg.matchAll(/<g class="[^"]*" data-x="(\d+)" data-w="(\d+)" data-d="(\d+)"[^>]*><title>([^\n<]*)/g)]
	.map(([, x, w, d, name]) => `${x} ${w} ${d} ${name.replace(/&lt;/g, '<').replace(/&gt;/g, '>').replace(/&quot;/g, '"').replace(/&amp;/g, '&')}`);
const framesIn = page => page.evaluate(() => [...document.querySelectorAll('#frames > g')].map(g =>
	`${g.dataset.x} ${g.dataset.w} ${g.dataset.d} ${g.children[0].textContent.split('\n')[0]}`));

async function checkSelection(page, what, exact = true) {
	const { range, sum, code, own } = await page.evaluate(() => {
		const range = heatmap.selected;
		return { range: range && { from: heatmap.startOf(range.from), to: heatmap.endOf(range.to) },
			sum: heatmap.sum(range || { from: 0, to: heatmap.cells.length - 1 }),
			code: document.querySelector('.selection code').textContent, own: +document.querySelector('#frames').dataset.total };
	});
	const svg = join(dir, 'range.svg');
	check(sum === own, `${what}: the flame graph has the sum of the cells`);
	if (!sum)
		return;
	execSync(code.replace('rbpf', `'${rbpf}'`).replace('out.svg', `'${svg}'`).replace(' > ', ' --min-width 0 > '));
	const text = readFileSync(svg, 'utf8'), all = text.slice(text.indexOf('<g id="frames"'), text.indexOf('</g>\n<g id="app"') + 1 || undefined);
	check(text.includes(`data-total="${sum}"`), `${what}: the command line gives the same sum${range ? ` (${code})` : ''}`);
	if (exact) {
		const want = framesOf(all).sort(), got = (await framesIn(page)).sort();
		check(want.length > 3 && want.join('\n') === got.join('\n'), `${what}: the flame graph is that of rbpf flame (${want.length}, ${got.length} frames)`);
	}
}

await withPage(heatmap, {}, async page => {
	const sum = await page.evaluate(() => heatmap.cells.reduce((a, b) => a + b, 0));
	check(sum === total, 'heatmap: cells add up to the report');
	check(await page.evaluate(() => heatmap.about.columns) === 13 && await page.evaluate(() => heatmap.about.rows) === 50, 'heatmap: seconds by 50');
	await checkSelection(page, 'heatmap, all');
	await shoot(page, 'heatmap');
	// colours: a cell with nothing has another than one with most
	const colors = await page.evaluate(() => {
		const { cells } = heatmap, canvas = document.querySelector('#grid'), context = canvas.getContext('2d');
		const w = canvas.width / 13, h = canvas.height / 50;
		return [...cells].map((v, i) => [v, context.getImageData(Math.floor(i / 50) * w + 1, (49 - i % 50) * h + 1, 1, 1).data.slice(0, 3).join()]);
	});
	const empty = new Set(colors.filter(([v]) => !v).map(([, c]) => c)), used = new Set(colors.filter(([v]) => v).map(([, c]) => c));
	check(empty.size === 1 && used.size > 1 && ![...empty].some(c => used.has(c)), 'heatmap: what is used is seen');

	// select by two clicks
	const box = await page.locator('#over').boundingBox(), w = box.width / 13, h = box.height / 50;
	const place = cell => [box.x + (Math.floor(cell / 50) + 0.5) * w, box.y + (49.5 - cell % 50) * h];
	await page.mouse.click(...place(2 * 50 + 10));
	check(await page.evaluate(() => heatmap.anchor) === 110, 'heatmap: a click begins');
	await page.mouse.move(...place(4 * 50 + 30));
	await shoot(page, 'heatmap-selecting');
	await page.mouse.click(...place(4 * 50 + 30));
	check(await page.evaluate(() => heatmap.selected.from === 110 && heatmap.selected.to === 230), 'heatmap: the second click ends');
	const seconds = report('--from', '2.2s', '--to', '4.62s', '--by', 'process', recording).rows.reduce((a, row) => a + row.self_ns, 0);
	check(await page.evaluate(() => heatmap.sum(heatmap.selected)) === seconds, 'heatmap: the range adds up to the report of it');
	await checkSelection(page, 'heatmap, two clicks');
	await shoot(page, 'heatmap-selected');
	await page.reload();
	await settle(page);
	check(await page.evaluate(() => heatmap.selected.from === 110 && heatmap.selected.to === 230), 'heatmap: the selection after a reload');
	// backwards, by a drag
	await page.mouse.move(...place(6 * 50 + 5));
	await page.mouse.down();
	await page.mouse.move(...place(5 * 50 + 45), { steps: 3 });
	await page.mouse.up();
	check(await page.evaluate(() => heatmap.selected.from === 295 && heatmap.selected.to === 305), 'heatmap: a drag selects');
	await checkSelection(page, 'heatmap, drag');
	// keys
	await key(page, 'Escape');
	check(await page.evaluate(() => heatmap.selected) === null, 'heatmap: Esc ends it');
	await page.mouse.move(5, 5);
	await page.focus('#map');
	await key(page, 'ArrowRight', 'ArrowRight', 'ArrowUp', 'Enter', 'ArrowRight', 'Enter');
	check(await page.evaluate(() => heatmap.selected.from === 101 && heatmap.selected.to === 151), 'heatmap: keys select');
	await key(page, 's');
	check(await page.evaluate(() => heatmap.selected.from === 150 && heatmap.selected.to === 199), 'heatmap: s selects the column');
	await checkSelection(page, 'heatmap, a second');
	await key(page, ']');
	check(await page.evaluate(() => heatmap.selected.from === 200 && heatmap.selected.to === 249), 'heatmap: ] is the next one');
	await key(page, '?');
	check(await visible(page, 'body > .keys'), 'heatmap: ? shows keys');
	await shoot(page, 'heatmap-help');
	await key(page, 'Escape');
	check(!await visible(page, 'body > .keys') && await page.evaluate(() => heatmap.selected !== null), 'heatmap: Esc hides them first');
	// the flame graph in it
	const frame = page.locator('#frames > g').nth(2);
	await frame.evaluate(g => g.dispatchEvent(new MouseEvent('click', { bubbles: true })));
	check(await page.evaluate(() => [...document.querySelectorAll('#frames > g')].some(g => g.style.display === 'none' || g.classList.contains('above'))), 'heatmap: a frame zooms');
	await page.fill('#search input', 'Cart');
	await settle(page);
	check((await page.textContent('#matched')).startsWith('matched '), 'heatmap: the search finds');
	const selected = await page.evaluate(() => heatmap.selected.from);
	await page.keyboard.press(']');
	check(await page.evaluate(() => heatmap.selected.from) === selected, 'heatmap: keys of the search are not those of the map');
	await checkPage(page, 'heatmap');
});
await checkColors(heatmap, 'heatmap');
await withPage(make('heatmap', '--state', 'gvl,lock', '--thread', 'worker|main', '--rows', '10', recording), {}, async page => {
	const want = report('--state', 'gvl,lock', '--thread', 'worker|main', '--by', 'thread', recording).rows.reduce((a, row) => a + row.self_ns, 0);
	check(await page.evaluate(() => heatmap.cells.reduce((a, b) => a + b, 0)) === want, 'heatmap of states: cells add up');
	await page.evaluate(() => heatmap.select({ from: 20, to: 55 }));
	await checkSelection(page, 'heatmap of states');
});
// more than fits
const small = make('heatmap', '--max-size', '100K', long);
check(statSync(small).size < 100 * 1024 + 80000, `heatmap of a long one: the page has ${statSync(small).size} bytes`);
await withPage(small, {}, async page => {
	const want = report('--by', 'process', long).rows.reduce((sum, row) => sum + row.self_ns, 0);
	check(await page.evaluate(() => heatmap.cells.reduce((a, b) => a + b, 0)) === want, 'heatmap of a long one: cells add up');
	check((await page.textContent('.note')).length > 10, 'heatmap of a long one: it says what is missing');
	check(await page.evaluate(() => heatmap.about.slot_cells) > 1, 'heatmap of a long one: slots are wider');
	await page.evaluate(() => heatmap.select(heatmap.snap(1234, 5678)));
	await checkSelection(page, 'heatmap of a long one', false);
	await shoot(page, 'heatmap-long');
});

check(errors.length === 0, `no errors in the pages: ${errors.slice(0, 3).join('; ')}`);
await browser.close();
rmSync(dir, { recursive: true, force: true });
console.log(`${passed} passed, ${failed} failed`);
process.exit(failed ? 1 : 0);
