/* A xorb that is stored comes once more. It is verified like the first and dropped, and what is
 * stored is read and verified too. When that is damaged, or its pack is gone from the disk, the new
 * bytes take its place: the pack is written anew with them (pack_rewrite.h), its chunks keep their
 * numbers, and all that leads to them reads right again. A xorb that nobody has seen damaged before
 * is not kept while it comes: then it is busy, and the client, which sends it again, mends it. An
 * xorb_put's life: open, write, finish, done, outcome, free. Internal to storage. */
#ifndef STORAGE_XET_XORB_REPEAT_H
#define STORAGE_XET_XORB_REPEAT_H

#include "base/stream.h"
#include "storage/xet/xorb.h"

struct xorb_repeat;
struct xorb_repeat_params {
	struct xorb xorb; /* its pack is referred (pack_store_refer), until free */
	bool private_codecs;
	void (*room)(void *owner); /* as in xorb_put.h */
	void (*done)(void *owner); /* from a helper or within finish */
	void *owner;
};
struct xorb_repeat *xorb_repeat_open(struct store *store, const struct xorb_repeat_params *params);
/* invalid: the bytes are no xorb. */
enum sink_result xorb_repeat_write(
	struct xorb_repeat *repeat, struct span bytes, struct error *err);
void xorb_repeat_finish(struct xorb_repeat *repeat);
/* 0: what is stored is right, *out_mended since just now. invalid: another xorb; busy: it is
 * damaged and must be sent again; corrupt: not even the index of its pack can be read; or what
 * storing gives. */
int xorb_repeat_outcome(const struct xorb_repeat *repeat, bool *out_mended, struct error *err);
/* Before finish: aborts. After finish: only after done. NULL is fine. */
void xorb_repeat_free(struct xorb_repeat *repeat);

#endif
