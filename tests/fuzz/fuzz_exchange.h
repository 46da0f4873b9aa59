/* A request without headers, for targets that need one. */
#ifndef TESTS_FUZZ_FUZZ_EXCHANGE_H
#define TESTS_FUZZ_FUZZ_EXCHANGE_H

#include "api/exchange/exchange.h"

static inline struct span fuzz_exchange_header(struct exchange *exchange, const char *name)
{
	(void)exchange;
	(void)name;
	return (struct span){NULL, 0};
}

static inline void fuzz_exchange_each(struct exchange *exchange,
	void (*take)(void *taker, struct span name, struct span value), void *taker)
{
	(void)exchange;
	take(taker, span_text("Host"), span_text("bucket.example.org"));
	take(taker, span_text("X-Amz-Meta-A"), span_text(" a  b "));
}

static inline void fuzz_exchange_wake(struct exchange *exchange)
{
	(void)exchange;
}

static inline void fuzz_exchange_cut(struct exchange *exchange)
{
	(void)exchange;
}

static inline const char *fuzz_exchange_client(struct exchange *exchange)
{
	(void)exchange;
	return "";
}

static const struct exchange_ops fuzz_exchange_ops = {fuzz_exchange_header, fuzz_exchange_each,
	fuzz_exchange_wake, fuzz_exchange_cut, fuzz_exchange_client};

#endif
