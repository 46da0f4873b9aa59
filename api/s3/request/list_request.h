/* What the listings of a bucket share: prefix, delimiter, encoding and size of a page as asked for,
 * and how names, owners and objects are written into the answer. s3.md section 4. */
#ifndef API_S3_REQUEST_LIST_REQUEST_H
#define API_S3_REQUEST_LIST_REQUEST_H

#include "api/exchange/exchange.h"
#include "api/s3/xml/xml_writer.h"
#include "storage/buckets/bucket.h"
#include "storage/versions/object.h"

enum { LIST_PAGE_MAX = 1000, LIST_BODY_MAX_BYTES = 32 * 1024 * 1024 };

struct list_request {
	struct bucket bucket;
	struct span prefix;
	struct span delimiter; /* empty: none */
	bool encode_url;       /* names are percent-encoded in the answer */
	uint64_t limit;        /* 0 to LIST_PAGE_MAX */
};
/* `limit_name`: "max-keys" or "max-uploads". False and the reply set when a parameter is wrong, the
 * bucket is not there or x-amz-expected-bucket-owner names another owner. */
bool list_request_read(struct exchange *exchange, const char *limit_name, struct list_request *out,
	enum next *out_next);

/* A key or a part of one, encoded as was asked. */
void list_request_name(const struct list_request *request, struct xml_writer *xml,
	const char *element, struct span name);
/* Delimiter (when there is one) and EncodingType (when asked for). */
void list_request_echo(const struct list_request *request, struct xml_writer *xml);
/* <Owner>, or another element of the same children: S3's Initiator. `account` is both name and
 * id. */
void list_request_owner(struct xml_writer *xml, const char *element, struct span account);
/* Initiator and Owner of an upload: the account that began it; empty: an anonymous caller. */
void list_request_uploader(struct xml_writer *xml, struct span initiator);
/* What Contents and Version say of an object besides its names: LastModified to StorageClass. */
void list_request_object(const struct list_request *request, struct xml_writer *xml,
	const struct object_entry *entry, bool with_owner);
void list_request_prefixes(const struct list_request *request, struct xml_writer *xml,
	const struct span *prefixes, size_t count);

#endif
