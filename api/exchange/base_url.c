#include "api/exchange/base_url.h"

enum { HOST_MAX_BYTES = 300 };

static bool is_secure(struct exchange *exchange);
static bool is_host(struct span host);

const char *base_url(struct exchange *exchange)
{
	if (exchange->context->public_url != NULL)
		return exchange->context->public_url;
	const struct span host = span_trim(exchange_header(exchange, "host"));
	const bool secure = is_secure(exchange);
	const char *const scheme = secure ? "https" : "http";
	const char *const url = is_host(host) ? arena_format(exchange->arena, "%s://%.*s", scheme,
							(int)host.len, (const char *)host.data)
					      : NULL;
	return url != NULL ? url : secure ? "https://localhost" : "http://localhost";
}

/* Plain HTTP comes only from this machine or from a proxy, and a proxy that ends TLS says so. */
static bool is_secure(struct exchange *exchange)
{
	return exchange->secure ||
		span_equal_text(span_trim(exchange_header(exchange, "x-forwarded-proto")), "https");
}

/* Other characters must not get into a header or into a URL that clients follow. */
static bool is_host(struct span host)
{
	if (host.len == 0 || host.len > HOST_MAX_BYTES)
		return false;
	for (size_t i = 0; i < host.len; i++) {
		const uint8_t byte = host.data[i];
		const bool is_letter = (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z');
		if (!is_letter && !(byte >= '0' && byte <= '9') && byte != '.' && byte != '-' &&
			byte != '_' && byte != ':' && byte != '[' && byte != ']')
			return false;
	}
	return true;
}
