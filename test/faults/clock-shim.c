/*
 * Preloaded into redis-server it shifts the server's date by the microseconds that are in the eight bytes of the file
 * REDELAYED_CLOCK; the file can be rewritten while the server runs. libfaketime cannot be used: it calls the allocator
 * before jemalloc is ready, and the server hangs at its start. The monotonic clock is left alone, as when an operator sets
 * the date of a machine.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static volatile int64_t none = 0;
static volatile int64_t *shift = &none;

__attribute__((constructor)) static void attach(void) {
  const char *path = getenv("REDELAYED_CLOCK");
  int file = path ? open(path, O_RDONLY) : -1;
  if (file < 0) return;
  void *page = mmap(0, sizeof(int64_t), PROT_READ, MAP_SHARED, file, 0);
  if (page != MAP_FAILED) shift = page;
  close(file);
}

int clock_gettime(clockid_t clock, struct timespec *out) {
  int failed = syscall(SYS_clock_gettime, clock, out);
  if (failed || (clock != CLOCK_REALTIME && clock != CLOCK_REALTIME_COARSE)) return failed;
  int64_t nanoseconds = out->tv_nsec + (*shift % 1000000) * 1000;
  out->tv_sec += *shift / 1000000 + (nanoseconds >= 1000000000) - (nanoseconds < 0);
  out->tv_nsec = (nanoseconds + 1000000000) % 1000000000;
  return 0;
}

int gettimeofday(struct timeval *restrict out, void *restrict zone) {
  struct timespec now;
  (void)zone;
  if (clock_gettime(CLOCK_REALTIME, &now)) return -1;
  out->tv_sec = now.tv_sec;
  out->tv_usec = now.tv_nsec / 1000;
  return 0;
}

time_t time(time_t *out) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  if (out) *out = now.tv_sec;
  return now.tv_sec;
}
