/* CORS: the headers that a reply has when the request has an Origin. api/s3/bucket/handlers.h has
 * the operations on the rules, and preflights. */
#ifndef API_S3_BUCKET_BUCKET_CORS_H
#define API_S3_BUCKET_BUCKET_CORS_H

#include "api/exchange/exchange.h"

/* The S3 face's `prepare` (api/exchange/error_map.h). Adds the headers to every reply, also to
 * errors. Nothing is looked up unless the request has an Origin and names a bucket. */
void bucket_cors_prepare(struct exchange *exchange);

#endif
