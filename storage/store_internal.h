/* What the store gives its own modules beyond store.h. Internal to storage. */
#ifndef STORAGE_STORE_INTERNAL_H
#define STORAGE_STORE_INTERNAL_H

#include "storage/helpers.h"
#include "storage/store.h"

struct metrics *store_metrics(const struct store *store); /* may be NULL */
/* Publishes read their anchors on a few lanes, chosen by the run: one run's stay in order. */
struct helper_lane *store_publish_lane(struct store *store, uint64_t hash);

#endif
