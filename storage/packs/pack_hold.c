/* The users of a pack: references for rows that may yet be committed, reads by turn, and gc, which
 * waits for both (invariant 5). */
#include "storage/packs/pack_cache_internal.h"

bool pack_is_held(const struct pack *pack)
{
	return pack->references > 0 || pack->reads[0] > 0 || pack->reads[1] > 0;
}

bool pack_cache_refer(struct pack_cache *cache, const struct pack_id *id)
{
	lock_enter(&cache->lock);
	struct pack *const pack = *pack_cache_link(cache, id);
	const bool granted = pack != NULL && pack->known && !pack->retiring;
	if (granted)
		pack->references++;
	lock_leave(&cache->lock);
	return granted;
}

void pack_cache_refer_again(struct pack_cache *cache, const struct pack_id *id)
{
	lock_enter(&cache->lock);
	pack_cache_find_or_add(cache, id)->references++;
	lock_leave(&cache->lock);
}

void pack_cache_unrefer(struct pack_cache *cache, const struct pack_id *id)
{
	struct cache_garbage garbage = {0};
	lock_enter(&cache->lock);
	struct pack *const pack = *pack_cache_link(cache, id);
	ASSERT(pack != NULL && pack->references > 0); /* invariant 5 */
	pack->references--;
	pack_cache_forget_if_idle(cache, pack, &garbage);
	pack_cache_leave(cache, &garbage);
}

bool pack_cache_is_referred(struct pack_cache *cache, const struct pack_id *id)
{
	lock_enter(&cache->lock);
	const struct pack *const pack = *pack_cache_link(cache, id);
	const bool referred = pack != NULL && pack->references > 0;
	lock_leave(&cache->lock);
	return referred;
}

void pack_cache_retire(struct pack_cache *cache, const struct pack_id *id, bool is_retiring)
{
	lock_enter(&cache->lock);
	struct pack *const pack = *pack_cache_link(cache, id);
	if (pack != NULL)
		pack->retiring = is_retiring;
	lock_leave(&cache->lock);
}

unsigned pack_cache_hold(struct pack_cache *cache, const struct pack_id *id)
{
	lock_enter(&cache->lock);
	struct pack *const pack = pack_cache_find_or_add(cache, id);
	const unsigned turn = pack->turn;
	pack->reads[turn]++;
	lock_leave(&cache->lock);
	return turn;
}

void pack_cache_unhold(struct pack_cache *cache, const struct pack_id *id, unsigned turn)
{
	struct cache_garbage garbage = {0};
	lock_enter(&cache->lock);
	struct pack *const pack = *pack_cache_link(cache, id);
	ASSERT(turn < 2 && pack != NULL && pack->reads[turn] > 0); /* invariant 5 */
	pack->reads[turn]--;
	pack_cache_forget_if_idle(cache, pack, &garbage);
	pack_cache_leave(cache, &garbage);
}

bool pack_cache_turn(struct pack_cache *cache, const struct pack_id *id)
{
	lock_enter(&cache->lock);
	struct pack *const pack = *pack_cache_link(cache, id);
	const bool can_turn = pack == NULL || pack->reads[!pack->turn] == 0;
	if (can_turn && pack != NULL)
		pack->turn = !pack->turn;
	lock_leave(&cache->lock);
	return can_turn;
}

bool pack_cache_is_read_from_before(struct pack_cache *cache, const struct pack_id *id)
{
	lock_enter(&cache->lock);
	const struct pack *const pack = *pack_cache_link(cache, id);
	const bool is_read = pack != NULL && pack->reads[!pack->turn] > 0;
	lock_leave(&cache->lock);
	return is_read;
}

bool pack_cache_is_held(struct pack_cache *cache, const struct pack_id *id)
{
	lock_enter(&cache->lock);
	const struct pack *const pack = *pack_cache_link(cache, id);
	const bool held = pack != NULL && pack_is_held(pack);
	lock_leave(&cache->lock);
	return held;
}
