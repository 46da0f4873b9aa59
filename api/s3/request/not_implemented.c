#include "api/s3/request/not_implemented.h"

#include "api/exchange/route.h"
#include "api/s3/request/s3_error.h"

enum next not_implemented_begin(struct exchange *exchange)
{
	const struct route *const route = exchange->route;
	ASSERT(route != NULL);
	const char *const message =
		arena_format(exchange->arena, "%s is not implemented by this server.", route->name);
	return s3_error_not_implemented(
		exchange, route->query != NULL ? route->query : route->name, message);
}
