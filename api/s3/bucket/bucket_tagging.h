/* The tags of a bucket as a part of a larger document. */
#ifndef API_S3_BUCKET_BUCKET_TAGGING_H
#define API_S3_BUCKET_BUCKET_TAGGING_H

#include "api/s3/xml/xml_tree.h"

/* The <Tag> children of `node` as a tag_set in the arena. too_many_tags over `most`, malformed_xml,
 * bad_tag, no_memory. */
int bucket_tagging_read(const struct xml_node *node, size_t most, struct arena *arena,
	struct span *out_set, struct error *err);

#endif
