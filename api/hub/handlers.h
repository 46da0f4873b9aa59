/* The handlers of the Hub face, for the table in api/hub/hub_routes.c.
 * api/exchange/exchange.h says when and where each of their steps runs. */
#ifndef API_HUB_HANDLERS_H
#define API_HUB_HANDLERS_H

#include "api/exchange/exchange.h"

/* GET /api/whoami-v2: shows the caller's key as a user whose name is the key's namespace. And other
 * requests with a fixed reply. */
enum next hub_whoami_begin(struct exchange *exchange);
/* GET /api/agent-harnesses: there are none. */
enum next hub_harnesses_begin(struct exchange *exchange);
/* For models, datasets, spaces, and buckets that are named without their namespace: 404 with
 * X-Error-Code RepoNotFound, which clients understand. */
enum next hub_no_repository_begin(struct exchange *exchange);
/* For requests that would make or change one: 404 without that code, because with it the command
 * `hf` does not show the message to its users. */
enum next hub_no_repositories_begin(struct exchange *exchange);
/* POST /oauth/device, which `hf auth login` sends without --token: 404 that says what to do. */
enum next hub_no_login_begin(struct exchange *exchange);

/* POST /api/repos/move {"fromRepo": "ns/a", "toRepo": "ns/b", "type": "bucket"}: renames a
 * bucket. */
/* 200; 404 for an unknown bucket and for other types, 409 when the new name is in use, 403 when the
 * caller may not give the bucket away or not take the new name. The account of the new namespace
 * becomes the owner. */
enum next hub_move_finish(struct exchange *exchange);

/* The reply to changes without a result. */
/* `resume`: 200 and {}, or the failure of exchange->call. */
enum next hub_change_resume(struct exchange *exchange);

/* GET /api/buckets/{owner}: lists the buckets that the caller may know of. Under "me" these are the
 * buckets that the caller's account owns (for a key with grants: those that the grants name), under
 * a namespace the buckets with a name in it. Query: search (part of the name, in any case), limit,
 * cursor. */
/* 200 with an array; 401 for an anonymous "me"; 404 for a namespace that does not exist. */
enum next hub_list_begin(struct exchange *exchange);
/* GET /api/settings/repositories, and /api/organizations/{account}/settings/repositories: lists the
 * buckets that the caller's account, or the named one, owns, with the storage that they take. 403
 * for another account, 404 for one that does not exist. */
enum next hub_list_repositories_begin(struct exchange *exchange);

/* POST /api/buckets/{namespace}/{name}: makes a bucket. The namespace may be "me". */
/* 200 with url, name and id; 409 with error, url, name and id when the bucket exists. Clients that
 * accept an existing bucket read the same members of both. 401, 403, 400. */
enum next hub_create_begin(struct exchange *exchange);
enum next hub_create_finish(struct exchange *exchange);
enum next hub_create_resume(struct exchange *exchange);

/* GET and DELETE /api/buckets/{namespace}/{bucket}, and PUT .../settings: shows, deletes and
 * changes a bucket. */
enum next hub_info_begin(struct exchange *exchange);
/* Deletes the bucket with all its files; 409 while it has runs. */
enum next hub_delete_begin(struct exchange *exchange);
/* Takes "private" and "visibility"; there are no other settings. Replies with the changed
 * bucket. */
enum next hub_settings_finish(struct exchange *exchange);
enum next hub_settings_resume(struct exchange *exchange);

/* GET /api/buckets/{namespace}/{bucket}/xet-read-token and xet-write-token: gives a token for the
 * Xet face and one bucket. Some clients read the JSON, others only the headers: both have the
 * same. */
/* For callers that may know of the bucket. Whether they may read a file is judged for each file. */
enum next hub_token_read_begin(struct exchange *exchange);
/* For callers that may write any key of the bucket; 401 for anonymous callers, 403 for others. */
enum next hub_token_write_begin(struct exchange *exchange);

/* GET /api/buckets/{namespace}/{bucket}/events: tells changes of a bucket's files as server-sent
 * events when they happen. The reply has no end. An idle one occupies no thread and no reader of
 * the catalog. docs/protocol/hub.md, "FollowBucket". */
/* Begins where the query says: at `cursor` (from an event), at `since` (an updatedAt of the
 * bucket), or now. invalid; busy when too many streams are open. */
enum next events_begin(struct exchange *exchange);

/* POST /api/buckets/{namespace}/{bucket}/paths-info: tells which of up to 1,000 paths are files,
 * and the facts about these. */
enum next paths_info_begin(struct exchange *exchange);
enum next paths_info_finish(struct exchange *exchange);
enum next paths_info_resume(struct exchange *exchange);

/* POST /api/buckets/{namespace}/{bucket}/batch: adds, copies and deletes files, line by line. */
enum next batch_files_begin(struct exchange *exchange);
enum next batch_files_finish(struct exchange *exchange);
enum next batch_files_resume(struct exchange *exchange);

/* GET, HEAD /buckets/{namespace}/{bucket}/resolve/{path}: sends a file's bytes, with headers that
 * tell a client how to fetch them through Xet instead. */
enum next resolve_file_begin(struct exchange *exchange);
enum next resolve_file_resume(struct exchange *exchange);

#endif
