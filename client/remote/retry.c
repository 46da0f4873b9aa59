#include "client/remote/retry.h"

#include "base/random.h"

bool retry_worth_status(int status)
{
	return status == 429 || status == 500 || status == 502 || status == 503 || status == 504;
}

int64_t retry_delay_ms(unsigned attempt, int retry_after_s, uint32_t random)
{
	const int64_t doubled = attempt < 16 ? (int64_t)RETRY_FIRST_MS << attempt : RETRY_MOST_MS;
	const int64_t ceiling = doubled < RETRY_MOST_MS ? doubled : RETRY_MOST_MS;
	const int64_t jittered = ceiling / 2 + (int64_t)(random % (uint32_t)(ceiling / 2 + 1));
	const int asked_s = retry_after_s > RETRY_AFTER_MOST_S ? RETRY_AFTER_MOST_S : retry_after_s;
	/* The server may send the same number of seconds to a whole fleet: the jitter spreads
	 * it. */
	return asked_s >= 0 ? (int64_t)asked_s * 1000 + jittered : jittered;
}

void retry_init(struct retry *retry, struct stop *stop, unsigned attempts)
{
	*retry = (struct retry){.stop = stop, .attempts = attempts};
}

bool retry_again(struct retry *retry, int retry_after_s)
{
	if (retry->attempt >= retry->attempts || stop_reason(retry->stop) != 0)
		return false;
	uint32_t random;
	random_bytes(&random, sizeof(random));
	const int64_t delay = retry_delay_ms(retry->attempt++, retry_after_s, random);
	return stop_sleep(retry->stop, delay);
}

void retry_reset(struct retry *retry)
{
	retry->attempt = 0;
}
