/* Moves a server's wall clock: preloaded, it adds the seconds in the file BANDOG_CLOCK to the time of day. The monotonic clock stays.
   System calls, not the library's functions: looking those up would call back into the allocator. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static volatile int64_t *seconds;

__attribute__((constructor)) static void open_clock(void) {
    int file = open(getenv("BANDOG_CLOCK"), O_RDONLY);
    seconds = mmap(0, sizeof *seconds, PROT_READ, MAP_SHARED, file, 0);
    if (seconds == MAP_FAILED) abort();
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    int result = syscall(SYS_gettimeofday, now, zone);
    if (now && seconds) now->tv_sec += *seconds;
    return result;
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    int result = syscall(SYS_clock_gettime, clock, now);
    if (clock == CLOCK_REALTIME && now && seconds) now->tv_sec += *seconds;
    return result;
}

time_t time(time_t *kept) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (kept) *kept = now.tv_sec;
    return now.tv_sec;
}
