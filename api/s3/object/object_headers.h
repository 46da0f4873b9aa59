/* The headers of a request that describe a new object: those that are stored and given back, tags,
 * storage class and canned ACL. PutObject, PostObject, CopyObject and CreateMultipartUpload have
 * the same. */
#ifndef API_S3_OBJECT_OBJECT_HEADERS_H
#define API_S3_OBJECT_OBJECT_HEADERS_H

#include "api/exchange/exchange.h"
#include "storage/objects/object_facts.h"
#include "storage/versions/object.h"

/* Reads them into the exchange's arena: names in lower case, repeated headers joined,
 * Content-Encoding without "aws-chunked". Returns false with the reply set when one of them breaks
 * a rule (InvalidStorageClass, InvalidTag, InvalidArgument, InvalidRedirectLocation), when the
 * caller may not set the ACL, or when a header asks for something that this server does not have
 * (NotImplemented). object_facts_check judges the sizes later. */
bool object_headers_read(struct exchange *exchange, struct object_facts *out, enum next *out_next);

#endif
