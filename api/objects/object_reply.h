/* GET and HEAD of one object version, for every face that serves objects: conditions, ranges,
 * stored headers, the bytes. */
#ifndef API_OBJECTS_OBJECT_REPLY_H
#define API_OBJECTS_OBJECT_REPLY_H

#include "api/exchange/exchange.h"
#include "api/objects/byte_range.h"
#include "storage/objects/object_view.h"

struct object_reply_override { /* a header whose stored value gives way, lower-case name */
	const char *name;
	const char *value; /* arena or static */
};
struct object_reply_params {
	/* Finds the version to serve; texts in the exchange's arena. One that was not found through
	 * `view` may be removed before its bytes are opened: then it is called again, so that a
	 * reader of a key that is being overwritten sees the old version or the new one, never
	 * neither. Headers that it adds before it fails stay on the error. */
	int (*find)(struct exchange *exchange, struct object_view *view, struct object *out,
		struct error *err);
	/* The bytes of what was found (sequence 0) must be made first, and they are asked for:
	 * waits, or replies. NULL: there is no such thing. */
	enum next (*make)(struct exchange *exchange);
	/* Replies to a failed find; NULL: exchange_fail. */
	enum next (*fail)(struct exchange *exchange, const struct error *err);
	/* What of the version is asked for, once the conditions hold: 1 with *out set, 0 for what
	 * the Range header says, or -1. NULL: 0. */
	int (*choose)(struct exchange *exchange, const struct object *object,
		struct byte_range *out, struct error *err);
	/* Headers of the face's own for every reply that speaks of the version, 304 too; NULL:
	 * none. */
	void (*add_identity)(struct exchange *exchange, const struct object *object);
	/* And those that come with the bytes, of which `range` goes out; NULL: none. */
	void (*add_headers)(struct exchange *exchange, const struct object *object,
		const struct byte_range *range);
	const struct object_reply_override *overrides;
	size_t override_count;
	/* where the writer said nothing; NULL: what S3 says then */
	const char *default_content_type;
	bool hide_user_metadata; /* only headers of HTTP itself go out */
};
/* ETag, and x-deltabucket-digest: what a step's manifest says of the object, so that a step can be
 * published by hand. */
void object_reply_add_identity(struct exchange *exchange, const struct object *object);

/* Stored bytes may call themselves a page, and a browser would run its scripts in the origin of
 * this server, where others have their data: these two headers take its scripts and its origin
 * away. For every reply with bytes of users, 304 too: browsers renew what they have cached with its
 * headers. */
void object_reply_disarm(struct exchange *exchange);

/* Waits, too, while a helper opens bytes that lie in very many places; that calls none of the
 * route's steps. `params` are copied then. */
enum next object_reply(struct exchange *exchange, const struct object_reply_params *params);

#endif
