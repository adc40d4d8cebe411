"""The Python contenders, as lab/README.md asks: redis-py's Lock and python-redis-lock, one thread per task."""
import array
import platform
import sys
import threading
import time
from importlib.metadata import version

import redis
import redis_lock

GAME = dict(word.split("=", 1) for word in sys.argv[1:])
TASKS, LENGTH, WARM = int(GAME["tasks"]), int(GAME["ms"]) / 1e3, int(GAME["warm_ms"]) / 1e3
SECTION, PAUSE, STEP = (int(GAME[key]) / 1e6 for key in ("section_us", "pause_us", "step_us"))
LIMIT = 200_000
now = time.monotonic_ns


def redis_py(client, name):
    # `Redis.lock` of the documentation: blocking, a timeout as lease, and its own sleep of 0.1 s between tries.
    return client.lock(name, timeout=30)


def python_redis_lock(client, name):
    # The README's `Lock(conn, name, expire=…)`; a lease that renews itself is asked for only where holds are long.
    return redis_lock.Lock(client, name, expire=30, auto_renewal=GAME["play"] == "hold")


PEERS = {
    "redis-py": (redis_py, ("redis", "hiredis"), {
        "readers": "it has no read-write lock", "reenter": "its locks cannot be acquired again by their holder",
        "hold": "it has `extend`, but renews nothing by itself"}),
    "python-redis-lock": (python_redis_lock, ("python-redis-lock", "redis", "hiredis"), {
        "readers": "it has no read-write lock", "reenter": "its locks cannot be acquired again by their holder"}),
}


class Tally:
    # Of all of them.
    over = False

    def __init__(self):
        self.waits, self.pairs, self.stamps = array.array("Q"), array.array("Q"), array.array("Q")
        self.errors, self.error, self.asked = 0, None, None

    def asks(self):
        asked = now()
        if not self.over:
            self.asked = asked
        return asked

    def held(self, asked, held, left):
        if self.over:
            return
        self.asked = None
        self.waits.append(held - asked)
        self.pairs.append(now() - asked)
        if "stamps" in GAME and len(self.stamps) < 3 * LIMIT // TASKS:
            self.stamps.extend((asked, held, left))

    def failed(self, error):
        if self.over:
            return
        self.asked = None
        self.errors += 1
        self.error = self.error or repr(error)


def turns(lock, section, pause, tally, until=None):
    while until is None or now() < until:
        asked = tally.asks()
        try:
            lock.acquire()
            held = now()
            if section:
                time.sleep(section)
            left = now()
            lock.release()
        except Exception as error:
            tally.failed(error)
            time.sleep(0.001)
        else:
            tally.held(asked, held, left)
        if pause:
            time.sleep(pause)


def buckets(values):
    found = {}
    for value in values:
        e = max(0, value.bit_length() - 8)
        bucket = 128 * e + (value >> e)
        found[bucket] = found.get(bucket, 0) + 1
    return found


def resident_kib():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmRSS:"))


def ready():
    print("ready", flush=True)
    sys.stdin.readline()
    return now()


def done():
    # From here on nothing counts; the tasks go on.
    Tally.over = True
    end = now()
    print("done", flush=True)
    return end


def tell(rss, start, complete, end, tallies, held=None, lost=0):
    import json
    if "stamps" in GAME:
        with open(GAME["stamps"], "wb") as file:
            for tally in tallies:
                file.write(tally.stamps.tobytes())
    waits = [wait for tally in tallies for wait in tally.waits]
    pairs = [pair for tally in tallies for pair in tally.pairs]
    print(json.dumps({
        "version": ", ".join([*(f"{name} {version(name)}" for name in PACKAGES), f"Python {platform.python_version()}"]),
        "rss_before_kib": rss, "elapsed_ns": end - start, "complete_ns": complete,
        "acquisitions": held or [len(tally.waits) for tally in tallies],
        "wait": buckets(waits), "wait_max_ns": max(waits, default=0),
        "pair": buckets(pairs), "pair_max_ns": max(pairs, default=0),
        # A thread may have been about to ask when it was over.
        "still_waiting_ns": max((max(0, end - (tally.asked or end)) for tally in tallies), default=0),
        "errors": sum(tally.errors for tally in tallies),
        "error": next((tally.error for tally in tallies if tally.error), None), "lost": lost,
    }), flush=True)
    sys.stdin.readline()


def hold(client, make):
    rss = resident_kib()
    locks = [make(client, f"{GAME['name']}:{n}") for n in range(TASKS)]
    for lock in locks:
        lock.acquire()
    start = ready()
    print("all", flush=True)
    time.sleep(LENGTH)
    end = done()
    # In one question: ten thousand would take a minute beside as many threads that renew.
    owners = client.mget(f"lock:{GAME['name']}:{n}" for n in range(TASKS))
    lost = sum(owner is None or owner.decode() != lock.id for owner, lock in zip(owners, locks))
    tell(rss, start, start, end, [], [TASKS], lost)


def begin(*args):
    thread = threading.Thread(target=turns, args=args, daemon=True)
    thread.start()
    return thread


def warm(locks):
    # For nothing, on another name, with the others: a lock that nobody else wants runs little of what the game runs.
    until = now() + int(WARM * 1e9)
    for thread in [begin(lock, 0, 0, Tally(), until) for lock in locks]:
        thread.join()


def play(client, make):
    shared = GAME["play"] == "shared"
    name = lambda base, task: base if shared else f"{base}:{GAME['process']}:{task}"
    # One lock object per thread, one pool for all: the client is safe to share, a lock's token is its own.
    locks = [make(client, name(GAME["name"], task)) for task in range(TASKS)]
    threading.stack_size(256 * 1024)
    warm([make(client, name("warm", task)) for task in range(min(TASKS, 8))])
    # What only the game needs is there before anything is weighed.
    tallies = [Tally() for _ in locks]
    rss = resident_kib()
    start = ready()
    for lock, tally in zip(locks, tallies):
        begin(lock, SECTION, PAUSE, tally)
        if STEP:
            time.sleep(STEP)
    complete = now()
    print("all", flush=True)
    time.sleep(LENGTH)
    tell(rss, start, complete, done(), tallies)


MAKE, PACKAGES, LACKS = PEERS[GAME["peer"]]
if GAME["play"] in LACKS:
    print("lacks", LACKS[GAME["play"]], flush=True)
else:
    # Its own limit of 5 s on an answer would cut off python-redis-lock's BLPOP, which waits for as long as the lease.
    CLIENT = redis.Redis.from_url(GAME["url"], max_connections=100_000, socket_timeout=None)
    (hold if GAME["play"] == "hold" else play)(CLIENT, MAKE)
    # Threads that still wait end with the process.
    import os
    os._exit(0)
