/* A store in a scratch folder, a root key, and functions that send requests to the faces through
 * the router. Shared by the tests of the faces. */
#ifndef TESTS_UNIT_API_FACE_FIXTURE_H
#define TESTS_UNIT_API_FACE_FIXTURE_H

#include "storage/buckets/account.h"
#include "tests/unit/api/fake_exchange.h"
#include "tests/unit/unit.h"

struct far_fixture;
struct face_fixture {
	char *folder;
	struct store *store;
	struct keyring *keyring;
	struct arena *arena;
	struct api_context context;
	_Atomic bool stopping;
	const struct file_ops *files; /* of the store; NULL: the real ones */
	const char *token;            /* of the requests; NULL: anonymous */
	struct far_fixture *far;      /* where packs lie; NULL: in the folder */
};

extern const char face_fixture_root_token[];

/* Has the bucket "bkt", made through S3, in the root key's namespace "main". */
void face_fixture_open(struct face_fixture *fixture);
/* The same, with the store on these files, which must outlive it. */
void face_fixture_reopen(struct face_fixture *fixture, const struct file_ops *files);
/* The same with packs in a far place (tests/unit/storage/far_fixture.h), whose folder is set
 * here. */
void face_fixture_open_far(struct face_fixture *fixture, struct far_fixture *far);
/* Then nothing is in memory and nothing near, and this thread plays the reactor. */
void face_fixture_cool(struct face_fixture *fixture);
void face_fixture_close(struct face_fixture *fixture);
/* Makes a key of an account, for everything in the account (no grant) or with one grant. Returns
 * its token. */
const char *face_fixture_key(
	struct face_fixture *fixture, const char *namespace, const struct grant *grant);

/* A Xet token for a bucket, issued to the key with this bearer token (NULL: anonymous), that
 * expires after these seconds. In the arena. */
const char *face_fixture_xet_token(struct face_fixture *fixture, const char *bucket,
	const char *bearer, bool is_write, int64_t seconds);
/* Makes a key of an account and revokes it. Returns its token. */
const char *face_fixture_revoked_key(struct face_fixture *fixture, const char *namespace);

/* Sends a request that may have any status. `headers` and ownership as below. */
struct fake_exchange *face_fixture_ask_any(struct face_fixture *fixture, enum method method,
	const char *target, const char *const *headers, const char *body);
/* Sends a request and asserts its status. `headers` are names and values in turn, ended by NULL;
 * NULL: none. The caller reads the reply and frees the fake. */
struct fake_exchange *face_fixture_ask(struct face_fixture *fixture, int status, enum method method,
	const char *target, const char *const *headers, const char *body);
/* The same, and frees the fake. */
void face_fixture_expect(struct face_fixture *fixture, int status, enum method method,
	const char *target, const char *const *headers, const char *body);
/* Also asserts that the body of the reply contains `text`. */
void face_fixture_expect_text(struct face_fixture *fixture, int status, enum method method,
	const char *target, const char *const *headers, const char *body, const char *text);

/* NULL when absent. */
void face_fixture_assert_header(
	const struct fake_exchange *fake, const char *name, const char *value);
/* The whole body. */
void face_fixture_assert_body(const struct fake_exchange *fake, const char *text);
void face_fixture_assert_holds(const struct fake_exchange *fake, const char *text);
void face_fixture_assert_lacks(const struct fake_exchange *fake, const char *text);

#endif
