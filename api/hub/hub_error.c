/* Errors of the Hub's face. huggingface_hub maps them to exceptions by X-Error-Code and
 * X-Error-Message, and compares their texts. */
#include "api/exchange/json_reply.h"

static const char bad_token[] = "Invalid credentials in Authorization header";

static const struct {
	enum error_kind kind;
	const char *code;
} codes[] = {
	{ERROR_NO_BUCKET, "RepoNotFound"},
	{ERROR_NO_KEY, "EntryNotFound"},
};

static void hub_error_write(
	struct exchange *exchange, const struct error *err, const struct error_row *row)
{
	const char *const text = err->kind == ERROR_UNKNOWN_KEY_ID
		? bad_token
		: json_reply_without_stop(exchange, error_map_text(err, row));
	for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++)
		if (codes[i].kind == err->kind)
			exchange_add_header(exchange, "X-Error-Code", codes[i].code);
	exchange_add_header(exchange, "X-Error-Message", json_reply_header_text(exchange, text));
	json_reply_pace(exchange);
	json_reply_error(exchange, span_text(text), NULL);
}

const struct face face_hub = {.name = "hub",
	.hides = true,
	.busy_status = JSON_REPLY_BUSY,
	.write_error = hub_error_write,
	.prepare = json_reply_prepare};
