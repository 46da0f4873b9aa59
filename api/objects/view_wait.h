/* Objects of views that are still to be made (docs/protocol/steps.md, "Views"), for every face:
 * requests that name one wait until it is there, and listings name them. */
#ifndef API_OBJECTS_VIEW_WAIT_H
#define API_OBJECTS_VIEW_WAIT_H

#include "api/objects/anchor_wait.h"

/* Whether the key, which names no object, is that of a view that is still to be made: 1 with
 * wait->anchor set, for anchor_wait_for; 0; -1. At 0 with wait->anchor.is_view it may have been
 * made since the object was looked for: look again. */
int view_wait_look(
	struct anchor_wait *wait, struct bucket_ref bucket, struct span key, struct error *err);

/* The header `x-deltabucket-pending` on a listing of what begins with `prefix`: up to 16 keys that
 * are still to be made, with commas between (a run's name has none). No header where there are
 * none. -1 when that cannot be told. */
int view_wait_tell(
	struct exchange *exchange, struct bucket_ref bucket, struct span prefix, struct error *err);

#endif
