#include "api/live/server_warnings.h"

#include <inttypes.h>

#include "api/exchange/readiness.h"
#include "storage/packs/store_health.h"

enum { READY_MAX_BYTES = 4096 };

static void print_metrics(const struct metrics *metrics, struct buffer *out);

void server_warnings_print(struct exchange *exchange, struct buffer *out)
{
	store_health_print(store_health(exchange->context->store), out);
	print_metrics(exchange->context->metrics, out);
	if (readiness_is_full(exchange))
		buffer_add_text(out, "full: the disk has no room for uploads, which get 507.\n");
}

void server_warnings_list(struct exchange *exchange, const char *name, struct json_writer *json)
{
	struct buffer body;
	struct span line;
	buffer_init(&body, READY_MAX_BYTES);
	server_warnings_print(exchange, &body);
	struct span rest = buffer_span(&body);
	(void)span_split(&rest, '\n', &line);
	json_writer_array(json, name);
	while (rest.len > 0 && span_split(&rest, '\n', &line))
		if (line.len > 0)
			json_writer_text(json, NULL, line);
	json_writer_end(json, ']');
	buffer_release(&body);
}

/* A line for each fault that the metrics know. */
static void print_metrics(const struct metrics *metrics, struct buffer *out)
{
	const int64_t damaged = metrics_get(metrics, METRIC_CHUNKS_DAMAGED_NOW);
	if (damaged > 0)
		buffer_format(out,
			"chunks damaged: %" PRId64
			" stored %s damaged; `deltabucket damage` says what that touches.\n",
			damaged, damaged == 1 ? "chunk is" : "chunks are");
	if (metrics_get(metrics, METRIC_JOURNAL_INCOMPLETE) != 0)
		buffer_add_text(out,
			"journal incomplete: a lost catalog could not be made again up to its last"
			" change.\n");
}
