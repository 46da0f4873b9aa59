/* The paths outside S3 that MinIO's client asks for. Health is answered as by MinIO, to anyone and
 * without a body. MinIO's administration is not implemented: 501. */
#ifndef API_S3_REQUEST_MINIO_H
#define API_S3_REQUEST_MINIO_H

#include "api/exchange/exchange.h"

enum next minio_live_begin(struct exchange *exchange);
enum next minio_ready_begin(struct exchange *exchange); /* 200 when reads are served */
/* 200 when writes are served too. ?maintenance=true asks whether the cluster can do without this
 * server: 412, because a cluster has only one. */
enum next minio_cluster_begin(struct exchange *exchange);
enum next minio_admin_begin(struct exchange *exchange);   /* 501 */
enum next minio_metrics_begin(struct exchange *exchange); /* 501 */

#endif
