/* The paths that MinIO's client asks beside S3. Health is answered as MinIO does, without a body
 * and for anyone; its administration is not here, and says so. */
#ifndef API_S3_REQUEST_MINIO_H
#define API_S3_REQUEST_MINIO_H

#include "api/exchange/exchange.h"

enum next minio_live_begin(struct exchange *exchange);
enum next minio_ready_begin(struct exchange *exchange); /* reads are served */
/* Writes too. ?maintenance=true: could it go on without this server? */
enum next minio_cluster_begin(struct exchange *exchange);
enum next minio_admin_begin(struct exchange *exchange);   /* 501 */
enum next minio_metrics_begin(struct exchange *exchange); /* 501 */

#endif
