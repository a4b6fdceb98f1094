/*
 * What a counted program asks of valgrind's callgrind, which knows of no Python.
 *
 * Without callgrind each of these does nothing, and where valgrind is not installed.
 */
#if __has_include(<valgrind/callgrind.h>)
#include <valgrind/callgrind.h>
#else
#define CALLGRIND_START_INSTRUMENTATION
#define CALLGRIND_ZERO_STATS
#define CALLGRIND_DUMP_STATS_AT(name) (void)(name)
#endif

/* Count from now on: until then the program runs ten times as fast. */
void counter_start(void) { CALLGRIND_START_INSTRUMENTATION; }

/* Forget what was counted. */
void counter_begin(void) { CALLGRIND_ZERO_STATS; }

/* Write what was counted since, under a name, into a file of its own. */
void counter_end(const char *name) { CALLGRIND_DUMP_STATS_AT(name); }
