#include "storage/core/segment_losses.h"

#include "storage/core/pack_row.h"
#include "storage/core/pack_touches.h"

int segment_losses_end(struct segment_losses *losses, struct error *err)
{
	for (size_t i = 0; i < losses->count; i++) {
		const struct segment_loss *const loss = &losses->packs[i];
		pack_touches_add(
			db_context(losses->db, DB_CONTEXT_PACK_TOUCHES), loss->pack, loss->chunks);
		if (pack_row_unname(losses->db, loss->pack, loss->names, err) != 0)
			return -1;
	}
	losses->count = 0;
	return 0;
}

int segment_losses_add(struct segment_losses *losses, int64_t pack, int64_t first, int64_t count,
	struct error *err)
{
	size_t at = 0;
	ASSERT(losses->db != NULL && losses->count <= SEGMENT_LOSSES_PACKS);
	while (at < losses->count && losses->packs[at].pack != pack)
		at++;
	if (at == SEGMENT_LOSSES_PACKS) {
		if (segment_losses_end(losses, err) != 0)
			return -1;
		at = 0;
	}
	if (at == losses->count)
		losses->packs[losses->count++] = (struct segment_loss){.pack = pack};
	losses->packs[at].chunks += count;
	losses->packs[at].names += pack_row_names_of(first, count);
	return 0;
}
