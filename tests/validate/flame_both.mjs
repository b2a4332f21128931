// SPDX-License-Identifier: GPL-2.0-only
//
// Two flame graphs side by side in Chromium: the same samples in the same scale, each with a zoom of
// its own. What a single one does is tested by flame.mjs.
//
// usage: node flame_both.mjs SVG [SCREENSHOT-DIR]     SVG: that of `flame_sample merged both` or the like
//
// Prints a line for each failure and "N passed, N failed"; fails if anything did.
import { createRequire } from 'node:module';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';

const require = createRequire(join(process.env.NODE_MODULES ?? process.cwd(), 'package.json'));
const { chromium } = require('playwright-core');

const file = resolve(process.argv[2]);
const shots = process.argv[3];
const WIDTH = 1400, PAD = 12, GUTTER = 24;
const INNER = (WIDTH - 2 * PAD - GUTTER) / 2;

let passed = 0, failed = 0;
function check(condition, what) {
	if (condition) {
		passed++;
	} else {
		failed++;
		console.log(`FAIL: ${what}`);
	}
}
const near = (a, b) => Math.abs(a - b) <= 0.02;

const browser = await chromium.launch({
	executablePath: process.env.CHROMIUM ?? '/usr/bin/chromium',
	args: ['--no-sandbox', '--disable-gpu', '--no-first-run', '--disable-background-networking'],
});
const page = await (await browser.newContext({ viewport: { width: WIDTH, height: 800 } })).newPage();
const errors = [];
page.on('pageerror', e => errors.push(e.message));
await page.goto(`${pathToFileURL(file).href}#t=0`);

const read = async () => {
	const frames = await page.evaluate(() => [...document.querySelectorAll('#frames > g')].map((g, i) => ({
		i, x: +g.dataset.x, w: +g.dataset.w, d: +g.dataset.d, pane: +(g.dataset.p ?? 0),
		name: g.children[0].textContent.split('\n')[0],
		left: +g.children[1].getAttribute('x'), width: +g.children[1].getAttribute('width'),
		shown: g.style.display !== 'none',
	})));
	return [0, 1].map(pane => frames.filter(f => f.pane === pane));
};
const click = i => page.evaluate(n => document.querySelectorAll('#frames > g')[n]
	.dispatchEvent(new MouseEvent('click', { bubbles: true })), i);
const textOf = selector => page.evaluate(s => document.querySelector(s).textContent, selector);
// What is hidden is where it was last shown.
const seen = panes => JSON.stringify(panes.flat().filter(f => f.shown));
const same = (a, b) => seen(a) === seen(b);

// Whether @frames are where they are with @z zoomed, in the pane that starts at @left.
function checkPane(frames, z, left, what) {
	check(frames.filter(f => f.shown).every(f => {
		const above = f.d < z.d;
		const x = left + (above ? 0 : (f.x - z.x) / z.w * INNER), w = above ? INNER : f.w / z.w * INNER;
		return near(f.left, x) && near(f.width, w - Math.min(0.6, w / 5));
	}), `${what}: places and widths`);
	check(frames.every(f => f.shown === (f.x <= z.x && f.x + f.w >= z.x + z.w && f.d < z.d ||
		f.d >= z.d && f.x >= z.x && f.x + f.w <= z.x + z.w)), `${what}: what is shown`);
}

const LEFT = PAD, RIGHT = PAD + INNER + GUTTER;
let [ruby, native] = await read();
check(ruby[0].name === 'Ruby stacks' && native[0].name === 'native stacks', 'the roots say what they are');
check(ruby[0].w === native[0].w, 'the same scale');
checkPane(ruby, ruby[0], LEFT, 'left');
checkPane(native, native[0], RIGHT, 'right');
if (shots)
	await page.screenshot({ path: join(shots, 'both.png') });

// A zoom in one leaves the other as it is.
const inner = list => list.findLast(f => f.d > 1 && f.w < list[0].w) ?? list.at(-1);
const [r, n] = [inner(ruby), inner(native)];
await click(r.i);
let now = await read();
checkPane(now[0], r, LEFT, 'left, zoomed');
check(same(now[1], native), 'a zoom on the left does not move the right');
const zoomedLeft = now[0];
await click(n.i);
now = await read();
check(same(now[0], zoomedLeft), 'a zoom on the right does not move the left');
checkPane(now[1], n, RIGHT, 'right, zoomed');

// The URL brings both back; one key resets both.
await page.reload();
check(same(await read(), now), 'the URL holds both zooms');
await page.keyboard.press('0');
check(same(await read(), [ruby, native]), '0 shows everything');

// Search and legend are common.
await page.evaluate(() => search('.'));
check(/^matched 100% \| 100% · /.test(await textOf('#matched')), `search: ${await textOf('#matched')}`);
await page.evaluate(() => search(''));
const key = await page.evaluate(kind => {
	const g = document.querySelector(`.key[data-k="${kind}"]`);
	g.dispatchEvent(new MouseEvent('click', { bubbles: true }));
	return g.classList.contains('off');
}, await page.evaluate(i => document.querySelectorAll('#frames > g')[i].dataset.k, n.i));
now = await read();
check(key && !now[1].find(f => f.i === n.i).shown, 'the legend hides on the right');

// From one pane to the other by keys.
await page.reload();
await page.keyboard.press('0');
await page.evaluate(() => document.querySelectorAll('#frames > g')[0].focus());
await page.keyboard.press('ArrowRight');
check(await page.evaluate(() => document.activeElement.dataset.p === '1'), 'the arrow leads to the other graph');

check(errors.length === 0, `no errors in the page: ${errors.slice(0, 3).join('; ')}`);
await browser.close();
console.log(`${passed} passed, ${failed} failed`);
process.exit(failed ? 1 : 0);
