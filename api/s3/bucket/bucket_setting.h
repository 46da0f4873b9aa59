/* The common steps of the operations on a bucket's settings. api/s3/bucket/handlers.h declares the
 * two that the routes name: bucket_setting_put_begin and bucket_setting_resume. */
#ifndef API_S3_BUCKET_BUCKET_SETTING_H
#define API_S3_BUCKET_BUCKET_SETTING_H

#include "api/exchange/exchange.h"
#include "storage/buckets/bucket.h"

/* Starts the change of a PUT or DELETE; bucket_setting_resume replies with `status`, which is below
 * 300, and no body. */
enum next bucket_setting_start(
	struct exchange *exchange, const struct bucket_edit *edit, int status);
/* The same for one document; empty bytes remove it. */
enum next bucket_setting_store(
	struct exchange *exchange, enum bucket_document_kind kind, struct span bytes, int status);
/* A whole DELETE: checks x-amz-expected-bucket-owner and removes the document; 204. */
enum next bucket_setting_drop(struct exchange *exchange, enum bucket_document_kind kind);
/* For a GET: checks x-amz-expected-bucket-owner and reads the document, into the arena; empty when
 * there is none. */
int bucket_setting_find(struct exchange *exchange, enum bucket_document_kind kind, struct span *out,
	struct error *err);

#endif
