/* Tags as S3 carries them: the header x-amz-tagging (k=v&k2=v2, URL-encoded) and the document
 * <Tagging>. For objects and buckets. s3.md 5.8. */
#ifndef API_S3_REQUEST_TAGGING_H
#define API_S3_REQUEST_TAGGING_H

#include "api/s3/xml/xml_writer.h"
#include "base/arena.h"
#include "storage/buckets/tag_set.h"

enum { TAGGING_BODY_MAX_BYTES = 128 * 1024 };

/* Each gives a tag_set in the arena, empty for no tags. At most `most` tags: too_many_tags.
 * bad_tag; malformed_xml (document); invalid (header: bad encoding, a key that is empty or comes
 * twice). */
int tagging_read_header(
	struct span header, size_t most, struct arena *arena, struct span *out, struct error *err);
int tagging_read_xml(
	struct span xml, size_t most, struct arena *arena, struct span *out, struct error *err);
/* <Tagging><TagSet>... as a whole document, sorted by key. corrupt when `tags` is not a tag_set. */
int tagging_write_xml(struct span tags, struct arena *arena, struct buffer *out, struct error *err);

#endif
