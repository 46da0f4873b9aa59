/* A xorb that is stored comes once more. It is verified like the first and dropped, and what is
 * stored is read and verified too. When that is damaged, or its pack is gone from the disk, the new
 * bytes take its place: the pack is written anew with them (pack_rewrite.h), its chunks keep their
 * numbers, and all that leads to them reads right again. A xorb that nobody has seen damaged before
 * is not kept while it comes: then it is busy, and the client, which sends it again, mends it. It
 * lives as a xorb_put does. Internal to storage. */
#ifndef STORAGE_XET_XORB_REPEAT_H
#define STORAGE_XET_XORB_REPEAT_H

#include "base/stream.h"
#include "storage/core/call.h"
#include "storage/xet/xorb.h"

struct xorb_repeat;
struct xorb_repeat_params {
	struct xorb xorb; /* its pack is referred (pack_store_refer), until free */
	bool private_codecs;
	void (*room)(void *owner); /* as in xorb_put.h */
	void *owner;               /* of room */
};
struct xorb_repeat *xorb_repeat_open(struct store *store, const struct xorb_repeat_params *params);
/* invalid: the bytes are no xorb. */
enum sink_result xorb_repeat_write(
	struct xorb_repeat *repeat, struct span bytes, struct error *err);
/* The call that checks what was written against what is stored, which is right when it has ended
 * well. invalid: another xorb; busy: what is stored is damaged, and the xorb must be sent again;
 * corrupt: not even the index of its pack can be read; or what storing gives. It is part of the
 * repeat: freed with call_free, started or not. */
struct call *xorb_repeat_call(struct xorb_repeat *repeat);
/* Once that has ended well: what is stored was mended just now. */
bool xorb_repeat_mended(const struct xorb_repeat *repeat);

#endif
