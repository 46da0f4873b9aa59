/* The reply to an upload by form: a status, a document or a redirect. */
#ifndef API_S3_POST_POST_REPLY_H
#define API_S3_POST_POST_REPLY_H

#include "api/s3/post/post_form.h"
#include "storage/versions/object.h"

/* Replies as the fields success_action_redirect (or redirect) and success_action_status ask: 303,
 * 204 (the default), 200, or 201 with a PostResponse. */
enum next post_reply(
	struct exchange *exchange, const struct post_form *form, const struct object *object);

#endif
