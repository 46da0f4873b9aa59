/* One row of the protocol: method, path pattern, query marker, who may, what kind of body, handler
 * steps. The tables of the faces hold them (router.h); what judges or reads a request looks at the
 * row that it came by. */
#ifndef API_EXCHANGE_ROUTE_H
#define API_EXCHANGE_ROUTE_H

#include "api/exchange/exchange.h"

enum body_mode { BODY_NONE, BODY_SMALL, BODY_STREAM };

/* How `allow` is judged against the principal before `begin` runs. The bucket and key or run are
 * pattern parameters 0 and 1. */
enum access {
	ACCESS_ANYONE,    /* health, ready */
	ACCESS_SIGNED_IN, /* any valid key: ListBuckets shows its own */
	ACCESS_METRICS,   /* root, and keys with the grant "metrics" */
	ACCESS_ROOT,      /* admin routes, control socket */
	ACCESS_CREATE_BUCKET,
	ACCESS_BUCKET_KNOWN, /* any permission on anything in the bucket */
	/* PERMISSION_WRITE or _DELETE on anything in the bucket: bodies that name many keys,
	 * each of which the handler judges */
	ACCESS_BUCKET_CHANGES,
	ACCESS_BUCKET_LIST, /* PERMISSION_LIST on bucket (with the `prefix` query as prefix) */
	/* PERMISSION_LIST on the whole bucket: runs are not listed by prefix */
	ACCESS_BUCKET_RUNS,
	/* the same, but not by grants of the bucket: reading its settings */
	ACCESS_BUCKET_SETTINGS,
	ACCESS_BUCKET_ADMIN,
	ACCESS_OBJECT_READ, /* PERMISSION_READ on bucket/key, or the object is public */
	ACCESS_OBJECT_WRITE,
	ACCESS_OBJECT_DELETE,
	/* PERMISSION_READ, but not by grants of the bucket or the object */
	ACCESS_OBJECT_TAGS_READ,
	ACCESS_OBJECT_TAGS_WRITE, /* PERMISSION_WRITE, likewise */
	ACCESS_OBJECT_ADMIN,      /* PERMISSION_ADMIN on bucket/key: its ACL */
	ACCESS_RUN_READ,          /* PERMISSION_READ on bucket/run/ */
	ACCESS_RUN_FLEET, /* the same, but not by grants of the bucket: leases and who has one */
	ACCESS_RUN_WRITE, /* PERMISSION_WRITE on bucket/run/ */
	/* a Xet token (xet_token.h) whose bearer may still know of its bucket; handlers judge
	 * keys */
	ACCESS_XET_READ,
	ACCESS_XET_WRITE /* the same, given for writing */
};

struct route {
	int methods; /* of enum method, or'ed */
	/* Segments of literal text or {name} ({token}: a secret, which no log shows); a last
	 * {name*} takes the rest with its slashes (not empty). "/" alone is the root. A trailing
	 * slash in the request is ignored unless {name*} takes it. */
	const char *pattern;
	/* This query parameter must be present ("uploads"), or "list-type=2" with its value; NULL:
	 * any. Rows are tried in order. */
	const char *query;
	enum access access;
	enum body_mode body;
	const struct face *face;
	const char *name; /* for logs and docs: "PutObject" */
	enum next (*begin)(struct exchange *exchange);
	enum next (*finish)(struct exchange *exchange);
	enum next (*resume)(struct exchange *exchange);
};

#endif
