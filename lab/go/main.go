// The Go contender, as lab/README.md asks: redsync with one go-redis client, one goroutine per task.
package main

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"math/bits"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"
	"golang.org/x/sys/unix"
)

const limit = 200_000

var (
	game  = map[string]string{}
	input = bufio.NewReader(os.Stdin)
	over  atomic.Bool
)

func number(key string) int {
	value, _ := strconv.Atoi(game[key])
	return value
}

func now() uint64 {
	var at unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &at)
	return uint64(at.Nano())
}

type tally struct {
	sync.Mutex
	wait, pair       map[int]uint64
	waitMax, pairMax uint64
	count, errors    uint64
	err              *string
	asked            uint64
	stamps           []uint64
}

func newTally() *tally { return &tally{wait: map[int]uint64{}, pair: map[int]uint64{}} }

func add(buckets map[int]uint64, largest *uint64, value uint64) {
	e := max(0, bits.Len64(value)-8)
	buckets[128*e+int(value>>e)]++
	*largest = max(*largest, value)
}

func (t *tally) asks() uint64 {
	t.Lock()
	defer t.Unlock()
	asked := now()
	if !over.Load() {
		t.asked = asked
	}
	return asked
}

func (t *tally) failed(err error) {
	t.Lock()
	defer t.Unlock()
	if over.Load() {
		return
	}
	t.asked = 0
	t.errors++
	if words := err.Error(); t.err == nil {
		t.err = &words
	}
}

func (t *tally) held(asked, held, left uint64) {
	t.Lock()
	defer t.Unlock()
	if over.Load() {
		return
	}
	t.asked = 0
	t.count++
	add(t.wait, &t.waitMax, held-asked)
	add(t.pair, &t.pairMax, now()-asked)
	if game["stamps"] != "" && len(t.stamps) < 3*limit/number("tasks") {
		t.stamps = append(t.stamps, asked, held, left)
	}
}

func turns(locks *redsync.Redsync, name string, section, pause time.Duration, t *tally, until uint64) {
	for now() < until {
		// A mutex per turn, as in the README; 30 s, and no end of tries. The delay between tries is its own.
		mutex := locks.NewMutex(name, redsync.WithExpiry(30*time.Second), redsync.WithTries(math.MaxInt32))
		asked := t.asks()
		err := mutex.Lock()
		if err == nil {
			held := now()
			time.Sleep(section)
			left := now()
			if _, err = mutex.Unlock(); err == nil {
				t.held(asked, held, left)
			}
		}
		if err != nil {
			t.failed(err)
			time.Sleep(time.Millisecond)
		}
		time.Sleep(pause)
	}
}

func residentKib() int {
	status, _ := os.ReadFile("/proc/self/status")
	_, rest, _ := strings.Cut(string(status), "VmRSS:")
	value, _ := strconv.Atoi(strings.Fields(rest)[0])
	return value
}

func ready() uint64 {
	fmt.Println("ready")
	_, _ = input.ReadString('\n')
	return now()
}

// From here on nothing counts; the tasks go on.
func done() uint64 {
	over.Store(true)
	end := now()
	fmt.Println("done")
	return end
}

func version() string {
	info, _ := debug.ReadBuildInfo()
	versions := map[string]string{}
	for _, module := range info.Deps {
		versions[module.Path] = module.Version
	}
	return fmt.Sprintf("redsync %s, go-redis %s, %s",
		versions["github.com/go-redsync/redsync/v4"], versions["github.com/redis/go-redis/v9"], runtime.Version())
}

func tell(rss int, start, complete, end uint64, tallies []*tally) {
	all, counts, still := newTally(), []uint64{}, uint64(0)
	for _, t := range tallies {
		t.Lock()
		for bucket, count := range t.wait {
			all.wait[bucket] += count
		}
		for bucket, count := range t.pair {
			all.pair[bucket] += count
		}
		all.waitMax, all.pairMax = max(all.waitMax, t.waitMax), max(all.pairMax, t.pairMax)
		all.errors += t.errors
		if all.err == nil {
			all.err = t.err
		}
		if t.asked > 0 && t.asked < end {
			still = max(still, end-t.asked)
		}
		all.stamps = append(all.stamps, t.stamps...)
		counts = append(counts, t.count)
		t.Unlock()
	}
	if path := game["stamps"]; path != "" {
		file, _ := os.Create(path)
		_ = binary.Write(file, binary.LittleEndian, all.stamps)
		_ = file.Close()
	}
	result, _ := json.Marshal(map[string]any{
		"version": version(), "rss_before_kib": rss, "elapsed_ns": end - start, "complete_ns": complete,
		"acquisitions": counts, "wait": all.wait, "wait_max_ns": all.waitMax, "pair": all.pair, "pair_max_ns": all.pairMax,
		"still_waiting_ns": still, "errors": all.errors, "error": all.err, "lost": 0,
	})
	fmt.Println(string(result))
	_, _ = input.ReadString('\n')
}

func nameOf(name string, task int) string {
	if game["play"] == "pairs" {
		return fmt.Sprintf("%s:%s:%d", name, game["process"], task)
	}
	return name
}

// Plays for nothing on another name, with the others: a lock that nobody else wants runs little of what the game runs.
func warm(locks *redsync.Redsync) {
	var all sync.WaitGroup
	until := now() + uint64(number("warm_ms"))*1e6
	for task := range min(number("tasks"), 8) {
		all.Go(func() { turns(locks, nameOf("warm", task), 0, 0, newTally(), until) })
	}
	all.Wait()
}

func play(locks *redsync.Redsync) {
	warm(locks)
	// What only the game needs is there before anything is weighed.
	tallies := []*tally{}
	for range number("tasks") {
		tallies = append(tallies, newTally())
	}
	rss, start := residentKib(), ready()
	section, pause := time.Duration(number("section_us"))*time.Microsecond, time.Duration(number("pause_us"))*time.Microsecond
	for task := range number("tasks") {
		go turns(locks, nameOf(game["name"], task), section, pause, tallies[task], math.MaxUint64)
		time.Sleep(time.Duration(number("step_us")) * time.Microsecond)
	}
	complete := now()
	fmt.Println("all")
	time.Sleep(time.Duration(number("ms")) * time.Millisecond)
	tell(rss, start, complete, done(), tallies)
}

func main() {
	for _, word := range os.Args[1:] {
		key, value, _ := strings.Cut(word, "=")
		game[key] = value
	}
	lacks := map[string]string{
		"readers": "it has no read-write lock", "hold": "it has `Extend`, but renews nothing by itself",
		"reenter": "its locks cannot be acquired again by their holder",
	}
	if lack := lacks[game["play"]]; lack != "" {
		fmt.Println("lacks", lack)
		return
	}
	options, err := redis.ParseURL(game["url"])
	if err != nil {
		panic(err)
	}
	play(redsync.New(goredis.NewPool(redis.NewClient(options))))
}
