/* Request bodies that are XML documents: collected whole and compared with the digests that the
 * request has. */
#ifndef API_S3_REQUEST_XML_BODY_H
#define API_S3_REQUEST_XML_BODY_H

#include "api/exchange/exchange.h"

/* In `begin`: reads the digest headers, so that malformed ones are refused before the body comes,
 * and accepts the body. */
enum next xml_body_accept(struct exchange *exchange, size_t cap_bytes);
/* In `finish`: true when the body matches Content-MD5 and x-amz-checksum-*, or the request has
 * neither. Otherwise false with the reply set: BadDigest. */
bool xml_body_check(struct exchange *exchange, struct span *out_xml, enum next *out_next);

#endif
