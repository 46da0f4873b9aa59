/* Buckets: found, listed, created and edited. Any thread. */
#ifndef STORAGE_BUCKETS_BUCKET_H
#define STORAGE_BUCKETS_BUCKET_H

#include "base/arena.h"
#include "storage/buckets/bucket_document.h"
#include "storage/buckets/bucket_grant.h"
#include "storage/buckets/bucket_ref.h"
#include "storage/core/call.h"
#include "storage/core/store.h"

/* Numbers are stored in the catalog. */
enum bucket_versioning { BUCKET_UNVERSIONED = 0, BUCKET_VERSIONED = 1, BUCKET_SUSPENDED = 2 };
enum etag_policy { ETAG_DEFAULT = 0, ETAG_MD5 = 1, ETAG_FAST = 2 }; /* default: the server's */

/* "never", "enabled", "suspended". Static text. */
const char *bucket_versioning_word(enum bucket_versioning versioning);
/* "md5", "fast", "default". Static text. */
const char *etag_policy_name(enum etag_policy policy);
bool etag_policy_parse(struct span name, enum etag_policy *out);

struct bucket {
	int64_t id;
	struct span name;
	struct span owner; /* namespace of the account */
	int64_t created_ms;
	enum bucket_versioning versioning;
	enum etag_policy etag_policy;
};
static inline struct bucket_ref bucket_ref_of(const struct bucket *bucket)
{
	return (struct bucket_ref){.name = bucket->name, .id = bucket->id};
}

/* Checks the naming rules for a new bucket (wire/bucket_rule.h): bad_name with the broken rule.
 * `namespace` is that of the caller: a name with "--" must begin with it. */
int bucket_check_name(struct span name, struct span namespace, struct error *err);
/* Whether any namespace can have a bucket with this name. */
bool bucket_name_is_possible(struct span name);
/* Whether paths of other faces begin with this word. */
bool bucket_name_is_reserved(struct span name);
/* no_bucket. Texts lie in the arena. */
int bucket_find(struct store *store, struct bucket_ref ref, struct arena *arena, struct bucket *out,
	struct error *err);
/* The same by the id. */
int bucket_find_id(struct store *store, int64_t id, struct arena *arena, struct bucket *out,
	struct error *err);
/* One page: buckets in byte order of their names. */
struct bucket_list_params {
	struct span owner;  /* empty: any */
	struct span prefix; /* of the names */
	struct span after;  /* exclusive */
	size_t limit;       /* above 0 */
};
int bucket_list(struct store *store, const struct bucket_list_params *params, struct arena *arena,
	struct bucket **out, size_t *out_count, struct error *err);

/* Current versions that are not delete markers. */
struct bucket_totals {
	int64_t files;
	int64_t bytes;
	int64_t updated_ms; /* when they last changed; at first when the bucket was created */
};
/* Reads the totals of `count` buckets. Those of a bucket that is gone are zero. */
int bucket_totals_find(struct store *store, const struct bucket *buckets, size_t count,
	struct bucket_totals *out, struct error *err);
/* Adds up the bytes of all buckets of an account. */
int bucket_bytes_of(struct store *store, struct span owner, int64_t *out_bytes, struct error *err);

/* New settings of a bucket. One change makes all of them or none. */
struct bucket_edit {
	bool sets_versioning;
	enum bucket_versioning versioning;
	bool sets_etag_policy;
	enum etag_policy etag_policy;
	const struct bucket_document *documents; /* each replaces or removes the one of its kind */
	size_t document_count;
	enum bucket_grant_source replaces_grants; /* BUCKET_GRANTS_NONE: all grants stay */
	const struct bucket_grant *grants;
	size_t grant_count;
};

/* Calls (storage/core/call.h). All texts are copied. */

/* Makes a bucket, with the settings of `edit` unless it is NULL. bucket_owned (the account has it
 * already), bucket_taken (another account has it); then the bucket stays as it is. too_large as
 * below. */
struct call *bucket_create_call(
	struct store *store, struct span name, struct span account, const struct bucket_edit *edit);
/* no_bucket, too_large (a document, or over BUCKET_GRANTS_MAX grants). */
struct call *bucket_edit_call(
	struct store *store, struct bucket_ref ref, const struct bucket_edit *edit);

#endif
