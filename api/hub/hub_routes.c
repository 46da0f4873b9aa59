/* The routes that huggingface_hub and similar clients use. {namespace}/{bucket} names a bucket:
 * handlers find its name in the catalog as parameter 0, and the later parameters from 1 on.
 * Creating uses another pattern, because it must judge the name as it was sent. */
#include "api/hub/bucket_page.h"
#include "api/hub/handlers.h"
#include "api/hub/hub_body.h"
#include "api/hub/list_tree.h"
#include "api/route/router.h"

#define BUCKET "/api/buckets/{namespace}/{bucket}"
#define PAGE   "/buckets/{namespace}/{bucket}"

/* Requests about models, datasets and spaces: there are none, and none can be made. */
#define NO_REPOSITORY(pattern, operation)                                                     \
	{METHOD_GET | METHOD_DELETE, pattern, NULL, ACCESS_ANYONE, BODY_NONE, &face_hub,      \
		operation, hub_no_repository_begin, NULL, NULL},                              \
	{                                                                                     \
		METHOD_PUT | METHOD_POST, pattern, NULL, ACCESS_ANYONE, BODY_NONE, &face_hub, \
			operation, hub_no_repositories_begin, NULL, NULL                      \
	}

const struct route hub_routes[] = {
	{METHOD_GET, "/api/whoami-v2", NULL, ACCESS_SIGNED_IN, BODY_NONE, &face_hub, "WhoAmI",
		hub_whoami_begin, NULL, NULL},
	{METHOD_GET, "/api/agent-harnesses", NULL, ACCESS_ANYONE, BODY_NONE, &face_hub,
		"AgentHarnesses", hub_harnesses_begin, NULL, NULL},
	NO_REPOSITORY("/api/models", "NoModel"),
	NO_REPOSITORY("/api/models/{repository*}", "NoModel"),
	NO_REPOSITORY("/api/datasets", "NoDataset"),
	NO_REPOSITORY("/api/datasets/{repository*}", "NoDataset"),
	NO_REPOSITORY("/api/spaces", "NoSpace"),
	NO_REPOSITORY("/api/spaces/{repository*}", "NoSpace"),
	NO_REPOSITORY("/api/repos/create", "NoRepository"),
	NO_REPOSITORY("/api/repos/delete", "NoRepository"),
	{METHOD_POST, "/oauth/device", NULL, ACCESS_ANYONE, BODY_NONE, &face_hub, "NoLogin",
		hub_no_login_begin, NULL, NULL},
	{METHOD_POST, "/api/repos/move", NULL, ACCESS_SIGNED_IN, BODY_SMALL, &face_hub,
		"MoveHubBucket", hub_body_begin, hub_move_finish, hub_change_resume},
	{METHOD_GET, "/api/buckets/{owner}", NULL, ACCESS_ANYONE, BODY_NONE, &face_hub,
		"ListHubBuckets", hub_list_begin, NULL, NULL},
	{METHOD_DELETE, "/api/buckets/{owner}", NULL, ACCESS_ANYONE, BODY_NONE, &face_hub,
		"NoBucket", hub_no_repository_begin, NULL, NULL},
	{METHOD_GET, "/api/settings/repositories", NULL, ACCESS_SIGNED_IN, BODY_NONE, &face_hub,
		"ListRepositories", hub_list_repositories_begin, NULL, NULL},
	{METHOD_GET, "/api/organizations/{account}/settings/repositories", NULL, ACCESS_SIGNED_IN,
		BODY_NONE, &face_hub, "ListRepositories", hub_list_repositories_begin, NULL, NULL},
	{METHOD_POST, "/api/buckets/{owner}/{name}", NULL, ACCESS_SIGNED_IN, BODY_SMALL, &face_hub,
		"CreateHubBucket", hub_create_begin, hub_create_finish, hub_create_resume},
	{METHOD_GET, BUCKET, NULL, ACCESS_BUCKET_KNOWN, BODY_NONE, &face_hub, "HubBucketInfo",
		hub_info_begin, NULL, NULL},
	{METHOD_DELETE, BUCKET, NULL, ACCESS_BUCKET_ADMIN, BODY_NONE, &face_hub, "DeleteHubBucket",
		hub_delete_begin, NULL, hub_change_resume},
	{METHOD_PUT, BUCKET "/settings", NULL, ACCESS_BUCKET_ADMIN, BODY_SMALL, &face_hub,
		"HubBucketSettings", hub_body_begin, hub_settings_finish, hub_settings_resume},
	{METHOD_GET, BUCKET "/xet-read-token", NULL, ACCESS_BUCKET_KNOWN, BODY_NONE, &face_hub,
		"XetReadToken", hub_token_read_begin, NULL, NULL},
	{METHOD_GET, BUCKET "/xet-read-token/{revision*}", NULL, ACCESS_BUCKET_KNOWN, BODY_NONE,
		&face_hub, "XetReadToken", hub_token_read_begin, NULL, NULL},
	{METHOD_GET, BUCKET "/xet-write-token", NULL, ACCESS_BUCKET_KNOWN, BODY_NONE, &face_hub,
		"XetWriteToken", hub_token_write_begin, NULL, NULL},
	{METHOD_GET, BUCKET "/xet-write-token/{revision*}", NULL, ACCESS_BUCKET_KNOWN, BODY_NONE,
		&face_hub, "XetWriteToken", hub_token_write_begin, NULL, NULL},
	{METHOD_GET, BUCKET "/tree", NULL, ACCESS_BUCKET_KNOWN, BODY_NONE, &face_hub, "ListTree",
		list_tree_begin, NULL, list_tree_resume},
	{METHOD_GET, BUCKET "/tree/{prefix*}", NULL, ACCESS_BUCKET_KNOWN, BODY_NONE, &face_hub,
		"ListTree", list_tree_begin, NULL, list_tree_resume},
	{METHOD_GET, BUCKET "/events", NULL, ACCESS_BUCKET_KNOWN, BODY_NONE, &face_hub,
		"FollowBucket", events_begin, NULL, NULL},
	{METHOD_POST, BUCKET "/paths-info", NULL, ACCESS_BUCKET_KNOWN, BODY_SMALL, &face_hub,
		"PathsInfo", paths_info_begin, paths_info_finish, paths_info_resume},
	{METHOD_POST, BUCKET "/batch", NULL, ACCESS_BUCKET_CHANGES, BODY_SMALL, &face_hub,
		"BatchFiles", batch_files_begin, batch_files_finish, batch_files_resume},
	{METHOD_GET | METHOD_HEAD, "/buckets/{namespace}/{bucket}/resolve/{path*}", NULL,
		ACCESS_OBJECT_READ, BODY_NONE, &face_hub, "ResolveFile", resolve_file_begin, NULL,
		resolve_file_resume},
	{METHOD_GET | METHOD_HEAD, PAGE, NULL, ACCESS_BUCKET_KNOWN, BODY_NONE, &face_hub_page,
		"BucketPage", bucket_page_begin, NULL, NULL},
	{METHOD_GET | METHOD_HEAD, PAGE "/tree", NULL, ACCESS_BUCKET_KNOWN, BODY_NONE,
		&face_hub_page, "BucketPage", bucket_page_begin, NULL, NULL},
	{METHOD_GET | METHOD_HEAD, PAGE "/tree/{prefix*}", NULL, ACCESS_BUCKET_KNOWN, BODY_NONE,
		&face_hub_page, "BucketPage", bucket_page_begin, NULL, NULL},
	{.pattern = NULL},
};
