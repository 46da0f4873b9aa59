#include "api/s3/request/checksum_xml.h"

void checksum_xml_value(struct xml_writer *xml, const struct checksum *checksum, unsigned parts)
{
	char text[CHECKSUM_TEXT_BYTES];
	if (checksum->algorithm == CHECKSUM_NONE)
		return;
	checksum_format(checksum, parts, text);
	xml_writer_text(xml, checksum_element(checksum->algorithm), span_text(text));
}

void checksum_xml_type(struct xml_writer *xml, const struct checksum *checksum)
{
	if (checksum->algorithm != CHECKSUM_NONE)
		xml_writer_text(xml, "ChecksumType",
			span_text(checksum->type == CHECKSUM_COMPOSITE ? "COMPOSITE"
								       : "FULL_OBJECT"));
}

void checksum_xml_upload(struct xml_writer *xml, const struct upload_checksum *upload)
{
	const struct checksum checksum = {.algorithm = upload->algorithm, .type = upload->type};
	if (!upload->is_named)
		return;
	xml_writer_text(xml, "ChecksumAlgorithm", span_text(checksum_name(checksum.algorithm)));
	checksum_xml_type(xml, &checksum);
}
