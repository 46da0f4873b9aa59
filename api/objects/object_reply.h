/* Replies to GET and HEAD of one object version, for all faces that serve objects: conditions,
 * ranges, stored headers and the bytes. */
#ifndef API_OBJECTS_OBJECT_REPLY_H
#define API_OBJECTS_OBJECT_REPLY_H

#include "api/exchange/exchange.h"
#include "api/objects/byte_range.h"
#include "storage/objects/object_view.h"

struct object_reply_override { /* replaces a stored header; name in lower case */
	const char *name;
	const char *value; /* arena or static */
};
struct object_reply_params {
	/* Finds the version to serve; texts in the exchange's arena. It is called again when the
	 * version is removed before its bytes are opened, which can happen unless it was found
	 * through `view`. So a reader of a key that is being overwritten gets the old version or
	 * the new one, never an error. Headers added before a failure stay on the error reply. */
	int (*find)(struct exchange *exchange, struct object_view *view, struct object *out,
		struct error *err);
	/* Called when bytes are asked for that must be made first (the found object has sequence
	 * 0): waits or replies. NULL: there are no such objects. */
	enum next (*make)(struct exchange *exchange);
	/* Replies to a failed find; NULL: exchange_fail. */
	enum next (*fail)(struct exchange *exchange, const struct error *err);
	/* Chooses a range of the version, once the conditions hold: 1 with *out set, 0 to use the
	 * Range header, or -1. NULL: 0. */
	int (*choose)(struct exchange *exchange, const struct object *object,
		struct byte_range *out, struct error *err);
	/* Adds the face's own headers to every reply about the version, also to 304. NULL: none. */
	void (*add_identity)(struct exchange *exchange, const struct object *object);
	/* Adds headers to replies with the bytes, of which `range` is sent. NULL: none. */
	void (*add_headers)(struct exchange *exchange, const struct object *object,
		const struct byte_range *range);
	const struct object_reply_override *overrides;
	size_t override_count;
	/* for objects stored without a type; NULL: that of S3 */
	const char *default_content_type;
	bool hide_user_metadata; /* sends no stored x-amz-* headers */
};
/* Adds ETag, and the values that a step's manifest has for the object (x-deltabucket-digest,
 * -file-hash and -derived), so that a step can be published by hand. */
void object_reply_add_identity(struct exchange *exchange, const struct object *object);

/* May wait while a helper opens bytes that lie in very many places, or while bytes are fetched. The
 * end of that wait calls no step of the route. Copies `params` for it. */
enum next object_reply(struct exchange *exchange, const struct object_reply_params *params);

#endif
