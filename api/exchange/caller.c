#include "api/exchange/caller.h"

#include "api/exchange/principal.h"
#include "base/digest/xxh3.h"

struct share_caller caller_of(const struct exchange *exchange)
{
	const struct principal *const principal = exchange->principal;
	if (principal == NULL)
		return (struct share_caller){exchange->peer, SHARE_STRANGER};
	return (struct share_caller){
		xxh3_64(principal->key_id), principal->is_root ? SHARE_ROOT : SHARE_KEY};
}

const char *caller_address(struct exchange *exchange)
{
	const char *const address = exchange->ops->client(exchange);
	return address != NULL ? address : "";
}
