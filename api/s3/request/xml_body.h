/* Request bodies that are XML documents: collected whole, and compared with whatever digest came
 * along. */
#ifndef API_S3_REQUEST_XML_BODY_H
#define API_S3_REQUEST_XML_BODY_H

#include "api/exchange/exchange.h"

/* In `begin`: reads the digest headers (so that nonsense is refused before the body comes) and
 * takes the body, up to `cap` bytes. */
enum next xml_body_accept(struct exchange *exchange, size_t cap_bytes);
/* In `finish`: true when the body is what Content-MD5 and x-amz-checksum-* say, or nothing was
 * said; else the reply is set: BadDigest. */
bool xml_body_check(struct exchange *exchange, struct span *out_xml, enum next *out_next);

#endif
