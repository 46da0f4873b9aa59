/* What the store gives its own modules beyond store.h. Internal to storage. */
#ifndef STORAGE_STORE_INTERNAL_H
#define STORAGE_STORE_INTERNAL_H

#include "storage/chunk_index.h"
#include "storage/disk_floor.h"
#include "storage/helpers.h"
#include "storage/pack_touches.h"
#include "storage/store.h"

struct replica_table *store_replicas(struct store *store);
struct path_hold *store_path_holds(struct store *store);
struct store_opened {
	int64_t wall_ms;
	int64_t monotonic_ms;
};
struct store_opened store_opened(const struct store *store); /* when */
struct chunk_index *store_chunk_index(struct store *store);
struct pack_touches *store_pack_touches(struct store *store);
const struct derive_options *store_derive_options(const struct store *store);
const struct webhook_options *store_webhook_options(const struct store *store);
struct gate *store_shard_gate(struct store *store); /* for checks of large shards */
/* A shard is under way, whoever may wait for it; it is no more. Closing waits for those that are. */
void store_shard_began(struct store *store);
void store_shard_ended(struct store *store);
const struct xet_options *store_xet_options(const struct store *store);
const struct disk_floor *store_disk_floor(const struct store *store);
const char *store_folder(const struct store *store);
const struct file_ops *store_files(const struct store *store);
/* The highest version that an earlier process held (scratch.h). Set once, at the start. */
void store_set_scratch_left(struct store *store, int64_t version);
int64_t store_scratch_left(const struct store *store);
/* Whether work behind the requests may change anything at present (store_health.h), and whether it may delete. */
bool store_takes_work(struct store *store);
bool store_may_delete(struct store *store);
uint64_t store_life(const struct store *store); /* the number of this start */
const char *store_catalog_path(const struct store *store);
struct metrics *store_metrics(const struct store *store); /* may be NULL */
/* Publishes read their anchors on a few lanes, chosen by the run: one run's stay in order. */
struct helper_lane *store_publish_lane(struct store *store, uint64_t hash);

#endif
