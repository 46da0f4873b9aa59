#include "api/exchange/json_reply.h"

static void write_error(
	struct exchange *exchange, const struct error *err, const struct error_row *row)
{
	json_reply_pace(exchange);
	json_reply_error(exchange, span_text(error_map_text(err, row)), row->json_code);
}

/* hf_xet tries again for more than a minute at any 5xx, and does not show the body: a full disk is
 * 413, which it takes for final and names. */
enum { FULL_STATUS = 413 };

const struct face face_xet = {.name = "xet",
	.hides = true,
	.busy_status = JSON_REPLY_BUSY,
	.full_status = FULL_STATUS,
	.write_error = write_error,
	.prepare = json_reply_prepare};
