/* The handlers of the Xet face, for the table in api/xet/xet_routes.c.
 * api/exchange/exchange.h says when and where each of their steps runs. */
#ifndef API_XET_HANDLERS_H
#define API_XET_HANDLERS_H

#include "api/exchange/exchange.h"

/* GET /xet/v1/reconstructions/{hash}, /xet/v2/..., /xet/v1/reconstructions?file_id=..., or POST
 * there with a list: tells of which chunks of which xorbs a file consists, and where to fetch them.
 * HEAD /xet/v1/files/{hash}: tells its size. */
enum next get_reconstruction_v1_begin(struct exchange *exchange);
enum next get_reconstruction_v2_begin(struct exchange *exchange);
enum next get_reconstruction_batch_begin(struct exchange *exchange);
enum next get_reconstruction_list_begin(struct exchange *exchange);
enum next get_reconstruction_list_finish(struct exchange *exchange);
/* for all of the above */
enum next get_reconstruction_resume(struct exchange *exchange);
enum next get_reconstruction_file_begin(struct exchange *exchange);

/* POST /xet/v1/shards and /xet/v2/shards: registers files by their hash (storage/xet/shard_put.h)
 * for the token's bucket and account. The two differ in the reply. v1 replies {"result":1}, or 0
 * when every file was known, and fails with a status. v2 replies with lines of NDJSON; the last one
 * may be an error, which tells the client whether to send the shard again (shard_lines.h). */
enum next post_shard_begin(struct exchange *exchange);
enum next post_shard_finish(struct exchange *exchange);
enum next post_shard_resume(struct exchange *exchange);
enum next post_shard_v2_finish(struct exchange *exchange);
enum next post_shard_v2_resume(struct exchange *exchange);

/* GET /xet/v1/chunks/{prefix}/{hash}: tells whether a chunk is stored here, and in which xorb
 * (storage/xet/chunk_answer.h); else 404. Clients ask for the first chunk of each file and wait for
 * the answer. */
enum next get_chunk_begin(struct exchange *exchange);
enum next get_chunk_resume(struct exchange *exchange);

/* GET /xet/v1/fetch/{token}: sends chunk records to any caller that has a URL of a
 * reconstruction. */
enum next fetch_records_begin(struct exchange *exchange);
enum next fetch_records_resume(struct exchange *exchange);

/* Telemetry of clients, which is read and dropped because clients wait for the reply, and the
 * face's health. */
enum next telemetry_begin(struct exchange *exchange);
enum next telemetry_finish(struct exchange *exchange);
enum next telemetry_health_begin(struct exchange *exchange);

/* PostXorb: POST /xet/v1/xorbs/{prefix}/{hash}. The body is a serialized xorb of that hash. The
 * xorb is durable and promised before the reply. */
enum next post_xorb_begin(struct exchange *exchange);
enum next post_xorb_finish(struct exchange *exchange);
enum next post_xorb_resume(struct exchange *exchange);

/* HeadXorb: HEAD /xet/v1/xorbs/{prefix}/{hash}. Tells whether a xorb is stored, and how many bytes
 * its records have. Old clients ask. */
enum next head_xorb_begin(struct exchange *exchange);
enum next head_xorb_resume(struct exchange *exchange);

/* PostGrant: POST /xet/v1/xorb-grants/{prefix}/{hash}, which new clients send before each xorb.
 * 200: the xorb is stored and promised again, so the client need not send it. Else 404: the client
 * sends it here. The protocol's 201, which names another place to send it to, is not used. */
enum next post_grant_begin(struct exchange *exchange);
enum next post_grant_finish(struct exchange *exchange);
enum next post_grant_resume(struct exchange *exchange);

#endif
