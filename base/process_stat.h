/* What the system counts of this process, for Prometheus. Any thread. */
#ifndef BASE_PROCESS_STAT_H
#define BASE_PROCESS_STAT_H

#include "base/buffer.h"

struct process_stat { /* a value that cannot be read is -1 */
	int64_t cpu_us;
	int64_t virtual_bytes;
	int64_t resident_bytes;
	int64_t started_ms; /* wall clock */
	int64_t open_fds;
	int64_t max_fds;
};

/* Reads /proc. Takes a time that grows with the open descriptors. */
void process_stat_read(struct process_stat *out);
/* Adds them under the names that all programs have for them (process_cpu_seconds_total ...). What
 * is unknown is left out. */
void process_stat_print(const struct process_stat *stat, struct buffer *out);

#endif
