/* GetBucketCors, PutBucketCors, DeleteBucketCors: /{bucket}?cors; preflights: OPTIONS /{bucket} and
 * /{bucket}/{key}; and the headers of every other reply to a request that says where it comes
 * from. */
#ifndef API_S3_BUCKET_BUCKET_CORS_H
#define API_S3_BUCKET_BUCKET_CORS_H

#include "api/exchange/exchange.h"

enum next get_bucket_cors_begin(struct exchange *exchange);
enum next put_bucket_cors_finish(struct exchange *exchange); /* behind bucket_setting_put_begin */
enum next delete_bucket_cors_begin(struct exchange *exchange);
/* 200, or 403 AccessForbidden when no rule fits; needs no credentials. */
enum next preflight_begin(struct exchange *exchange);

/* The S3 face's `prepare` (api/exchange/error_map.h): adds the headers to whatever the reply will
 * be, errors too. Nothing is looked up unless the request has an Origin and names a bucket. */
void bucket_cors_prepare(struct exchange *exchange);

#endif
