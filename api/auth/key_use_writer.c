#include "api/auth/key_use_writer.h"

#include <stdlib.h>

#include "base/memory.h"
#include "base/thread/worker_thread.h"

enum { INTERVAL_MS = 60 * 1000 };

struct key_use_writer {
	struct worker_thread thread;
	struct keyring *keyring;
};

static int64_t key_use_writer_round(void *owner);
static void key_use_writer_last(void *owner);

struct key_use_writer *key_use_writer_start(struct keyring *keyring)
{
	static const struct worker_thread_plan plan = {.name = "key uses",
		.first_ms = INTERVAL_MS,
		.round = key_use_writer_round,
		.last = key_use_writer_last};
	struct key_use_writer *const writer = memory_new(sizeof(*writer));
	writer->keyring = keyring;
	worker_thread_start(&writer->thread, &plan, writer);
	return writer;
}

void key_use_writer_stop(struct key_use_writer *writer)
{
	if (writer == NULL)
		return;
	worker_thread_stop(&writer->thread);
	worker_thread_release(&writer->thread);
	free(writer);
}

static int64_t key_use_writer_round(void *owner)
{
	const struct key_use_writer *const writer = owner;
	keyring_write_uses(writer->keyring);
	return INTERVAL_MS;
}

static void key_use_writer_last(void *owner)
{
	(void)key_use_writer_round(owner);
}
