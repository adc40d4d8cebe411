// The Node contender, as lab/README.md asks: redlock with one ioredis client, one async function per task.
import { createRequire } from "node:module";
import { readFileSync, writeFileSync } from "node:fs";
import { createInterface } from "node:readline";
import { setTimeout as sleep } from "node:timers/promises";

const require = createRequire(import.meta.url);
const { default: Redlock } = require("redlock");
const { default: Redis } = require("ioredis");

const game = Object.fromEntries(process.argv.slice(2).map((word) => word.split(/=(.*)/s)));
const [tasks, ms, warmMs] = [game.tasks, game.ms, game.warm_ms].map(Number);
const [section, pause, step] = [game.section_us, game.pause_us, game.step_us].map((us) => Number(us) / 1000);
const LIMIT = 200_000;
const now = () => Number(process.hrtime.bigint());
let over = false;
const input = createInterface({ input: process.stdin })[Symbol.asyncIterator]();

const lacks = {
  readers: "it has no read-write lock",
  reenter: "its locks cannot be acquired again by their holder",
};

function bucketsOf(values) {
  const found = {};
  for (const value of values) {
    const e = Math.max(0, Math.floor(Math.log2(value)) - 7);
    const bucket = 128 * e + Math.floor(value / 2 ** e);
    found[bucket] = (found[bucket] ?? 0) + 1;
  }
  return found;
}

const residentKib = () => Number(/VmRSS:\s+(\d+)/.exec(readFileSync("/proc/self/status", "utf8"))[1]);

async function ready() {
  console.log("ready");
  await input.next();
  return now();
}

/** From here on nothing counts; the tasks go on. */
function done() {
  over = true;
  const end = now();
  console.log("done");
  return end;
}

class Tally {
  waits = [];
  pairs = [];
  stamps = [];
  errors = 0;
  error = null;
  asked = null;

  asks() {
    const asked = now();
    if (!over) this.asked = asked;
    return asked;
  }

  held(asked, held, left) {
    if (over) return;
    this.asked = null;
    this.waits.push(held - asked);
    this.pairs.push(now() - asked);
    if (game.stamps && this.stamps.length < (3 * LIMIT) / tasks) this.stamps.push(asked, held, left);
  }

  failed(error) {
    if (over) return;
    this.asked = null;
    this.errors += 1;
    this.error ??= String(error);
  }
}

async function turns(redlock, name, section, pause, tally, until = Infinity) {
  while (now() < until) {
    const asked = tally.asks();
    try {
      const lock = await redlock.acquire([name], 30_000);
      const held = now();
      if (section) await sleep(section);
      const left = now();
      await lock.release();
      tally.held(asked, held, left);
    } catch (error) {
      tally.failed(error);
      await sleep(1);
    }
    if (pause) await sleep(pause);
  }
}

const largest = (values) => values.reduce((a, b) => Math.max(a, b), 0);

function version(name) {
  const { version } = JSON.parse(readFileSync(new URL(`node_modules/${name}/package.json`, import.meta.url)));
  return version.replace(/^v/, "");
}

async function tell(rss, start, complete, end, tallies, held, lost = 0) {
  if (game.stamps) writeFileSync(game.stamps, BigUint64Array.from(tallies.flatMap((tally) => tally.stamps).map(BigInt)));
  const [waits, pairs] = [tallies.flatMap((tally) => tally.waits), tallies.flatMap((tally) => tally.pairs)];
  console.log(JSON.stringify({
    version: `redlock ${version("redlock")}, ioredis ${version("ioredis")}, Node ${process.version}`,
    rss_before_kib: rss, elapsed_ns: end - start, complete_ns: complete,
    acquisitions: held ?? tallies.map((tally) => tally.waits.length),
    wait: bucketsOf(waits), wait_max_ns: largest(waits), pair: bucketsOf(pairs), pair_max_ns: largest(pairs),
    still_waiting_ns: largest(tallies.map((tally) => (tally.asked ? end - tally.asked : 0))),
    errors: tallies.reduce((sum, tally) => sum + tally.errors, 0),
    error: tallies.map((tally) => tally.error).find(Boolean) ?? null, lost,
  }));
  await input.next();
}

async function hold(redlock) {
  const rss = residentKib();
  let [lost, come] = [0, 0];
  // `using` of the README is the one that renews.
  await new Promise((all) => {
    for (let task = 0; task < tasks; task += 1)
      redlock.using([`${game.name}:${task}`], 30_000, async (signal) => {
        signal.addEventListener("abort", () => (lost += 1));
        if ((come += 1) === tasks) all();
        await new Promise(() => {});
      });
  });
  const start = await ready();
  console.log("all");
  await sleep(ms);
  await tell(rss, start, start, done(), [], [tasks], lost);
}

const nameOf = (name, task) => (game.play === "shared" ? name : `${name}:${game.process}:${task}`);

/** Plays for nothing on another name, with the others: a lock that nobody else wants runs little of what the game runs. */
async function warm(redlock) {
  const until = now() + warmMs * 1e6;
  const task = (_, task) => turns(redlock, nameOf("warm", task), 0, 0, new Tally(), until);
  await Promise.all(Array.from({ length: Math.min(tasks, 8) }, task));
}

async function play(redlock) {
  await warm(redlock);
  // What only the game needs is there before anything is weighed.
  const tallies = Array.from({ length: tasks }, () => new Tally());
  const rss = residentKib();
  const start = await ready();
  for (let task = 0; task < tasks; task += 1) {
    turns(redlock, nameOf(game.name, task), section, pause, tallies[task]);
    if (step) await sleep(step);
  }
  const complete = now();
  console.log("all");
  await sleep(ms);
  await tell(rss, start, complete, done(), tallies);
}

if (lacks[game.play]) {
  console.log("lacks", lacks[game.play]);
} else {
  // The README's client with the library's own settings. By default it gives up after 10 tries, -1 is its word for never; with that,
  // it would also never give up renewing a lock that is gone, and tell nobody.
  const retries = game.play === "hold" ? {} : { retryCount: -1 };
  const redlock = new Redlock([new Redis(game.url)], retries);
  redlock.on("error", () => {});
  await (game.play === "hold" ? hold : play)(redlock);
}
process.exit(0);
