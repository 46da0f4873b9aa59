/* A checksum as child elements of an XML reply. */
#ifndef API_S3_REQUEST_CHECKSUM_XML_H
#define API_S3_REQUEST_CHECKSUM_XML_H

#include "api/s3/xml/xml_writer.h"
#include "base/digest/checksum.h"
#include "storage/uploads/upload.h"

/* <ChecksumCRC32>value</ChecksumCRC32>, or the element of another algorithm, with "-N" for a
 * COMPOSITE of `parts`; nothing for CHECKSUM_NONE. */
void checksum_xml_value(struct xml_writer *xml, const struct checksum *checksum, unsigned parts);
/* <ChecksumType>; nothing for CHECKSUM_NONE. */
void checksum_xml_type(struct xml_writer *xml, const struct checksum *checksum);
/* <ChecksumAlgorithm> and <ChecksumType> of an open upload; nothing when its client named none. */
void checksum_xml_upload(struct xml_writer *xml, const struct upload_checksum *upload);

#endif
