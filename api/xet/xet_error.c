#include "api/exchange/json_reply.h"

static void xet_error_write(
	struct exchange *exchange, const struct error *err, const struct error_row *row)
{
	json_reply_pace(exchange);
	const char *const text = json_reply_without_stop(exchange, error_map_text(err, row));
	json_reply_error(exchange, span_text(text), row->json_code);
}

/* hf_xet retries any 5xx for more than a minute and does not show the body. So a full disk is 413,
 * which it takes as final and shows. */
enum { FULL_STATUS = 413 };

const struct face face_xet = {.name = "xet",
	.hides = true,
	.busy_status = JSON_REPLY_BUSY,
	.full_status = FULL_STATUS,
	.write_error = xet_error_write,
	.prepare = json_reply_prepare};
