/* CopyObject: PUT /{bucket}/{key*} with x-amz-copy-source. Its steps are called by those of
 * put_object.h. */
#ifndef API_S3_OBJECT_COPY_OBJECT_H
#define API_S3_OBJECT_COPY_OBJECT_H

#include "api/exchange/exchange.h"

enum next copy_object_begin(struct exchange *exchange);
enum next copy_object_finish(struct exchange *exchange);
enum next copy_object_resume(struct exchange *exchange);

#endif
