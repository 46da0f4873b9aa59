/* The server's own numbers, as the overview and its event show them. */
#ifndef API_LIVE_SERVER_NUMBERS_H
#define API_LIVE_SERVER_NUMBERS_H

#include "api/exchange/exchange.h"
#include "base/format/json_node.h"

enum server_number {
	NUMBER_REQUESTS,
	NUMBER_ERRORS,
	NUMBER_BYTES_RECEIVED,
	NUMBER_BYTES_SENT,
	NUMBER_CONNECTIONS,
	NUMBER_WAITS,
	NUMBER_STREAMS,
	NUMBER_REPLICAS,
	NUMBER_DISK_FREE,
	NUMBER_DAMAGED_CHUNKS,
	NUMBER_STEPS_PUBLISHED,
	NUMBER_STEPS_PROVEN,
	NUMBER_STEPS_FAILED,
	SERVER_NUMBERS
};
struct server_numbers {
	int64_t values[SERVER_NUMBERS];
};

/* Reads them now; the space on the disk is measured. */
void server_numbers_read(const struct api_context *context, struct server_numbers *out);
/* Prints as members those that differ from `before`; all of them when that is NULL. */
void server_numbers_print(const struct server_numbers *numbers, const struct server_numbers *before,
	struct json_writer *json);
/* Whether a difference is worth an event: the disk's free space moves a little all the time. */
bool server_numbers_differ(const struct server_numbers *a, const struct server_numbers *b);
/* The array "work": what the work behind the requests is doing. */
void server_work_print(const struct api_context *context, struct json_writer *json);

#endif
