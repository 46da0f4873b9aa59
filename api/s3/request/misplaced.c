#include "api/s3/request/misplaced.h"

#include <string.h>

#include "api/exchange/route.h"

static const struct {
	const char *marker;
	const char *message;
} lists[] = {
	{"uploads", "Key is not expected for the GET method ?uploads subresource"},
	{"versions", "There is no such thing as the ?versions sub-resource for a key"},
};

static enum next refuse(struct exchange *exchange, enum error_kind kind, const char *message);

enum next misplaced_on_key_begin(struct exchange *exchange)
{
	ASSERT(exchange->route != NULL);
	const char *const marker = exchange->route->query;
	for (size_t i = 0; marker != NULL && i < sizeof(lists) / sizeof(lists[0]); i++)
		if (strcmp(marker, lists[i].marker) == 0)
			return refuse(exchange, ERROR_INVALID_REQUEST, lists[i].message);
	exchange_add_header(exchange, "Allow", "GET, HEAD, PUT, DELETE");
	return refuse(exchange, ERROR_METHOD,
		"The specified method is not allowed against this resource.");
}

enum next misplaced_on_bucket_begin(struct exchange *exchange)
{
	return refuse(exchange, ERROR_INVALID_REQUEST, "A key must be specified.");
}

static enum next refuse(struct exchange *exchange, enum error_kind kind, const char *message)
{
	struct error err = {0};
	error_set(&err, kind, "%s", message);
	return exchange_fail(exchange, &err);
}
