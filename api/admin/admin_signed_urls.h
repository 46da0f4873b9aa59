/* POST /-/signed-urls: URLs for S3 requests with the signature of the caller's key, so that no page
 * of the console ever has a secret. docs/protocol/admin.md. */
#ifndef API_ADMIN_ADMIN_SIGNED_URLS_H
#define API_ADMIN_ADMIN_SIGNED_URLS_H

#include "api/exchange/exchange.h"

enum next admin_signed_urls_begin(struct exchange *exchange);
enum next admin_signed_urls_finish(struct exchange *exchange);
enum next admin_signed_urls_resume(struct exchange *exchange);

#endif
