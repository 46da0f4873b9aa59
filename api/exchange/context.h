/* The things of the daemon that every handler may use. All pointers are borrowed and stay valid
 * until the last exchange has ended. Read-only; any thread. */
#ifndef API_EXCHANGE_CONTEXT_H
#define API_EXCHANGE_CONTEXT_H

#include "base/clock.h"
#include "base/metrics.h"
#include "base/thread/log.h"
#include "base/thread/share.h"
#include "storage/core/store.h"

struct guess_limit;
struct keyring;
struct body_work;
struct route_metrics;

/* The resources that all callers share (base/thread/share.h). NULL: without a limit. */
struct api_shares {
	/* one for each request that may wait long for its reply, such as a long poll */
	struct share_pool *waits;
	struct share_pool *streams; /* one for each stream of events */
	struct share_pool *replies; /* bytes of large replies in memory, until they are sent */
	/* bytes of request bodies that are parsed whole, from their arrival to the reply */
	struct share_pool *bodies;
};

struct api_context {
	struct store *store;
	struct keyring *keyring;
	const struct clock_source *clock;
	struct log *log;
	struct metrics *metrics;
	struct route_metrics *route_metrics; /* NULL: requests are not counted by operation */
	const char *region;                  /* in HeadBucket and errors; "us-east-1" */
	const char *default_namespace;       /* "main" */
	/* the URL in replies, without a slash at the end; NULL: from the request (base_url.h) */
	const char *public_url;
	/* the URL for clients on this machine; NULL: not known, or none */
	const char *endpoint;
	/* how often secrets may be guessed (api/auth/guess_limit.h); NULL: without a limit */
	struct guess_limit *guesses;
	/* whether Hub buckets are public when the request that makes them does not say */
	bool hub_buckets_public;
	uint8_t token_key[32]; /* seals Xet tokens, fetch URLs and cursors; signs shared URLs */
	/* URLs of step objects and fetch URLs need no key and are the same for all callers
	 * (api/auth/shared_url.h) */
	bool shared_urls;
	bool shared_cache; /* shared caches may keep the bytes of such URLs */
	/* the server's own CA, for clients; NULL: the certificate comes from elsewhere */
	const char *ca_pem;
	/* a Host below this domain names the bucket (virtual hosts); NULL: path style only */
	const char *domain;
	uint64_t put_max_bytes;       /* 5 GiB */
	bool sigv2;                   /* accept SigV2 signatures in queries and forms */
	const _Atomic bool *stopping; /* true: long polls are answered at once */
	struct api_shares shares;
	/* the pool that parses large bodies (body_work.h); NULL: reactors parse them */
	struct body_work *body_work;
	/* the interval of the lines that a client gets while its large shard is checked; 0: 10
	 * seconds */
	int64_t shard_line_ms;
};

#endif
