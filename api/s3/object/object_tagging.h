/* /{bucket}/{key*}?tagging: GetObjectTagging, PutObjectTagging, DeleteObjectTagging, of any
 * version. */
#ifndef API_S3_OBJECT_OBJECT_TAGGING_H
#define API_S3_OBJECT_OBJECT_TAGGING_H

#include "api/exchange/exchange.h"

enum next get_object_tagging_begin(struct exchange *exchange);
enum next put_object_tagging_begin(struct exchange *exchange);
enum next put_object_tagging_finish(struct exchange *exchange);
enum next put_object_tagging_resume(struct exchange *exchange);
enum next delete_object_tagging_begin(struct exchange *exchange);
enum next delete_object_tagging_resume(struct exchange *exchange);

#endif
