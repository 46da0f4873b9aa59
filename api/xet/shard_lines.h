/* The reply to a shard of version 2. A shard that is done soon gets its status, or one line, at
 * once. Clients give up when no byte of a reply comes for a long time (hf_xet: 300 seconds). So a
 * shard that takes longer gets 200 and a line at regular intervals (api_context.shard_line_ms). The
 * last line tells how it ended: exactly one of "result" and "error". hub-xet 3.4. */
#ifndef API_XET_SHARD_LINES_H
#define API_XET_SHARD_LINES_H

#include "api/xet/shard_wait.h"

/* The owner sets `exchange` and `wait` and zeroes the rest, which is private. */
struct shard_lines {
	struct body_source source; /* first */
	struct exchange *exchange;
	struct shard_wait *wait; /* borrowed; after shard_wait_finish */
	int64_t due_ms;          /* time of the next line, on the monotonic clock */
	bool is_over;            /* the last line was printed */
	struct buffer line;
	size_t sent; /* bytes of the line */
};
enum next shard_lines_begin(struct shard_lines *lines);
enum next shard_lines_resume(struct shard_lines *lines);

#endif
