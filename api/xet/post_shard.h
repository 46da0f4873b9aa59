/* POST /xet/v1/shards and /xet/v2/shards: registers files by their hash (storage/xet/shard_put.h)
 * for the token's bucket and account. The two differ in the reply. v1 replies {"result":1}, or 0
 * when every file was known, and fails with a status. v2 replies with lines of NDJSON; the last one
 * may be an error, which tells the client whether to send the shard again (shard_lines.h). */
#ifndef API_XET_POST_SHARD_H
#define API_XET_POST_SHARD_H

#include "api/exchange/exchange.h"

enum next post_shard_begin(struct exchange *exchange);
enum next post_shard_finish(struct exchange *exchange);
enum next post_shard_resume(struct exchange *exchange);
enum next post_shard_v2_finish(struct exchange *exchange);
enum next post_shard_v2_resume(struct exchange *exchange);

#endif
