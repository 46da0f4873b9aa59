/* The reply to a shard of version 2. A shard that is soon done gets its status, or one line, in one
 * send. Clients give up a reply of which nothing comes for long (hf_xet: 300 seconds), so one that
 * takes longer gets its 200 and a line every so often (api_context.shard_line_ms), the last of
 * which tells how it ended: exactly one of "result" and "error". hub-xet 3.4. */
#ifndef API_XET_SHARD_LINES_H
#define API_XET_SHARD_LINES_H

#include "api/xet/shard_wait.h"

struct shard_lines {               /* zeroed, but for what the owner gives */
	struct body_source source; /* first; private, as what follows `wait` */
	struct exchange *exchange;
	struct shard_wait *wait; /* the owner's; finished */
	int64_t due_ms;          /* when the next line is to be sent */
	bool is_over;            /* the last line was made */
	struct buffer line;
	size_t sent; /* of it */
};
enum next shard_lines_begin(struct shard_lines *lines);
enum next shard_lines_resume(struct shard_lines *lines);

#endif
