/* What a browser is told after an upload: by status, by a document, or by being sent on. */
#ifndef API_S3_POST_POST_REPLY_H
#define API_S3_POST_POST_REPLY_H

#include "api/s3/post/post_form.h"
#include "storage/versions/object.h"

/* By the fields success_action_redirect (or redirect) and success_action_status: 303, 204, 200, or
 * 201 with a PostResponse. */
enum next post_reply(
	struct exchange *exchange, const struct post_form *form, const struct object *object);

#endif
