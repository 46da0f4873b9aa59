#include "api/live/server_numbers.h"

#include "base/thread/work_notes.h"

enum { DISK_STEP_BYTES = 1024 * 1024 };

static const struct {
	const char *name;
	enum metric metric;
} numbers_of[SERVER_NUMBERS] = {
	[NUMBER_REQUESTS] = {"requests", METRIC_REQUESTS},
	[NUMBER_ERRORS] = {"errors", METRIC_REQUEST_ERRORS},
	[NUMBER_BYTES_RECEIVED] = {"bytes_received", METRIC_BYTES_RECEIVED},
	[NUMBER_BYTES_SENT] = {"bytes_sent", METRIC_BYTES_SENT},
	[NUMBER_CONNECTIONS] = {"connections", METRIC_CONNECTIONS},
	[NUMBER_WAITS] = {"waits", METRIC_WAITS},
	[NUMBER_STREAMS] = {"streams", METRIC_STREAMS},
	[NUMBER_REPLICAS] = {"replicas", METRIC_REPLICAS},
	[NUMBER_DISK_FREE] = {"disk_free", METRIC_DISK_FREE_BYTES},
	[NUMBER_DAMAGED_CHUNKS] = {"damaged_chunks", METRIC_CHUNKS_DAMAGED_NOW},
	[NUMBER_STEPS_PUBLISHED] = {"steps_published", METRIC_STEPS_PUBLISHED},
	[NUMBER_STEPS_PROVEN] = {"steps_proven", METRIC_STEPS_PROVEN},
	[NUMBER_STEPS_FAILED] = {"steps_failed", METRIC_STEPS_FAILED},
};

void server_numbers_read(const struct api_context *context, struct server_numbers *out)
{
	store_measure_disk(context->store);
	for (size_t i = 0; i < SERVER_NUMBERS; i++)
		out->values[i] = metrics_get(context->metrics, numbers_of[i].metric);
}

void server_numbers_print(const struct server_numbers *numbers, const struct server_numbers *before,
	struct json_writer *json)
{
	for (size_t i = 0; i < SERVER_NUMBERS; i++)
		if (before == NULL || numbers->values[i] != before->values[i])
			json_writer_i64(json, numbers_of[i].name, numbers->values[i]);
}

bool server_numbers_differ(const struct server_numbers *a, const struct server_numbers *b)
{
	const int64_t free = a->values[NUMBER_DISK_FREE] - b->values[NUMBER_DISK_FREE];
	bool differ = free >= DISK_STEP_BYTES || free <= -DISK_STEP_BYTES;
	for (size_t i = 0; i < SERVER_NUMBERS; i++)
		differ = differ || (i != NUMBER_DISK_FREE && a->values[i] != b->values[i]);
	return differ;
}

void server_work_print(const struct api_context *context, struct json_writer *json)
{
	struct work_note notes[WORK_KINDS];
	work_notes_look(store_work_notes(context->store), notes);
	json_writer_array(json, "work");
	for (int kind = 0; kind < WORK_KINDS; kind++) {
		const struct work_note *const note = &notes[kind];
		json_writer_object(json, NULL);
		json_writer_text(json, "name", span_text(work_kind_name((enum work_kind)kind)));
		json_writer_text(json, "state", span_text(work_state_name(note->state)));
		json_writer_text(json, "detail", span_text(note->detail));
		if (kind == WORK_DERIVE)
			json_writer_i64(json, "waiting",
				metrics_get(context->metrics, METRIC_DERIVE_WAITING));
		else
			json_writer_null(json, "waiting");
		json_writer_end(json, '}');
	}
	json_writer_end(json, ']');
}
