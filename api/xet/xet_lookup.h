/* Finds files by their Xet hash, for the bearer of a token of a bucket. */
#ifndef API_XET_XET_LOOKUP_H
#define API_XET_XET_LOOKUP_H

#include "api/exchange/exchange.h"
#include "storage/xet/xet_view.h"

/* invalid unless the text is a hash of 64 digits. */
int xet_lookup_parse(struct span text, struct chunk_id *out, struct error *err);
/* Finds a file that the caller may reach; not_found. The route must require a token, so that
 * exchange->transfer is set. */
int xet_lookup_find(struct exchange *exchange, struct xet_view *view, const struct chunk_id *file,
	struct xet_content *out, struct error *err);

#endif
