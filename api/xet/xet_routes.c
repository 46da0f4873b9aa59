/* The routes of the content-addressed half that Hub clients use. Its URL (casUrl) is the server's
 * URL with /xet appended. Telemetry comes to the root. */
#include "api/route/router.h"

#include "api/xet/handlers.h"

const struct route xet_routes[] = {
	/* Reconstructions. Old clients leave the version out. */
	{METHOD_GET, "/xet/v2/reconstructions/{hash}", NULL, ACCESS_XET_READ, BODY_NONE, &face_xet,
		"GetReconstructionV2", get_reconstruction_v2_begin, NULL,
		get_reconstruction_resume},
	{METHOD_GET, "/xet/v1/reconstructions/{hash}", NULL, ACCESS_XET_READ, BODY_NONE, &face_xet,
		"GetReconstruction", get_reconstruction_v1_begin, NULL, get_reconstruction_resume},
	{METHOD_GET, "/xet/reconstructions/{hash}", NULL, ACCESS_XET_READ, BODY_NONE, &face_xet,
		"GetReconstruction", get_reconstruction_v1_begin, NULL, get_reconstruction_resume},
	{METHOD_GET, "/xet/v1/reconstructions", "file_id", ACCESS_XET_READ, BODY_NONE, &face_xet,
		"GetReconstructions", get_reconstruction_batch_begin, NULL,
		get_reconstruction_resume},
	{METHOD_POST, "/xet/v1/reconstructions", NULL, ACCESS_XET_READ, BODY_SMALL, &face_xet,
		"PostReconstructions", get_reconstruction_list_begin,
		get_reconstruction_list_finish, get_reconstruction_resume},
	{METHOD_HEAD, "/xet/v1/files/{hash}", NULL, ACCESS_XET_READ, BODY_NONE, &face_xet,
		"HeadFile", get_reconstruction_file_begin, NULL, NULL},
	/* Shards, and answers about chunks. */
	{METHOD_POST, "/xet/v2/shards", NULL, ACCESS_XET_WRITE, BODY_STREAM, &face_xet,
		"PostShardV2", post_shard_begin, post_shard_v2_finish, post_shard_v2_resume},
	{METHOD_POST, "/xet/v1/shards", NULL, ACCESS_XET_WRITE, BODY_STREAM, &face_xet, "PostShard",
		post_shard_begin, post_shard_finish, post_shard_resume},
	{METHOD_POST, "/xet/shards", NULL, ACCESS_XET_WRITE, BODY_STREAM, &face_xet, "PostShard",
		post_shard_begin, post_shard_finish, post_shard_resume},
	{METHOD_GET, "/xet/v1/chunks/{prefix}/{hash}", NULL, ACCESS_XET_READ, BODY_NONE, &face_xet,
		"GetChunk", get_chunk_begin, NULL, get_chunk_resume},
	{METHOD_GET, "/xet/chunks/{prefix}/{hash}", NULL, ACCESS_XET_READ, BODY_NONE, &face_xet,
		"GetChunk", get_chunk_begin, NULL, get_chunk_resume},
	/* The URL is the permission. */
	{METHOD_GET, "/xet/v1/fetch/{token}", NULL, ACCESS_ANYONE, BODY_NONE, &face_xet,
		"FetchRecords", fetch_records_begin, NULL, fetch_records_resume},
	/* Clients wait for the reply. */
	{METHOD_POST, "/v1/telemetry", NULL, ACCESS_ANYONE, BODY_SMALL, &face_xet, "PostTelemetry",
		telemetry_begin, telemetry_finish, NULL},
	{METHOD_POST, "/xet/v1/telemetry", NULL, ACCESS_ANYONE, BODY_SMALL, &face_xet,
		"PostTelemetry", telemetry_begin, telemetry_finish, NULL},
	{METHOD_GET | METHOD_HEAD, "/xet/health", NULL, ACCESS_ANYONE, BODY_NONE, &face_xet,
		"Health", telemetry_health_begin, NULL, NULL},

	{METHOD_POST, "/xet/v1/xorbs/{prefix}/{hash}", NULL, ACCESS_XET_WRITE, BODY_STREAM,
		&face_xet, "PostXorb", post_xorb_begin, post_xorb_finish, post_xorb_resume},
	{METHOD_POST, "/xet/xorbs/{prefix}/{hash}", NULL, ACCESS_XET_WRITE, BODY_STREAM, &face_xet,
		"PostXorb", post_xorb_begin, post_xorb_finish, post_xorb_resume},
	{METHOD_HEAD, "/xet/v1/xorbs/{prefix}/{hash}", NULL, ACCESS_XET_READ, BODY_NONE, &face_xet,
		"HeadXorb", head_xorb_begin, NULL, head_xorb_resume},
	{METHOD_HEAD, "/xet/xorbs/{prefix}/{hash}", NULL, ACCESS_XET_READ, BODY_NONE, &face_xet,
		"HeadXorb", head_xorb_begin, NULL, head_xorb_resume},
	/* The paths of hf_xet 1.1. */
	{METHOD_GET, "/xet/reconstruction/{hash}", NULL, ACCESS_XET_READ, BODY_NONE, &face_xet,
		"GetReconstruction", get_reconstruction_v1_begin, NULL, get_reconstruction_resume},
	{METHOD_GET, "/xet/chunk/{prefix}/{hash}", NULL, ACCESS_XET_READ, BODY_NONE, &face_xet,
		"GetChunk", get_chunk_begin, NULL, get_chunk_resume},
	{METHOD_POST, "/xet/xorb/{prefix}/{hash}", NULL, ACCESS_XET_WRITE, BODY_STREAM, &face_xet,
		"PostXorb", post_xorb_begin, post_xorb_finish, post_xorb_resume},
	{METHOD_HEAD, "/xet/xorb/{prefix}/{hash}", NULL, ACCESS_XET_READ, BODY_NONE, &face_xet,
		"HeadXorb", head_xorb_begin, NULL, head_xorb_resume},
	{METHOD_POST, "/xet/shard/{prefix}/{hash}", NULL, ACCESS_XET_WRITE, BODY_STREAM, &face_xet,
		"PostShard", post_shard_begin, post_shard_finish, post_shard_resume},

	{METHOD_POST, "/xet/v1/xorb-grants/{prefix}/{hash}", NULL, ACCESS_XET_WRITE, BODY_SMALL,
		&face_xet, "PostGrant", post_grant_begin, post_grant_finish, post_grant_resume},
	{.pattern = NULL},
};
