/* The replicas of a run: PUT, GET, DELETE /v1/runs/{bucket}/{run}/replicas/{id} and GET
 * .../replicas. A PUT waits only if the lease must be committed to the catalog before the reply. */
#ifndef API_STEPS_REPLICAS_H
#define API_STEPS_REPLICAS_H

#include "api/exchange/exchange.h"

enum next put_replica_begin(struct exchange *exchange);
enum next put_replica_finish(struct exchange *exchange);
enum next put_replica_resume(struct exchange *exchange);
enum next get_replica_begin(struct exchange *exchange);
enum next delete_replica_begin(struct exchange *exchange); /* resume: steps_request_resume_empty */
enum next list_replicas_begin(struct exchange *exchange);

#endif
