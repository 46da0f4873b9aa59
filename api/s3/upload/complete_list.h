/* The body of CompleteMultipartUpload: the list of parts that the object consists of. Any
 * thread. */
#ifndef API_S3_UPLOAD_COMPLETE_LIST_H
#define API_S3_UPLOAD_COMPLETE_LIST_H

#include "base/arena.h"
#include "storage/uploads/upload.h"

/* Parses the list into the arena; ETags lose their quotes. malformed_xml: another document, an
 * empty list, a part without number or ETag, more than UPLOAD_PARTS_MAX parts. invalid: a number
 * that no part can have, a part with two checksums or a malformed one. no_memory. Unknown elements
 * are ignored. */
int complete_list_parse(struct span xml, struct arena *arena, struct upload_listed_part **out,
	size_t *out_count, struct error *err);

#endif
