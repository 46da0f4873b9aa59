#include "api/xet/xorb_request.h"

int xorb_request_hash(const struct exchange *exchange, struct chunk_id *out, struct error *err)
{
	ASSERT(exchange->parameter_count == 2);
	const struct span text = exchange->parameters[1];
	if (chunk_id_parse(text, out))
		return 0;
	return error_set(err, ERROR_INVALID,
		"'%.*s' is not a hash of 64 hexadecimal digits in lower case.",
		(int)(text.len < 80 ? text.len : 80), (const char *)text.data);
}

bool xorb_request_has_private_codecs(struct exchange *exchange)
{
	return span_equal_text(exchange_header(exchange, "x-deltabucket-codecs"), "all");
}
