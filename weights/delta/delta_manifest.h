/* SkyRL's manifest.json of a delta: the file of each tensor, and the checksum of the tensor's
 * result. docs/FORMAT.md, "SkyRL's deltas". Read-only after the parse; any thread. */
#ifndef WEIGHTS_DELTA_DELTA_MANIFEST_H
#define WEIGHTS_DELTA_DELTA_MANIFEST_H

#include "base/error.h"
#include "weights/model/json_scan.h"

struct delta_manifest;

/* `path` names the file in messages. Fails with invalid when the text is malformed, a member is
 * missing or given twice, a checksum is not xxh3-128, or a payload has another name than its
 * tensor. Does not check names of files, nor whether a tensor is given twice. */
struct delta_manifest *delta_manifest_parse(struct span json, const char *path, struct error *err);
void delta_manifest_free(struct delta_manifest *manifest); /* NULL is fine */

uint64_t delta_manifest_version(const struct delta_manifest *manifest);
uint64_t delta_manifest_base_version(const struct delta_manifest *manifest);
/* Pairs of a tensor (key) and its file, and of a tensor and its checksum, in the same order. */
size_t delta_manifest_count(const struct delta_manifest *manifest);
const struct json_scan_pair *delta_manifest_files(const struct delta_manifest *manifest);
const struct json_scan_pair *delta_manifest_checksums(const struct delta_manifest *manifest);

#endif
