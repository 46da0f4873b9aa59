/* What all settings of a bucket have in common: a small body, and a change that is waited for. */
#ifndef API_S3_BUCKET_BUCKET_SETTING_H
#define API_S3_BUCKET_BUCKET_SETTING_H

#include "api/exchange/exchange.h"
#include "storage/buckets/bucket.h"

/* PUT, begin: checks x-amz-expected-bucket-owner and takes the body, which `finish` gets from
 * xml_body_check (api/s3/request/xml_body.h). */
enum next bucket_setting_put_begin(struct exchange *exchange);
/* Starts the change; bucket_setting_resume replies with `status` and no body. Also for DELETE,
 * without a body. */
enum next bucket_setting_start(
	struct exchange *exchange, const struct bucket_edit *edit, int status);
enum next bucket_setting_resume(struct exchange *exchange);
/* The same for one document; empty bytes remove it. */
enum next bucket_setting_store(
	struct exchange *exchange, enum bucket_document_kind kind, struct span bytes, int status);
/* DELETE: checks the owner, removes the document, 204. */
enum next bucket_setting_drop(struct exchange *exchange, enum bucket_document_kind kind);
/* GET: checks the owner and reads the document; empty when there is none. */
int bucket_setting_find(struct exchange *exchange, enum bucket_document_kind kind, struct span *out,
	struct error *err);

#endif
