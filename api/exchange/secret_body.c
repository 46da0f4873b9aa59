#include "api/exchange/secret_body.h"

enum next secret_body_accept(struct exchange *exchange, size_t cap_bytes)
{
	const enum next next = exchange_accept_small(exchange, cap_bytes);
	exchange->small_body.is_secret = true;
	return next;
}

void secret_body_wipe(struct exchange *exchange)
{
	ASSERT(exchange->small_body.is_secret);
	buffer_wipe(&exchange->small_body);
}
