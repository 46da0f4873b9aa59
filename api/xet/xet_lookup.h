/* Files by their Xet hash, for who bears a token of a bucket: what he may reach. */
#ifndef API_XET_XET_LOOKUP_H
#define API_XET_XET_LOOKUP_H

#include "api/exchange/exchange.h"
#include "storage/xet/xet_view.h"

/* invalid unless it is 64 digits. */
int xet_lookup_parse(struct span text, struct chunk_id *out, struct error *err);
/* not_found. The route asks for a token: exchange->transfer is there. */
int xet_lookup_find(struct exchange *exchange, struct xet_view *view, const struct chunk_id *file,
	struct xet_content *out, struct error *err);

#endif
