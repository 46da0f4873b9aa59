/* GetBucketTagging, PutBucketTagging, DeleteBucketTagging: /{bucket}?tagging. */
#ifndef API_S3_BUCKET_BUCKET_TAGGING_H
#define API_S3_BUCKET_BUCKET_TAGGING_H

#include "api/exchange/exchange.h"
#include "api/s3/xml/xml_tree.h"

enum next get_bucket_tagging_begin(struct exchange *exchange);
/* behind bucket_setting_put_begin */
enum next put_bucket_tagging_finish(struct exchange *exchange);
enum next delete_bucket_tagging_begin(struct exchange *exchange);

/* The <Tag> children of a node as a tag_set, in the arena: malformed_xml, too_many_tags, bad_tag.
 * `most` as for tag_set_check. */
int bucket_tagging_read(const struct xml_node *node, size_t most, struct arena *arena,
	struct span *out_set, struct error *err);

#endif
