/* An upload of a xorb that is stored already. The new bytes are verified like the first ones, and
 * the stored records are read and verified too. When these are damaged, or their pack is missing on
 * the disk, the new bytes replace them: the pack is written again (pack_rewrite.h), its chunks keep
 * their numbers, and everything that leads to them reads right again. The new bytes are kept only
 * when damage was seen before the upload. When it is found only now, the call fails with busy; the
 * client sends the xorb again, and that mends it. Used like a xorb_put. Internal to storage. */
#ifndef STORAGE_XET_XORB_REPEAT_H
#define STORAGE_XET_XORB_REPEAT_H

#include "base/stream.h"
#include "storage/core/call.h"
#include "storage/xet/xorb.h"

struct xorb_repeat;
struct xorb_repeat_params {
	struct xorb xorb; /* takes over the caller's reference to its pack (pack_store_refer) */
	bool private_codecs;
	void (*room)(void *owner); /* as in xorb_put.h */
	void *owner;               /* of room */
};
struct xorb_repeat *xorb_repeat_open(struct store *store, const struct xorb_repeat_params *params);
/* invalid: the bytes are not a xorb. */
enum sink_result xorb_repeat_write(
	struct xorb_repeat *repeat, struct span bytes, struct error *err);
/* The call that verifies the end of the upload and the stored xorb. When it ends well, the stored
 * xorb is right. invalid: the bytes are another xorb; busy: the stored bytes are damaged, and the
 * xorb must be sent again; corrupt: not even the index of its pack can be read; or a failure of
 * storing. The repeat is part of the call: call_free frees it, also when it was never started. */
struct call *xorb_repeat_call(struct xorb_repeat *repeat);
/* After the call has ended well: whether it has mended the stored xorb. */
bool xorb_repeat_mended(const struct xorb_repeat *repeat);

#endif
