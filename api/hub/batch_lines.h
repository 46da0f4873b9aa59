/* The body of a batch: one JSON object a line. */
#ifndef API_HUB_BATCH_LINES_H
#define API_HUB_BATCH_LINES_H

#include "base/arena.h"
#include "storage/files/batch.h"

struct batch_lines {
	/* texts in the arena; a copy from what this server has not is refused with the reason */
	struct batch_line *lines;
	size_t count;
};
/* Blank lines count nothing. invalid, naming the line: not JSON, of no known type, lacking a member
 * or with one of another type, a path that breaks a rule (storage/files/tree_path.h), more than
 * BATCH_LINES_MAX lines. no_memory. `own`: the caller's namespace, which "me" stands for; empty: he
 * has none. */
int batch_lines_parse(struct span body, const char *default_namespace, struct span own,
	struct arena *arena, struct batch_lines *out, struct error *err);

#endif
