#include "api/json_reply.h"

static void write_error(struct exchange *const exchange, const struct error *const err, const struct error_row *const row)
{
	json_reply_pace(exchange);
	json_reply_error(exchange, span_text(error_map_text(err, row)));
}

const struct face face_xet = {.name = "xet", .hides = true, .busy_status = JSON_REPLY_BUSY, .write_error = write_error, .prepare = json_reply_prepare};
