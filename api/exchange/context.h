/* What every handler may use: pointers, all borrowed from the daemon and alive until the last
 * exchange ended. Read-only; any thread. */
#ifndef API_EXCHANGE_CONTEXT_H
#define API_EXCHANGE_CONTEXT_H

#include "base/clock.h"
#include "base/metrics.h"
#include "base/thread/log.h"
#include "base/thread/share.h"
#include "storage/core/store.h"

struct keyring;
struct body_work;

/* What all callers take from, each their part (base/thread/share.h). NULL: without a bound. */
struct api_shares {
	/* long polls and whatever else waits long for its reply: one each */
	struct share_pool *waits;
	struct share_pool *streams; /* streams of events: one each */
	struct share_pool *replies; /* bytes of large replies in memory, until they are read */
	/* bytes of bodies that are parsed whole, from their arrival to the reply */
	struct share_pool *bodies;
};

struct api_context {
	struct store *store;
	struct keyring *keyring;
	const struct clock_source *clock;
	struct log *log;
	struct metrics *metrics;
	const char *region;            /* what HeadBucket and errors say; "us-east-1" */
	const char *default_namespace; /* "main" */
	/* what clients call the server, no slash at the end; NULL: as the request says */
	const char *public_url;
	/* of Hub buckets that are made without saying private or public */
	bool hub_buckets_public;
	uint8_t token_key[32]; /* seals Xet tokens, fetch URLs and cursors */
	/* the CA that issued the server's certificate, for clients; NULL: none of its own */
	const char *ca_pem;
	/* a Host below it names the bucket (virtual hosts); NULL: path style only */
	const char *domain;
	uint64_t put_max_bytes;       /* 5 GiB */
	bool sigv2;                   /* accept SigV2 signatures in queries and forms */
	const _Atomic bool *stopping; /* true: answer long polls at once */
	struct api_shares shares;
	/* where large bodies are parsed (body_work.h); NULL: where they are read */
	struct body_work *body_work;
	/* who waits for a large shard hears of it that often; 0: 10 seconds */
	int64_t shard_line_ms;
};

#endif
