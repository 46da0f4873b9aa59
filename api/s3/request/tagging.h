/* Tags in the forms of S3: the header x-amz-tagging (k=v&k2=v2, URL-encoded) and the document
 * <Tagging>. */
#ifndef API_S3_REQUEST_TAGGING_H
#define API_S3_REQUEST_TAGGING_H

#include "api/s3/xml/xml_writer.h"
#include "base/arena.h"
#include "storage/buckets/tag_set.h"

enum { TAGGING_BODY_MAX_BYTES = 128 * 1024 };

/* Each gives a tag_set in the arena, which is empty when there are no tags. too_many_tags over
 * `most` tags, bad_tag, no_memory. The document: malformed_xml. The header: invalid when its
 * encoding is wrong or a key is empty or repeated. */
int tagging_read_header(
	struct span header, size_t most, struct arena *arena, struct span *out, struct error *err);
int tagging_read_xml(
	struct span xml, size_t most, struct arena *arena, struct span *out, struct error *err);
/* Writes the whole document <Tagging>, sorted by key. corrupt when `tags` is not a tag_set. */
int tagging_write_xml(struct span tags, struct arena *arena, struct buffer *out, struct error *err);

#endif
