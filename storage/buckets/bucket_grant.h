/* The rights that a bucket gives to other accounts and to everyone: the table `bucket_grants`. A
 * canned ACL and a bucket policy each replace the grants of their own source. Grants give access to
 * data only; only the owner may change the settings of a bucket. */
#ifndef STORAGE_BUCKETS_BUCKET_GRANT_H
#define STORAGE_BUCKETS_BUCKET_GRANT_H

#include "base/arena.h"
#include "storage/buckets/account.h"
#include "storage/core/store.h"
#include "storage/db/db.h"

/* Numbers are stored in the catalog. */
enum bucket_grant_source {
	BUCKET_GRANTS_NONE = 0,
	BUCKET_GRANTS_OF_ACL = 1,
	BUCKET_GRANTS_OF_POLICY = 2
};
/* More bits beside enum permission, which only grants of buckets distinguish. In the grants of a
 * key, WRITE includes DELETE, and READ includes older versions. */
enum bucket_permission {
	PERMISSION_DELETE = 16,
	/* with READ, LIST or DELETE: also versions by their id, and the list of versions */
	PERMISSION_VERSIONS = 32,
	PERMISSIONS_ALL_DATA = PERMISSION_READ | PERMISSION_WRITE | PERMISSION_LIST |
		PERMISSION_DELETE | PERMISSION_VERSIONS
};
/* Bits of the document BUCKET_PUBLIC_ACCESS. */
enum public_access_block {
	BLOCK_PUBLIC_ACLS = 1,
	IGNORE_PUBLIC_ACLS = 2,
	BLOCK_PUBLIC_POLICY = 4,
	RESTRICT_PUBLIC_BUCKETS = 8
};
enum { BUCKET_GRANTS_MAX = 256 };

struct bucket_grant {
	struct span account; /* a namespace; empty: everyone; "*": all accounts */
	struct span prefix;  /* empty: the whole bucket */
	unsigned permissions;
};

struct bucket_question {
	int64_t bucket;
	struct span account; /* of the caller; empty: anonymous */
	struct span key;     /* or the prefix of a listing */
	/* one grant must have all of them */
	unsigned permissions;
	/* Asks for one of the permissions on any key; with permissions 0 for any right at all (may
	 * the caller know of the bucket?). */
	bool anywhere;
};
/* Canned ACLs of buckets and objects. Numbers are stored in the catalog. */
enum canned_acl {
	ACL_PRIVATE = 0,
	ACL_PUBLIC_READ = 1,
	ACL_AUTHENTICATED_READ = 2,
	ACL_PUBLIC_READ_WRITE = 3
};
enum { BUCKET_GRANTS_OF_ACL_MAX = 1 };
/* The grant of a public bucket: everyone may list it and read all of it. */
struct bucket_grant bucket_grant_public_read(void);
/* Gives the grants of a bucket's ACL, none when it is private. Static texts. */
size_t bucket_grant_of_acl(enum canned_acl acl, struct bucket_grant out[BUCKET_GRANTS_OF_ACL_MAX]);
/* Gives the ACL that has these grants. */
enum canned_acl bucket_grant_find_acl(const struct bucket_grant *grants, size_t count);
/* Whether the ACL of an object lets a caller of this account read it; empty: an anonymous one. */
bool bucket_grant_acl_reads(enum canned_acl acl, struct span account);
/* Whether the grant is for everyone or for all accounts. */
bool bucket_grant_is_public(const struct bucket_grant *grant);
/* Judges a question in one statement: the grants, the public access block, and their sum. */
int bucket_grant_allows(struct store *store, const struct bucket_question *question,
	bool *out_allows, struct error *err);
/* Whether ACLs of objects count in the bucket: its owner has not blocked them. */
int bucket_grant_honours_object_acl(
	struct store *store, int64_t bucket, bool *out_honours, struct error *err);
struct bucket_grants {
	struct bucket_grant *grants;
	size_t count;
};
/* Lists the grants of a source, in their order. They and their texts lie in the arena. */
int bucket_grant_list(struct store *store, int64_t bucket, enum bucket_grant_source source,
	struct arena *arena, struct bucket_grants *out, struct error *err);

/* The rows; internal to storage. */
int bucket_grant_row_replace(struct db *db, int64_t bucket, enum bucket_grant_source source,
	const struct bucket_grant *grants, size_t count, struct error *err);
int bucket_grant_row_drop_all(struct db *db, int64_t bucket, struct error *err);

#endif
