/* What a request says of a new object beside its bytes: the headers that are stored and given back,
 * tags, storage class, canned ACL. PutObject, CopyObject and CreateMultipartUpload say it alike.
 * s3.md 5.1. */
#ifndef API_S3_OBJECT_OBJECT_HEADERS_H
#define API_S3_OBJECT_OBJECT_HEADERS_H

#include "api/exchange/exchange.h"
#include "storage/objects/object_facts.h"
#include "storage/versions/object.h"

/* Reads them into the exchange's arena: names in lower case, repeats of one name joined,
 * Content-Encoding without "aws-chunked". False and the reply set when one of them breaks a rule
 * (InvalidStorageClass, InvalidTag, InvalidArgument, InvalidRedirectLocation) or asks for what this
 * server does not do (NotImplemented): then nothing was done. The sizes are for
 * object_facts_check. */
bool object_headers_read(struct exchange *exchange, struct object_facts *out, enum next *out_next);

#endif
