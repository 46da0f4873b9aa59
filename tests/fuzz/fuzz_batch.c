/* Any bytes as the body of a batch: what is taken has up to 1,000 lines with paths that may be
 * written. */
#include "api/hub/batch_lines.h"
#include "storage/files/tree_path.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	enum { ARENA_BYTES = 64 * 1024 * 1024 };
	struct arena *const arena = arena_new(ARENA_BYTES);
	struct batch_lines lines;
	struct error err = {0};
	if (batch_lines_parse(
		    span_of(data, size), "main", span_text("team"), arena, &lines, &err) == 0) {
		ASSERT(lines.count <= BATCH_LINES_MAX);
		for (size_t i = 0; i < lines.count; i++) {
			const struct batch_line *const line = &lines.lines[i];
			ASSERT(tree_path_check(line->path, &err) == 0);
			ASSERT(line->kind != BATCH_COPY || line->is_refused ||
				line->source.name.len > 0);
			ASSERT(!line->has_mtime || line->mtime_ms >= 0);
		}
	} else {
		ASSERT(err.kind == ERROR_INVALID || err.kind == ERROR_NO_MEMORY);
	}
	arena_free(arena);
	return 0;
}
