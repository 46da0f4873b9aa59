/* The whole protocol as one table: method, path pattern, query marker, who may, what kind of body, handler steps. The router walks it;
 * 405 and its Allow come from the same rows, and a test prints it. Faces give their rows in api/<face>/<face>_routes.c. */
#ifndef API_ROUTER_H
#define API_ROUTER_H

#include "api/exchange.h"
#include "storage/account.h"

enum body_mode { BODY_NONE, BODY_SMALL, BODY_STREAM };

/* How `allow` is judged against the principal before `begin` runs. The bucket and key or run are pattern parameters 0 and 1. */
enum access {
	ACCESS_ANYONE,       /* health, ready */
	ACCESS_SIGNED_IN,    /* any valid key: ListBuckets shows its own */
	ACCESS_METRICS,      /* root, and keys with the grant "metrics" */
	ACCESS_ROOT,         /* admin routes, control socket */
	ACCESS_CREATE_BUCKET,
	ACCESS_BUCKET_KNOWN, /* any permission on anything in the bucket */
	ACCESS_BUCKET_CHANGES, /* PERMISSION_WRITE or _DELETE on anything in the bucket: bodies that name many keys, each of
	                          which the handler judges */
	ACCESS_BUCKET_LIST,  /* PERMISSION_LIST on bucket (with the `prefix` query as prefix) */
	ACCESS_BUCKET_RUNS,  /* PERMISSION_LIST on the whole bucket: runs are not listed by prefix */
	ACCESS_BUCKET_SETTINGS, /* the same, but not by grants of the bucket: reading its settings */
	ACCESS_BUCKET_ADMIN,
	ACCESS_OBJECT_READ,  /* PERMISSION_READ on bucket/key, or the object is public */
	ACCESS_OBJECT_WRITE,
	ACCESS_OBJECT_DELETE,
	ACCESS_OBJECT_TAGS_READ,  /* PERMISSION_READ, but not by grants of the bucket or the object */
	ACCESS_OBJECT_TAGS_WRITE, /* PERMISSION_WRITE, likewise */
	ACCESS_OBJECT_ADMIN, /* PERMISSION_ADMIN on bucket/key: its ACL */
	ACCESS_RUN_READ,     /* PERMISSION_READ on bucket/run/ */
	ACCESS_RUN_FLEET,    /* the same, but not by grants of the bucket: leases and who has one */
	ACCESS_RUN_WRITE,    /* PERMISSION_WRITE on bucket/run/ */
	ACCESS_XET_READ,     /* a Xet token (xet_token.h) whose bearer may still know of its bucket; handlers judge keys */
	ACCESS_XET_WRITE     /* the same, given for writing */
};

struct route {
	int methods;             /* of enum method, or'ed */
	/* Segments of literal text or {name} ({token}: a secret, which no log shows); a last {name*} takes the rest with its slashes (not empty). "/" alone is the root. A trailing
	 * slash in the request is ignored unless {name*} takes it. */
	const char *pattern;
	/* This query parameter must be present ("uploads"), or "list-type=2" with its value; NULL: any. Rows are tried in order. */
	const char *query;
	enum access access;
	enum body_mode body;
	const struct face *face;
	const char *name;        /* for logs and docs: "PutObject" */
	enum next (*begin)(struct exchange *exchange);
	enum next (*finish)(struct exchange *exchange);
	enum next (*resume)(struct exchange *exchange);
};

/* Rows of each face, ended by a row with a NULL pattern. A pattern that names a bucket as {namespace}/{bucket} gives its name in the catalog as
 * parameter 0, and what is named behind it from 1 on. */
extern const struct route admin_routes[];
extern const struct route steps_routes[];
extern const struct route hot_load_routes[];
extern const struct route hub_routes[];
extern const struct route xet_routes[];
extern const struct route s3_routes[];

/* Finds the row and sets route, face and parameters; leaves the route NULL when there is none. Called by router_begin unless it was
 * called before (the transport wants to know early what kind of body the route takes). */
void router_match(struct exchange *exchange);
/* Finds the row, decodes the parameters (bad_uri when they or the query are malformed), identifies and authorises the caller, then runs
 * `begin`. On failure sets the reply in the shape of the family of paths. */
enum next router_begin(struct exchange *exchange);
enum next router_finish(struct exchange *exchange);
enum next router_resume(struct exchange *exchange);
/* The path as a log may show it: where a parameter called {token} permits something, the route's pattern instead. */
struct span router_log_path(const struct exchange *exchange);

#endif
