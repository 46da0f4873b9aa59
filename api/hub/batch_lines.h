/* Reads the body of a batch: one JSON object in each line. */
#ifndef API_HUB_BATCH_LINES_H
#define API_HUB_BATCH_LINES_H

#include "base/arena.h"
#include "storage/files/batch.h"

struct batch_lines {
	/* Texts are in the arena. A copy from a source that this server does not have is refused
	 * with the reason. */
	struct batch_line *lines;
	size_t count;
};
/* Skips blank lines. Fails with invalid, naming the line, when a line is not JSON, has an unknown
 * type, lacks a member or has one of another type, or has a path that breaks a rule
 * (storage/files/tree_path.h), and when there are more than BATCH_LINES_MAX lines. no_memory. `own`
 * is the caller's namespace, which "me" stands for; empty: the caller has none. */
int batch_lines_parse(struct span body, const char *default_namespace, struct span own,
	struct arena *arena, struct batch_lines *out, struct error *err);

#endif
