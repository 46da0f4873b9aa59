/* The body of CompleteMultipartUpload: the parts that the object is made of. s3.md section 6. */
#ifndef API_S3_UPLOAD_COMPLETE_LIST_H
#define API_S3_UPLOAD_COMPLETE_LIST_H

#include "base/arena.h"
#include "storage/uploads/upload.h"

/* Parses it into the arena; ETags come without their quotes. malformed_xml: no document of this
 * form, an empty list, a part without number or ETag, more than UPLOAD_PARTS_MAX. invalid: a number
 * that no part can have, a part with two checksums or with one that is malformed. Elements that it
 * does not know are passed over. */
int complete_list_parse(struct span xml, struct arena *arena, struct upload_listed_part **out,
	size_t *out_count, struct error *err);

#endif
