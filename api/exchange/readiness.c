#include "api/exchange/readiness.h"

#include "storage/db/db.h"
#include "storage/packs/store_health.h"

static int check_catalog(struct store *store, struct error *err);

int readiness_check(struct exchange *exchange, bool writes, struct error *err)
{
	struct store *const store = exchange->context->store;
	if (atomic_load(exchange->context->stopping))
		return error_set(err, ERROR_BUSY, "The server is stopping.");
	if (check_catalog(store, err) != 0)
		return -1;
	if (!writes)
		return 0;
	store_health_ask_try(store_health(store));
	if (store_health_check_write(store_health(store), err) != 0)
		return -1;
	return readiness_is_full(exchange)
		? error_set(err, ERROR_NO_SPACE, "The disk has no room for uploads.")
		: 0;
}

bool readiness_is_full(const struct exchange *exchange)
{
	struct error why = {0};
	return store_check_room(exchange->context->store, 1, &why) != 0 &&
		why.kind == ERROR_NO_SPACE;
}

/* A connection answers from memory what it has read before, so the file itself is looked at. */
static int check_catalog(struct store *store, struct error *err)
{
	struct error why = {0};
	bool ignored;
	struct db *const reader = store_reader_take(store, &why);
	if (reader != NULL) {
		(void)db_probe(reader, &ignored, &why);
		store_reader_give(store, reader);
	}
	return why.kind == ERROR_NONE ? 0 : error_set(err, ERROR_DAMAGED, "%s", why.text);
}
