#include "client/follow/hook_report.h"

#include <stdlib.h>

#include "base/buffer.h"
#include "base/memory.h"
#include "client/local/folder_files.h"

enum { REPORT_MAX_BYTES = 64 * 1024 };

static bool read_longest(struct span text, uint64_t *out_ms);

char *hook_report_begin(const struct file_ops *files, const char *folder)
{
	char *const absolute = realpath(folder, NULL);
	char *const path =
		folder_files_join(absolute != NULL ? absolute : folder, HOOK_REPORT_NAME);
	free(absolute);
	files->unlink(files, path);
	return path;
}

/* A file that is too long, or cannot be read, tells nothing. */
bool hook_report_end(const struct file_ops *files, const char *path, uint64_t *out_pause_ms)
{
	struct error ignored = {0};
	struct buffer text;
	buffer_init(&text, REPORT_MAX_BYTES);
	const bool found = file_exists(path) && file_read_all(path, &text, &ignored) == 0 &&
		!buffer_failed(&text) && read_longest(buffer_span(&text), out_pause_ms);
	buffer_release(&text);
	files->unlink(files, path);
	return found;
}

static bool read_longest(struct span text, uint64_t *out_ms)
{
	struct span line;
	struct span key;
	bool found = false;
	*out_ms = 0;
	while (text.len > 0 && span_split(&text, '\n', &line)) {
		uint64_t ms;
		if (!span_split(&line, '=', &key) || !span_equal_text(key, "pause_ms") ||
			!span_parse_u64(line, &ms) || ms > INT64_MAX)
			continue;
		found = true;
		if (ms > *out_ms)
			*out_ms = ms;
	}
	return found;
}
