// SPDX-License-Identifier: GPL-2.0-only
//
// What Chromium makes of flame graphs: with and without scripts, by mouse and by keys.
//
// usage: node flame.mjs SVG [SCREENSHOT-DIR]     SVG: that of `flame_sample rails`, or any other
//
// Prints a line for each failure and "N passed, N failed"; fails if anything did.
import { createRequire } from 'node:module';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';

const require = createRequire(join(process.env.NODE_MODULES ?? process.cwd(), 'package.json'));
const { chromium } = require('playwright-core');

const file = resolve(process.argv[2]);
const url = pathToFileURL(file).href;
const shots = process.argv[3];
const PAD = 12;

let passed = 0, failed = 0;
function check(condition, what) {
	if (condition) {
		passed++;
	} else {
		failed++;
		console.log(`FAIL: ${what}`);
	}
}
const near = (a, b, tolerance = 0.02) => Math.abs(a - b) <= tolerance;

const profileDir = mkdtempSync(join(tmpdir(), 'rbpf-chromium-'));
const browser = await chromium.launch({
	executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
	args: ['--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run',
		'--disable-background-networking', '--disable-component-update', '--disable-sync',
		`--disk-cache-dir=${profileDir}`],
});

const errors = [];
// Most tests are of pictures of which nothing is folded, and no state left out.
const UNFOLDED = '#t=0&h=';
async function withPage(options, body) {
	const context = await browser.newContext({ viewport: { width: 1400, height: 800 }, ...options });
	const page = await context.newPage();
	page.on('pageerror', e => errors.push(e.message));
	page.on('console', m => m.type() === 'error' && errors.push(m.text()));
	page.on('request', r => r.url().startsWith('file:') || errors.push(`request: ${r.url()}`));
	await page.goto(url + (options.hash ?? UNFOLDED));
	await body(page);
	await context.close();
}
const shoot = (page, name) => shots ? page.screenshot({ path: join(shots, `${name}.png`) }) : null;

// The frames as they are on the screen.
const readFrames = page => page.evaluate(() => [...document.querySelectorAll('#frames > g')].map((g, i) => {
	const [title, rect, text] = g.children;
	const number = (e, name) => +e.getAttribute(name);
	return {
		i, x: +g.dataset.x, w: +g.dataset.w, d: +g.dataset.d, kind: g.dataset.k,
		name: title.textContent.split('\n')[0], title: title.textContent,
		left: number(rect, 'x'), top: number(rect, 'y'), width: number(rect, 'width'),
		text: text.textContent,
		textRight: text.textContent ? text.getBBox().x + text.getBBox().width : 0,
		shown: getComputedStyle(g).display !== 'none',
		match: g.classList.contains('match'), letter: g.classList[0][0],
		parts: g.dataset.s?.split('.').map(s => s.split(':')).map(([k, n]) => [k, +n]),
		children: [...g.children].map(e => e.localName).join(),
	};
}));
const shownOf = frames => frames.filter(f => f.shown);
const totalOf = page => page.evaluate(() => +document.querySelector('#frames').dataset.total);
const textOf = (page, selector) => page.evaluate(s => document.querySelector(s).textContent, selector);
const key = async (page, ...keys) => {
	for (const k of keys)
		await page.keyboard.press(k);
};
const clickFrame = (page, i) => page.evaluate(n =>
	document.querySelectorAll('#frames > g')[n].dispatchEvent(new MouseEvent('click', { bubbles: true })), i);
// The picture follows once the browser has drawn: on a busy machine that takes a while.
const resize = async (page, size) => {
	await page.setViewportSize(size);
	await page.waitForFunction(pad => {
		const all = document.querySelector('#frames > g rect').width.baseVal.value;
		return Math.abs(all + 2 * pad - document.documentElement.clientWidth) < 2;
	}, PAD).catch(e => errors.push(e.message));
};
const inside = (f, z) => f.x >= z.x && f.x + f.w <= z.x + z.w;
const isAbove = (f, z) => f.d < z.d && f.x <= z.x && f.x + f.w >= z.x + z.w;

// Whether what is shown is what a zoom to @z must show, in a window of @width pixels.
function checkZoom(frames, z, width, what) {
	const inner = width - 2 * PAD;
	let visible = true, places = true, texts = true;
	for (const f of frames) {
		const expected = isAbove(f, z) || (inside(f, z) && f.d >= z.d);
		visible &&= f.shown === expected;
		if (!f.shown)
			continue;
		const left = PAD + (isAbove(f, z) ? 0 : (f.x - z.x) / z.w * inner);
		const w = isAbove(f, z) ? inner : f.w / z.w * inner;
		places &&= near(f.left, left) && near(f.width, w - Math.min(0.6, w / 5));
		texts &&= f.textRight <= left + w + 1;
	}
	check(visible, `${what}: the frames that are shown`);
	check(places, `${what}: places and widths`);
	check(texts, `${what}: text stays in its box`);
}

// Matched %: the union of the intervals of matching frames, over the zoomed one.
function shareOf(frames, z) {
	const list = frames.filter(f => f.shown && f.match).sort((a, b) => a.x - b.x || b.w - a.w);
	let end = -1, sum = 0;
	for (const f of list) {
		if (f.x < end)
			continue;
		sum += Math.min(f.x + f.w, z.x + z.w) - Math.max(f.x, z.x);
		end = f.x + f.w;
	}
	return sum / z.w * 100;
}

// --- the file itself, without scripts ---
let staticFrames;
await withPage({ javaScriptEnabled: false, viewport: { width: 1200, height: 800 } }, async page => {
	await shoot(page, 'static');
});
await withPage({ javaScriptEnabled: false, colorScheme: 'dark', viewport: { width: 1200, height: 800 } },
	page => shoot(page, 'static-dark'));
{
	// Scripts of the page are off, so a second look with them on, but with the script taken out.
	const source = readFileSync(file, 'utf8');
	const context = await browser.newContext({ viewport: { width: 1200, height: 800 } });
	const page = await context.newPage();
	page.on('pageerror', e => errors.push(e.message));
	await page.route('**/*', route => route.fulfill({
		contentType: 'image/svg+xml',
		body: source.replace(/<script>[\s\S]*<\/script>/, ''),
	}));
	await page.goto('http://static.test/flame.svg');
	staticFrames = await readFrames(page);
	const total = await totalOf(page);
	const width = await page.evaluate(() => +document.documentElement.getAttribute('width'));
	check(staticFrames.length > 1, 'static: there are frames');
	check(staticFrames.every(f => f.children === 'title,rect,text'), 'static: each frame is title, rect, text');
	check(staticFrames[0].w === total && staticFrames[0].d === 0, 'static: the root is all');
	check(staticFrames[0].text !== '', 'static: the root has its name');
	checkZoom(staticFrames, staticFrames[0], width, 'static');
	check(await page.evaluate(() => [...document.querySelectorAll('#top text')].every(e =>
		e.getBBox().x + e.getBBox().width <= +document.documentElement.getAttribute('width'))), 'static: the header fits');
	check(await page.evaluate(() => {
		const boxes = [...document.querySelectorAll('.key')].map(e => e.getBBox());
		return boxes.every((a, i) => boxes.every((b, j) => i >= j || a.y !== b.y || a.x + a.width <= b.x));
	}), 'static: keys of the legend do not overlap');
	await context.close();
}

// --- with scripts ---
await withPage({}, async page => {
	const frames = await readFrames(page);
	const root = frames[0];
	check(frames.length === staticFrames.length, 'live: the same frames');
	check(frames.every((f, i) => f.title === staticFrames[i].title), 'live: the same titles');
	checkZoom(frames, root, 1400, 'live');
	await shoot(page, 'live');
	check(await page.evaluate(() => ['details', 'search', 'unzoom', 'matched'].every(id => document.querySelector('#' + id))), 'live: controls');
	check(await page.evaluate(() => document.querySelector('#frames').getAttribute('role') === 'tree' &&
		[...document.querySelectorAll('#frames > g')].every(g => g.getAttribute('role') === 'treeitem')), 'live: roles');

	// details of what is under the mouse
	const wide = frames.filter(f => f.d > 2 && f.width > 60).sort((a, b) => a.w - b.w)[0] ??
		frames.slice(1).sort((a, b) => b.w - a.w)[0];
	const [x, y] = await page.evaluate(i => {
		const rect = document.querySelectorAll('#frames > g')[i].children[1];
		window.scrollBy(0, rect.getBoundingClientRect().top - innerHeight + 100);
		const box = rect.getBoundingClientRect();
		return [box.left + Math.min(20, box.width / 2), box.top + 5];
	}, wide.i);
	// What the mouse is over is found by what was drawn last: that of before the page was scrolled, if it is moved at once.
	await page.evaluate(() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done))));
	await page.mouse.move(x, y);
	const details = await textOf(page, '#details');
	check(details.includes(wide.name) && wide.title.split('\n').every(line => details.includes(line)),
		`details: '${details}' are those of ${wide.name}`);
	await page.mouse.move(5, 5);
	check(!(await textOf(page, '#details')).includes(wide.title.split('\n')[1]), 'details: gone with the mouse');

	// zoom by a real click, out by the button, the key and the root
	await page.mouse.click(x, y);
	checkZoom(await readFrames(page), wide, 1400, 'zoom');
	check(page.url().includes(`#t=0&x=${wide.x}&d=${wide.d}`), `zoom: the URL says so (${page.url()})`);
	await shoot(page, 'zoomed');
	await page.click('#unzoom');
	checkZoom(await readFrames(page), root, 1400, 'reset by the button');
	await clickFrame(page, wide.i);
	await key(page, '0');
	checkZoom(await readFrames(page), root, 1400, 'reset by 0');
	await clickFrame(page, wide.i);
	await clickFrame(page, 0);
	checkZoom(await readFrames(page), root, 1400, 'reset by the root');
	await clickFrame(page, wide.i);
	await page.goBack();
	checkZoom(await readFrames(page), root, 1400, 'back');
	await page.goForward();
	checkZoom(await readFrames(page), wide, 1400, 'forward');
	await key(page, 'Escape');
	checkZoom(await readFrames(page), root, 1400, 'reset by Esc');
	for (let i = 0; i < frames.length; i += Math.ceil(frames.length / 100)) {
		await clickFrame(page, i);
		if (i % 8 === 0)
			checkZoom(await readFrames(page), frames[i], 1400, `zoom to frame ${i}`);
	}
	await key(page, 'Home');

	// the window changes
	await resize(page, { width: 600, height: 700 });
	const width = await page.evaluate(() => document.documentElement.clientWidth);
	checkZoom(await readFrames(page), root, width, 'narrow');
	await shoot(page, 'narrow');
	check(await page.evaluate(() => document.documentElement.scrollWidth <= document.documentElement.clientWidth), 'narrow: nothing sticks out');
	await resize(page, { width: 2200, height: 800 });
	checkZoom(await readFrames(page), root, 2200, 'wide');
	await shoot(page, 'wide');
});

// --- search ---
await withPage({}, async page => {
	const frames = await readFrames(page);
	const root = frames[0];
	const expectMatches = async (matches, what, zoomed = root) => {
		const now = await readFrames(page);
		const wanted = new Set(frames.filter(f => matches(f.name)).map(f => f.i));
		check(now.every(f => f.match === wanted.has(f.i)), `search ${what}: the frames`);
		const said = await textOf(page, '#matched');
		const share = shareOf(now, zoomed);
		const n = now.filter(f => f.match && f.shown).length;
		check(n ? near(parseFloat(said.replace(/^matched <?/, '')), share, 0.06) && said.includes(`${n} frame`) :
			said === 'no match', `search ${what}: '${said}' is ${share.toFixed(3)}% of ${n} frames`);
	};
	const type = async s => {
		await page.fill('#search input', s);
		await page.waitForTimeout(200);
	};
	await key(page, '/', 'e');
	await page.waitForTimeout(200);
	await expectMatches(n => /e/i.test(n), '/e/');
	await shoot(page, 'searched');
	await type('call$|^all$');
	await expectMatches(n => /call$|^all$/i.test(n), '/call$|^all$/');
	await type('C');
	await expectMatches(n => n.includes('C'), 'with a capital minds case');
	await type('\\W');
	await expectMatches(n => /\W/.test(n), '/\\W/ has no capital');
	await type('#[]=');
	await expectMatches(n => n.includes('#[]='), 'plain text that is an odd regexp');
	await type('*(');
	await expectMatches(n => n.includes('*('), 'plain text that is no regexp');
	await type('samples');
	await expectMatches(n => /samples/i.test(n), 'looks at names, not at titles');
	await key(page, 'Escape');
	check(await textOf(page, '#matched') === '' && (await readFrames(page)).every(f => !f.match), 'search: Esc ends it');
	await page.keyboard.press('Control+f');
	await page.keyboard.type('all');
	await page.waitForTimeout(200);
	await expectMatches(n => /all/i.test(n), 'by Ctrl-F');
	const deep = frames.filter(f => f.d > 3).sort((a, b) => b.w - a.w)[0];
	await key(page, 'Enter');
	await clickFrame(page, deep.i);
	await expectMatches(n => /all/i.test(n), 'in a zoom', deep);
	await page.reload();
	await expectMatches(n => /all/i.test(n), 'after a reload', deep);
	checkZoom(await readFrames(page), deep, 1400, 'after a reload');
	await key(page, 'Escape', 'Escape');
	checkZoom(await readFrames(page), root, 1400, 'after Esc, Esc');
	check([UNFOLDED, '#t=0'].includes(await page.evaluate(() => location.hash)), 'Esc, Esc: the URL is plain again');
	await type('e');
	await key(page, 'Enter');
	const first = await page.evaluate(() => document.activeElement.querySelector('title').textContent.split('\n')[0]);
	check(/e/i.test(first), 'search: Enter goes to a match');
	await key(page, 'n');
	const second = await page.evaluate(() => [...document.querySelectorAll('#frames > g')].indexOf(document.activeElement));
	await key(page, 'n', 'N');
	check(second === await page.evaluate(() => [...document.querySelectorAll('#frames > g')].indexOf(document.activeElement)), 'search: n and N');
});

// --- keys ---
await withPage({}, async page => {
	const frames = await readFrames(page);
	const active = () => page.evaluate(() => [...document.querySelectorAll('#frames > g')].indexOf(document.activeElement));
	const childrenOf = f => frames.filter(c => c.d === f.d + 1 && inside(c, f));
	const flipped = frames[0].top < (frames[1]?.top ?? 0);
	const [out, back] = flipped ? ['ArrowDown', 'ArrowUp'] : ['ArrowUp', 'ArrowDown'];
	await key(page, out);
	check(await active() === 0, 'keys: the root first');
	let at = frames[0];
	for (let i = 0; i < 4; i++) {
		const widest = childrenOf(at).sort((a, b) => b.w - a.w)[0];
		if (!widest)
			break;
		await key(page, out);
		check(frames[await active()].w === widest.w && frames[await active()].d === widest.d, 'keys: to the widest callee');
		at = frames[await active()];
	}
	const outline = await page.evaluate(() => {
		const style = getComputedStyle(document.activeElement.querySelector('rect'));
		return style.stroke !== 'none' && parseFloat(style.strokeWidth) >= 2;
	});
	check(outline, 'keys: the focus is visible');
	check((await textOf(page, '#details')).includes(at.name), 'keys: details follow');
	await shoot(page, 'keys');
	const row = frames.filter(f => f.d === at.d);
	const right = row[row.findIndex(f => f.i === at.i) + 1];
	if (right) {
		await key(page, 'ArrowRight');
		check(await active() === right.i, 'keys: right');
		await key(page, 'ArrowLeft');
		check(await active() === at.i, 'keys: left');
	}
	await key(page, 'Enter');
	checkZoom(await readFrames(page), at, 1400, 'keys: Enter zooms');
	await key(page, back);
	check(isAbove(frames[await active()], at) && frames[await active()].d === at.d - 1, 'keys: to the caller');
	await key(page, '?');
	check(await page.isVisible('#help'), 'keys: ? shows help');
	await shoot(page, 'help');
	await key(page, 'Escape');
	check(!(await page.isVisible('#help')), 'keys: Esc closes help');
	await key(page, '0');
	await key(page, 'i');
	const turned = await readFrames(page);
	check(turned.every(f => Math.sign(f.top - turned[0].top) === (f.d === 0 ? 0 : flipped ? -1 : 1)), 'keys: i flips');
	checkZoom(turned, turned[0], 1400, 'flipped');
	await page.reload();
	check((await readFrames(page)).every((f, i) => f.top === turned[i].top), 'flipped after a reload');
	await key(page, 'i');
	check((await readFrames(page)).every((f, i) => f.top === frames[i].top), 'keys: i flips back');
});

// --- legend of states ---
const byState = staticFrames[0].parts !== undefined;
// The frames as they are to be once the time of states that are @off is taken out.
function without(frames, off) {
	const path = [];
	return frames.map(f => {
		const left = (f.parts ?? [[f.kind, f.w]]).filter(([kind]) => !off.has(kind));
		const w = left.reduce((sum, [, n]) => sum + n, 0);
		const up = path[f.d - 1], x = up ? up.end : 0;
		const most = left.length ? left.reduce((a, b) => b[1] > a[1] ? b : a)[0] : f.kind;
		const now = path[f.d] = { ...f, x, w, end: x, most };
		if (up)
			up.end += w;
		return now;
	});
}
async function checkStates(page, frames, off, what) {
	const wanted = without(frames, off), root = wanted[0];
	const now = (await readFrames(page)).map((f, i) => ({ ...f, x: wanted[i].x, w: wanted[i].w }));
	check(now.every(f => f.shown === f.w > 0), `${what}: what has no other time is gone`);
	checkZoom(now.filter(f => f.w), { ...root, i: 0 }, 1400, what);
	check(now.every((f, i) => !f.shown || f.kind === undefined || f.letter === String.fromCharCode(97 + +wanted[i].most)),
		`${what}: colours are of what is left`);
}
if (byState) {
	await withPage({ hash: '' }, async page => {
		const { off } = await page.evaluate(() => document.querySelector('#frames').dataset);
		const frames = await readFrames(page);
		check(/^idle /.test(await textOf(page, `.key[data-k="${off}"] text`)), 'states: idle is left out at first');
		await key(page, 't');
		await checkStates(page, frames, new Set([off]), 'states: at first');
		check(/^Without idle \(<?[\d.]+%\): a click/.test(await textOf(page, '#details .name')), 'states: that is said');
		check(!page.url().includes('h='), 'states: the URL does not say it');
		await page.click(`.key[data-k="${off}"]`);
		await checkStates(page, frames, new Set(), 'states: a click shows it');
		await page.reload();
		await checkStates(page, frames, new Set(), 'states: and a reload');
	});
	await withPage({}, async page => {
		const frames = await readFrames(page), total = frames[0].w;
		check(frames.every(f => (f.parts ?? [[f.kind, f.w]]).reduce((sum, [, n]) => sum + n, 0) === f.w), 'states: they are all time of a box');
		const kinds = await page.evaluate(() => [...document.querySelectorAll('.key')].map(g => g.dataset.k));
		check(kinds.length > 5, 'states: there are keys');
		const shareOf = kind => 100 * frames[0].parts.find(([k]) => k === kind)[1] / total;
		for (const kind of kinds) {
			const said = parseFloat((await textOf(page, `.key[data-k="${kind}"] text`)).replace(/^.* <?/, ''));
			check(near(said, shareOf(kind), 0.11), `states: the key of ${kind} says ${said} %, not ${shareOf(kind)}`);
			await page.click(`.key[data-k="${kind}"]`);
			await checkStates(page, frames, new Set([kind]), `states: without ${kind}`);
			await page.click(`.key[data-k="${kind}"]`);
		}
		await checkStates(page, frames, new Set(), 'states: all is back');
		const most = kinds.reduce((a, b) => shareOf(b) > shareOf(a) ? b : a);
		await page.click(`.key[data-k="${most}"]`);
		const deep = frames.filter(f => f.d > 3 && without([f], new Set([most]))[0].w).sort((a, b) => b.w - a.w)[0];
		await clickFrame(page, deep.i);
		check((await readFrames(page))[deep.i].width > 1300, 'states: a zoom to what is left');
		await shoot(page, 'without-a-state');
		await page.reload();
		check((await readFrames(page))[deep.i].width > 1300, 'states: the same after a reload');
		await key(page, '0');
		await checkStates(page, frames, new Set([most]), 'states: all of what is left');
		await key(page, 'a');
		const app = await page.evaluate(() => [...document.querySelectorAll('#app > g')]
			.map(g => [getComputedStyle(g).display !== 'none', (g.dataset.s ?? `${g.dataset.k}:1`).split('.').map(s => s.split(':')[0])]));
		check(app.length && app.every(([shown, parts]) => shown === parts.some(k => k !== most)), 'states: hidden in the application\'s code, too');
		await key(page, 'a');
		await page.click(`.key[data-k="${kinds[0]}"]`, { modifiers: ['Shift'] });
		await checkStates(page, frames, new Set(kinds.slice(1)), 'states: only one');
		await page.click(`.key[data-k="${kinds[0]}"]`);
		check((await readFrames(page)).filter(f => f.shown).length === 1, 'states: none leaves the root');
	});
}

// --- legend ---
if (!byState) await withPage({}, async page => {
	const frames = await readFrames(page);
	const kinds = await page.evaluate(() => [...document.querySelectorAll('.key')].map(g => g.dataset.k));
	check(kinds.length > 0, 'legend: there is one');
	const step = Math.abs(frames[1].top - frames[0].top);
	for (const kind of kinds) {
		await page.click(`.key[data-k="${kind}"]`);
		const now = await readFrames(page);
		check(now.every(f => f.shown === (f.kind !== kind)), `legend: kind ${kind} is hidden`);
		// what is above a hidden frame comes down by one
		const path = [];
		let rows = true;
		for (const f of now) {
			path[f.d] = f;
			const hidden = path.slice(0, f.d).filter(u => u.kind === kind).length;
			rows &&= !f.shown || near(Math.abs(f.top - now[0].top), step * (f.d - hidden));
		}
		check(rows, `legend: what is above kind ${kind} comes down`);
		check(await page.evaluate(k => document.querySelector(`.key[data-k="${k}"]`).getAttribute('aria-checked'), kind) === 'false', 'legend: aria-checked');
		await page.click(`.key[data-k="${kind}"]`);
	}
	check((await readFrames(page)).every((f, i) => f.shown && f.top === frames[i].top), 'legend: all is back');
	await page.click(`.key[data-k="${kinds[0]}"]`, { modifiers: ['Shift'] });
	check((await readFrames(page)).every(f => f.shown === (f.kind === undefined || f.kind === kinds[0])), 'legend: only one');
	await shoot(page, 'only-one-kind');
	await page.reload();
	check((await readFrames(page)).every(f => f.shown === (f.kind === undefined || f.kind === kinds[0])), 'legend: after a reload');
	await page.focus(`.key[data-k="${kinds[0]}"]`);
	await page.keyboard.press('Shift+Enter');
	check((await readFrames(page)).every(f => f.shown), 'legend: by keys');
});

// --- the trunk ---
const press = (page, selector) => page.evaluate(s =>
	document.querySelector(s).dispatchEvent(new MouseEvent('click', { bubbles: true })), selector);
await withPage({ hash: '#h=' }, async page => {
	const frames = await readFrames(page), root = frames[0];
	const isShown = await page.evaluate(() => getComputedStyle(document.querySelector('#trunk')).display !== 'none');
	// The frames of nine tenths of the whole; the last one branches.
	const trunk = frames.filter(f => f.d && f.w >= 0.9 * root.w);
	check(isShown === trunk.length >= 4, `trunk: a button for ${trunk.length} frames`);
	if (trunk.length < 4) {
		check(frames.every(f => f.shown), 'trunk: nothing is folded');
		return;
	}
	const folded = new Set(trunk.slice(1, -1).map(f => f.i));
	const step = Math.abs(trunk[0].top - root.top);
	const isFolded = now => now.every(f => f.shown === !folded.has(f.i)) && now.every(f => !f.shown ||
		near(Math.abs(f.top - root.top), step * (f.d - trunk.slice(1, -1).filter(t => t.d < f.d && inside(f, t)).length)));
	check(isFolded(frames), 'trunk: it is folded, and what is above it comes down');
	check(/^\d+ frames/.test(frames[trunk[0].i].text) && frames[trunk[0].i].text.startsWith(`${trunk.length - 1} `),
		`trunk: the line says so: ${frames[trunk[0].i].text}`);
	await shoot(page, 'trunk');
	// What is folded is found, and counts as it does when it is shown.
	const matched = async () => textOf(page, '#matched');
	const name = trunk[1].name.replace(/[^\w]/g, '.');
	await page.fill('#search input', `^${name}$`);
	await page.waitForTimeout(200);
	const folding = await matched();
	check((await readFrames(page))[trunk[0].i].match, 'trunk: a match in it is marked');
	await clickFrame(page, trunk[0].i);
	check((await readFrames(page)).every(f => f.shown), 'trunk: a click shows it');
	check(page.url().includes('t=0'), 'trunk: the URL says so');
	check(await matched() === folding && folding.startsWith('matched'), `trunk: '${folding}' when it is folded, '${await matched()}' else`);
	await page.reload();
	check((await readFrames(page)).every(f => f.shown), 'trunk: shown after a reload');
	await key(page, 't');
	check(isFolded(await readFrames(page)), 'trunk: t folds it');
	await key(page, 'Escape');
	await key(page, '/');
	await page.keyboard.type(`^${name}$`);
	await key(page, 'Enter');
	check((await readFrames(page)).every(f => f.shown), 'trunk: going to a match in it shows it');
	await page.click('#trunk');
	check(isFolded(await readFrames(page)), 'trunk: the button folds it');
	const deep = frames.filter(f => f.d > trunk.at(-1).d).sort((a, b) => b.w - a.w)[0];
	if (deep) {
		await clickFrame(page, deep.i);
		const now = (await readFrames(page)).filter(f => !folded.has(f.i));
		check(now.every(f => f.shown === (isAbove(f, deep) || inside(f, deep) && f.d >= deep.d)), 'trunk: a zoom above it');
	}
});

// --- application code ---
// The names of the paths, outermost first, and what each is wide, in no order.
const pathsOf = frames => {
	const sums = new Map(), path = [];
	for (const f of frames) {
		path[f.d] = (f.d ? path[f.d - 1] + '\n' : '') + f.name;
		sums.set(path[f.d], (sums.get(path[f.d]) ?? 0) + f.w);
	}
	return sums;
};
await withPage({}, async page => {
	const frames = await readFrames(page);
	const readApp = () => page.evaluate(() => [...document.querySelectorAll('#app > g')].map(g => ({
		d: +g.dataset.d, x: +g.dataset.x, w: +g.dataset.w, name: g.children[0].textContent.split('\n')[0],
		title: g.children[0].textContent, shown: g.getBoundingClientRect().width > 0,
	})));
	const isApp = f => /\n(Ruby app|app)\b/.test(f.title);
	const app = await readApp();
	const others = frames.some(f => f.kind && !isApp(f));
	if (!app.length) {
		check(await page.evaluate(() => !document.querySelector('#app-code')), 'application code: no button');
		return;
	}
	check(others, 'application code: there is other code');
	check(app.every(f => !f.shown), 'application code: not shown at first');
	await page.click('#app-code');
	await shoot(page, 'application-code');
	check((await readApp()).every(f => f.shown), 'application code: a click shows it');
	check(await page.evaluate(() =>
		document.querySelector('#frames').getBoundingClientRect().width === 0), 'application code: and nothing else');
	// The one thing that somebody does to see where the program itself takes time.
	const widest = app.filter(f => f.d && isApp(f)).sort((a, b) => b.w - a.w || b.d - a.d)[0];
	check(await page.evaluate(i => {
		const [, rect, text] = document.querySelectorAll('#app > g')[i].children, box = rect.getBoundingClientRect();
		return text.textContent !== '' && box.bottom <= innerHeight &&
			box.top >= document.querySelector('#panel').getBoundingClientRect().bottom - 1;
	}, app.indexOf(widest)), `application code: after one click ${widest.name} is on the screen, with its name`);
	// What the boxes of all frames say, but for those that are too narrow.
	if (!(await textOf(page, '#title')).includes('innermost')) {
		const expected = new Map(), path = [];
		const missing = (await textOf(page, '#foot text')).includes('hidden') ? frames[0].w / 500 : 0;
		for (const f of frames) {
			const up = f.d ? path[f.d - 1] : { frames: [], last: '' };
			const own = !f.kind || isApp(f);
			path[f.d] = { last: own ? (up.last ? up.last + '\n' : '') + f.name : up.last };
			if (own)
				expected.set(path[f.d].last, (expected.get(path[f.d].last) ?? 0) + f.w);
		}
		const got = pathsOf(app);
		const odd = [...new Set([...got.keys(), ...expected.keys()])].filter(p =>
			Math.abs((got.get(p) ?? 0) - (expected.get(p) ?? 0)) > missing);
		check(odd.length === 0 && got.size > 1, `application code: ${odd.length} of ${got.size} paths differ: ${odd[0]}`);
	}
	check(app.slice(1).every(f => isApp(f) || !/·/.test(f.title)), 'application code: only frames of it');
	await page.reload();
	check((await readApp()).every(f => f.shown), 'application code: after a reload');
	check(page.url().includes('a=1'), 'application code: the URL says so');
	await key(page, 'a');
	checkZoom(await readFrames(page), frames[0], 1400, 'application code: a ends it');
	await page.goBack();
	check((await readApp()).every(f => f.shown), 'application code: back');
	// A kind that it hides shows everything again; states are in both.
	if (byState)
		return;
	await press(page, '.key.off');
	check((await readFrames(page)).every(f => f.shown), 'application code: a hidden kind ends it');
});

// --- a match that is not on the screen is scrolled to ---
await withPage({ viewport: { width: 1000, height: 300 } }, async page => {
	const frames = await readFrames(page);
	const far = frames.filter(f => f.d > 10).sort((a, b) => b.d - a.d)[0];
	if (!far)
		return;
	const isOnScreen = name => page.evaluate(wanted => {
		const widest = [...document.querySelectorAll('#frames > g')].filter(g => g.children[0].textContent.split('\n')[0] === wanted)
			.sort((a, b) => b.dataset.w - a.dataset.w)[0].children[1].getBoundingClientRect();
		return widest.top >= document.querySelector('#panel').getBoundingClientRect().bottom - 1 && widest.bottom <= innerHeight;
	}, name);
	await page.fill('#search input', `^${far.name.replace(/[^\w ]/g, '.')}$`);
	await page.waitForTimeout(300);
	check(await isOnScreen(far.name), `search: ${far.name} is scrolled to`);
	await shoot(page, 'search-scrolled');
});

// --- texts are cut as in the file ---
await withPage({}, async page => {
	const width = 1200 - 2 * PAD;
	const total = staticFrames[0].w;
	const hundredths = x => Math.round(x * width * 100 / total);
	const rooms = staticFrames.map(f => Math.floor((hundredths(f.x + f.w) - hundredths(f.x) - 600) / 725));
	const texts = await page.evaluate(list => list.map(([name, room]) =>
		document.documentElement.flame.fit(name, room)),
	staticFrames.map((f, i) => [f.name, rooms[i]]));
	const odd = staticFrames.filter((f, i) => f.text !== texts[i] && !f.name.endsWith('…')); // a title is cut, too
	check(odd.length <= staticFrames.length / 1000, `texts: ${odd.length} differ, as '${odd[0]?.text}'`);
	const cut = text => /.…./.test(text);
	check(staticFrames.some(f => cut(f.text)) === texts.some(cut), 'texts: some are cut in the middle in the file or on the page only');
	// Those of test_flame.c that the names of few pictures have.
	for (const [name, room, expected] of [['block (12 levels) in A::B.c', 26, 'blk12 A::B.c'], ['block in A::B.c', 9, 'blk B.c'],
		['block (2 levels) in <main>', 8, 'blk2…in>'], ['日本語メソッド', 9, '日本…ッド'], ['Foo::Bar#baz', 2, '']]) {
		const got = await page.evaluate(([s, n]) => document.documentElement.flame.fit(s, n), [name, room]);
		check(got === expected, `texts: '${got}' is ${name} in ${room} columns`);
	}
});

// --- scrolling: the controls stay where they are ---
await withPage({ viewport: { width: 1000, height: 300 } }, async page => {
	const atRoot = await page.evaluate(() => {
		const box = document.querySelector('#frames > g > rect').getBoundingClientRect();
		return box.top >= 0 && box.bottom <= innerHeight;
	});
	check(atRoot, 'scroll: the root is what one sees first');
	for (const y of [0, 40, 10000]) {
		await page.evaluate(to => window.scrollTo(0, to), y);
		await page.waitForTimeout(100);
		const top = await page.evaluate(() => document.querySelector('#panel').getBoundingClientRect().top);
		check(near(top, 0, 1), `scroll: the header is at ${top} after scrolling to ${y}`);
	}
});

// --- colours ---
const luminance = rgb => {
	const [r, g, b] = rgb.match(/[\d.]+/g).map(v => v / 255).map(v => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
	return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};
const contrast = (a, b) => {
	const [high, low] = [luminance(a), luminance(b)].sort((x, y) => y - x);
	return (high + 0.05) / (low + 0.05);
};
for (const colorScheme of ['light', 'dark'])
	await withPage({ colorScheme }, async page => {
		const background = await page.evaluate(() => getComputedStyle(document.querySelector('#bg')).fill);
		check((luminance(background) < 0.05) === (colorScheme === 'dark'), `${colorScheme}: background ${background}`);
		const pairs = await page.evaluate(() => [...document.querySelectorAll('#frames > g')].map(g =>
			[getComputedStyle(g.children[1]).fill, getComputedStyle(g.children[2]).fill]));
		const least = Math.min(...pairs.map(([box, text]) => contrast(box, text)));
		check(least >= 4.3, `${colorScheme}: contrast of text is ${least.toFixed(2)}`);
		const header = await page.evaluate(() => [...document.querySelectorAll('#top > text')].filter(e => e.textContent).map(e => getComputedStyle(e).fill));
		check(header.every(c => contrast(c, background) >= 4.5), `${colorScheme}: contrast of the header`);
		await shoot(page, colorScheme);
	});

// --- as a part of something else ---
{
	const context = await browser.newContext({ viewport: { width: 900, height: 600 } });
	const page = await context.newPage();
	page.on('pageerror', e => errors.push(`inline: ${e.message}`));
	const source = readFileSync(file, 'utf8').replace(/^<\?xml[^>]*>\s*/, '').replace('<![CDATA[', '').replace(']]>', '');
	await page.route('**/*', route => route.fulfill({ contentType: 'text/html; charset=utf-8',
		body: `<!doctype html><body style="margin:0"><p>before</p><div>${source}</div>` }));
	await page.goto(`http://inline.test/${UNFOLDED}`);
	const frames = await readFrames(page);
	checkZoom(frames, frames[0], 900, 'inline in HTML');
	await clickFrame(page, 1);
	checkZoom(await readFrames(page), frames[1], 900, 'inline in HTML, zoomed');
	await context.close();
}

check(errors.length === 0, `no errors in the page: ${errors.slice(0, 3).join('; ')}`);
await browser.close();
rmSync(profileDir, { recursive: true, force: true });
console.log(`${passed} passed, ${failed} failed`);
process.exit(failed ? 1 : 0);
