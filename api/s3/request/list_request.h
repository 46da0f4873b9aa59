/* The common part of the listings of a bucket: reads prefix, delimiter, encoding and size of a page
 * from the request, and writes names, owners and objects into the reply. */
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
	bool encode_url;       /* names are percent-encoded in the reply */
	uint64_t limit;        /* 0 to LIST_PAGE_MAX */
};
/* `limit_name`: "max-keys" or "max-uploads". Returns false with the reply set when a parameter is
 * wrong, the bucket does not exist or x-amz-expected-bucket-owner names another owner. */
bool list_request_read(struct exchange *exchange, const char *limit_name, struct list_request *out,
	enum next *out_next);

/* A key or a part of one, encoded as the request asks. */
void list_request_name(const struct list_request *request, struct xml_writer *xml,
	const char *element, struct span name);
/* Delimiter and EncodingType, each when the request has it. */
void list_request_echo(const struct list_request *request, struct xml_writer *xml);
/* <Owner>, or another element with the same children (Initiator). `account` is both name and id. */
void list_request_owner(struct xml_writer *xml, const char *element, struct span account);
/* Initiator and Owner of an upload: the account that began it; empty: an anonymous caller. */
void list_request_uploader(struct xml_writer *xml, struct span initiator);
/* The children of Contents and Version from LastModified to StorageClass, after Owner when
 * `with_owner`. */
void list_request_object(const struct list_request *request, struct xml_writer *xml,
	const struct object_entry *entry, bool with_owner);
void list_request_prefixes(const struct list_request *request, struct xml_writer *xml,
	const struct span *prefixes, size_t count);

#endif
