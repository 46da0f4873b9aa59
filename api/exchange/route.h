/* One row of the protocol: method, path pattern, query marker, required access, kind of body, and
 * the steps of the handler. The tables of the faces contain the rows (router.h). exchange->route is
 * the row of the request, for all code that judges or reads it. */
#ifndef API_EXCHANGE_ROUTE_H
#define API_EXCHANGE_ROUTE_H

#include "api/exchange/exchange.h"

enum body_mode { BODY_NONE, BODY_SMALL, BODY_STREAM };

/* The access that the caller must have before `begin` runs. Pattern parameter 0 is the bucket and 1
 * the key or run. */
enum access {
	ACCESS_ANYONE,    /* health, ready */
	ACCESS_SIGNED_IN, /* any valid key: ListBuckets shows its own */
	ACCESS_METRICS,   /* root, and keys with the grant "metrics" */
	ACCESS_ROOT,      /* admin routes, control socket */
	ACCESS_CREATE_BUCKET,
	ACCESS_BUCKET_KNOWN, /* any permission on anything in the bucket */
	/* PERMISSION_WRITE or _DELETE on anything in the bucket: for bodies that name many keys;
	 * the handler judges each key */
	ACCESS_BUCKET_CHANGES,
	ACCESS_BUCKET_LIST, /* PERMISSION_LIST on bucket (with the query's `prefix` as prefix) */
	/* the same and any valid key: for requests that read far more rows than they reply */
	ACCESS_BUCKET_SCAN,
	/* PERMISSION_LIST on the whole bucket, because runs are not listed by prefix */
	ACCESS_BUCKET_RUNS,
	/* the same, but not through grants of the bucket: for reading its settings */
	ACCESS_BUCKET_SETTINGS,
	ACCESS_BUCKET_ADMIN,
	ACCESS_OBJECT_READ, /* PERMISSION_READ on bucket/key, or the object is public */
	ACCESS_OBJECT_WRITE,
	ACCESS_OBJECT_DELETE,
	/* PERMISSION_READ, but not through grants of the bucket or the object */
	ACCESS_OBJECT_TAGS_READ,
	ACCESS_OBJECT_TAGS_WRITE, /* PERMISSION_WRITE, likewise */
	ACCESS_OBJECT_ADMIN,      /* PERMISSION_ADMIN on bucket/key: its ACL */
	ACCESS_RUN_READ,          /* PERMISSION_READ on bucket/run/ */
	ACCESS_RUN_FLEET,         /* the same, but not through grants of the bucket: for leases */
	/* as ACCESS_RUN_READ, or a shared URL of this very path (shared_url.h) */
	ACCESS_RUN_OBJECT,
	ACCESS_RUN_WRITE, /* PERMISSION_WRITE on bucket/run/ */
	/* a Xet token (xet_token.h) whose key may still know of the token's bucket; handlers judge
	 * object keys */
	ACCESS_XET_READ,
	ACCESS_XET_WRITE /* the same, with a token for writing */
};

struct route {
	int methods; /* of enum method, or'ed */
	/* Segments of literal text or {name}. {token} is a secret, which no log shows. A last
	 * {name*} takes the rest with its slashes, which must not be empty. "/" alone is the root.
	 * A trailing slash in the request is ignored unless {name*} takes it. */
	const char *pattern;
	/* A query parameter that must be present ("uploads"), or must have this value
	 * ("list-type=2"). NULL: any query. The first row that fits is taken. */
	const char *query;
	enum access access;
	enum body_mode body;
	const struct face *face;
	const char *name; /* for logs and docs, such as "PutObject" */
	enum next (*begin)(struct exchange *exchange);
	enum next (*finish)(struct exchange *exchange);
	enum next (*resume)(struct exchange *exchange);
};

#endif
